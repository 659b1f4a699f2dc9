/**
 * The name of a file decides which of five projects runs it:
 *
 * - `*.unit.test.ts`: needs only its own process, no server. `npm run test:unit` runs these alone.
 * - `*.slow.test.ts`: waits for real seconds, kills or stops processes and servers, or costs more than five seconds of
 *   processor time for what few changes touch; only `npm run test:slow` runs these.
 * - `*.pipeline.test.ts`: runs data pipelines, generators or linters with hundreds of packages; only `npm run long --
 *   pipelines` and `generators` run these.
 * - `*.alone.test.ts`: measures its own process, which no other file may have used. They run with the slow ones.
 * - any other `*.test.ts`: uses the servers of the run. It has its own database on the PostgreSQL of the run,
 *   free ports, and folders below the temporary folder, so that it can run beside all others.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Kept across the processes and export threads of a run; each would compile the same 250 files again.
process.env['NODE_COMPILE_CACHE'] ??= resolve('.cache/compile')

/** Those that take longest, longest first: they start before all others, which fill their waits. */
const longest = [
  'packages/partner/test/client/full-export.test.ts',
  'packages/partner/test/cli/pull/pull.test.ts',
  'packages/partner/test/client/stream.test.ts',
  'test/http/ledgers/changes.test.ts',
  'packages/partner/test/client/ledgers/ledgers.slow.test.ts',
  'test/http/changes/every-change.test.ts',
  'test/http/changes/since.test.ts',
  'test/http/movements/entry.test.ts',
  'test/ledger/mad/replace.slow.test.ts',
  'test/ledger/changes/histories.slow.test.ts',
].map((path) => resolve(path))

const unknown = longest.filter((path) => !existsSync(path))
if (unknown.length > 0) throw new Error(`vitest.config.ts names files that are gone: ${unknown.join(', ')}`)

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const projects = ['slow', 'alone', 'service', 'unit']
    const placeOf = ({ project, moduleId }: TestSpecification) => {
      const place = longest.indexOf(moduleId)
      return projects.indexOf(project.name) * 100 + (place < 0 ? longest.length : place)
    }
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => placeOf(a) - placeOf(b))
  }
}

/** Tests of the service, and of each package. */
const filesOf = (ending: string) => [`test/**/${ending}`, `packages/*/test/**/${ending}`]

/** Processes, not threads: tests kill connections, start their own threads and receive signals. */
const pool = 'forks'
// Files that share a process (`isolate: false`) save its start and its imports, a second of processor time each.
const servers = 'test/support/set-up.ts'
// A process that imports and sends megabytes collects its whole heap again and again: each import alone reserves 16 MiB
// outside of it. With room from its start, which counts what is outside too, tests of imports take 40 % less processor
// time in their process. Not for what measures memory.
const execArgv = ['--initial-heap-size=1024', '--external-memory-accounted-in-global-limit']

export default defineConfig({
  test: {
    // Most files spend most of their time waiting, so more of them run at once than there are cores. On two cores,
    // four left 12 % of the processor idle, and five 8 %.
    maxWorkers: 5,
    // Concurrent tests of one file. Each starts its own processes: with eight of them in several files at
    // once, services on two cores fell silent for fifteen seconds and lost their exports.
    maxConcurrency: 3,
    sequence: { sequencer: LongestFirst },
    // Node itself loads the tests, as it loads the service, from the compile cache. Vite would transform each module once
    // per run and then evaluate it in every process: 1.3 to 2.6 s of processor time more for two files.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Generous: a waiting test waits for a condition, and only a real hang comes near the limit.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: filesOf('*.unit.test.ts'), pool, execArgv, isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'service',
          include: filesOf('*.test.ts'),
          exclude: filesOf('*.{unit,slow,pipeline,alone}.test.ts'),
          pool,
          execArgv,
          isolate: false,
          globalSetup: servers,
        },
      },
      {
        extends: true,
        test: {
          name: 'slow',
          include: filesOf('*.slow.test.ts'),
          pool,
          execArgv,
          isolate: false,
          globalSetup: servers,
        },
      },
      {
        extends: true,
        test: {
          name: 'pipeline',
          include: filesOf('*.pipeline.test.ts'),
          pool,
          isolate: false,
          globalSetup: servers,
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: filesOf('*.alone.test.ts'), pool, globalSetup: servers },
      },
    ],
  },
})
