/**
 * `npm run long`: the long runs. Most repeat a test with many more cases, set by variables that the test reads. The
 * result of each run, with its date, is kept in bench/results/long-runs.json.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Program, runNamed, runProgram } from './programs.ts'

const vitest = (...words: string[]) => ['node_modules/vitest/vitest.mjs', 'run', ...words]

export const longRuns = {
  admission: {
    about:
      '1,000 folders exported by 10 processes, 64 at once, through a pooler with 40 sessions: all answered, none stuck',
    env: { PROCESSES: '10', FOLDERS: '1000', AT_ONCE: '64', SESSIONS: '40' },
    node: vitest('test/threads/pooler-admission.slow.test.ts'),
    minutes: 10,
  },
  alerts: {
    about:
      'twelve faults, from a dead database to an expired certificate, on servers that Prometheus reads: the alert of each ' +
      'fires, no other but those that the fault explains, and all end',
    env: { FAULTS: 'all' },
    node: vitest('test/ops/faults.slow.test.ts'),
    minutes: 40,
  },
  erasures: {
    about:
      '20 kills of `folder delete` on 600,000 movements, beside streams and a follower: no trace of the folder is left',
    env: { KILLS: '20', ERASED_MOVEMENTS: '600000', ERASURE_RECORD: 'bench/results/erasures.json' },
    node: vitest('test/erasure/erasure-kills.slow.test.ts'),
    minutes: 20,
  },
  etags: {
    about: '100 commits lost in a failover: none of 1,000 ETags from before is answered with 304',
    env: { FAILOVER_STATES: '100' },
    node: vitest('test/db/epoch/failover.slow.test.ts'),
    minutes: 10,
  },
  failovers: {
    about:
      'eight failovers of a cluster of three, each of another kind, under writers, imports, followers, copies, exports and ' +
      'subscriptions: no wrong copy, no stale 304, no cursor, number or id for two things, no short stream that looks whole',
    env: { FAILOVERS: '8', FAILOVER_RECORD: 'bench/results/failovers.json' },
    node: vitest('test/cluster/failovers.slow.test.ts'),
    minutes: 40,
  },
  firms: {
    about:
      '2,000 pairs of copies of two firms after random histories: the one brought up to date is the fresh one, with the ' +
      'digests of the service; 500 random tamperings with a copy, all found and mended',
    env: { FIRM_PAIRS: '2000', FIRM_TAMPERINGS: '500' },
    node: vitest('packages/partner/test/sync/firm-histories'),
    minutes: 60,
  },
  generators: {
    about:
      'five generators make clients of the API document, which compile and read accounts; linters find nothing in it',
    node: vitest('--project', 'pipeline', 'test/http/document'),
    minutes: 20,
  },
  histories: {
    about:
      '10,000 pairs of moments of 500 random histories: a copy changed by what `since` answers is the ledger',
    env: { HISTORIES: '500' },
    node: vitest('test/ledger/changes/histories.slow.test.ts'),
    minutes: 40,
  },
  isolation: {
    about:
      '500 random requests for many ledgers by tokens of three firms, with the folders and cursors of each other: no ledger ' +
      'or row of another firm',
    env: { ISOLATION: '500' },
    node: vitest('test/http/ledgers/changes.test.ts'),
    minutes: 10,
  },
  kills: {
    about:
      '30 kills during exports: at most one part file for each export, none afterwards. 10,000 events to fifty subscribers ' +
      'through kills and a restart of the database: none lost, in order. Numbers of events through 50 kills of the service ' +
      'and 20 crashes of the database: none lost, none given twice',
    env: { KILLS: '30', EVENTS: '10000', SERVICE_KILLS: '50', DATABASE_KILLS: '20' },
    node: vitest(
      'test/jobs/export-kills.slow.test.ts',
      'test/webhooks/dispatch/dispatcher-failures.slow.test.ts',
      'test/webhooks/sequence/interrupted-numbers.slow.test.ts',
    ),
    minutes: 60,
  },
  'normal-load': {
    about: 'an hour of exports, changes, events and full exports: no alert',
    env: { FAULTS: 'none', LOAD_SECONDS: '3600' },
    node: vitest('test/ops/faults.slow.test.ts'),
    minutes: 90,
  },
  'partner-kills': {
    about:
      '`pull` through a proxy that cuts and stalls, and `sync` to SQLite and PostgreSQL, each killed 100 times; the service ' +
      'killed 30 times under `sync --follow`, downloads 60 times: always the SHA-256 of the ledger in the end',
    env: { KILLS: '60', PULL_KILLS: '100', SYNC_KILLS: '100', SYNC_SERVICE_KILLS: '30' },
    node: vitest(
      'packages/partner/test/client/files/download.test.ts',
      'packages/partner/test/cli/pull/pull-kills.slow.test.ts',
      'packages/partner/test/sync/sync-kills.slow.test.ts',
    ),
    minutes: 60,
  },
  pipelines: {
    about:
      'the sources for dlt and Airbyte, run by their own programs: after each load the table is the ledger',
    node: vitest('--project', 'pipeline', 'test/examples', 'test/python'),
    minutes: 20,
  },
  pooler: {
    about:
      'the tests of services with every request through PgBouncer in transaction mode: its sessions hold no lock ' +
      'afterwards, and each process has at most eight of its own, without those of a console',
    env: { TEST_POOLER: '1' },
    node: vitest('--project', 'service', '--project', 'slow'),
    minutes: 60,
  },
  random: {
    about:
      'ledger files in 20 random orders, and 20 histories of random changes: always the ledger of a fresh import',
    env: { RANDOM_ROUNDS: '20' },
    node: vitest(
      'test/ledger/import-fec.test.ts',
      'test/ledger/import-fec-replace.test.ts',
      'test/ledger/mad/replace.slow.test.ts',
    ),
    minutes: 10,
  },
  release: {
    about:
      "the partners' package of the present commit, from a registry on this machine, on Node, Deno and Bun",
    node: ['packages/partner/package/rehearse.ts'],
    minutes: 10,
  },
  replica: {
    about:
      'the replay of a hot standby stopped at 200 random moments under imports: every answer and file shows at least what ' +
      'its request saw, no 404 for what exists, no failed export',
    env: { MOMENTS: '200' },
    node: vitest('test/exports/sources/replica-moments.slow.test.ts'),
    minutes: 30,
  },
  restarts: {
    about:
      'twelve restarts behind HAProxy under load, with streams of 200 MB: no request refused, no stream cut',
    env: { RESTARTS: '6', RESTART_RECORD: 'bench/results/restarts.json' },
    node: vitest('test/ops/restarts.slow.test.ts'),
    minutes: 30,
  },
  revocations: {
    about:
      '200 waiting requests for each of a revoked token, a disconnected partner and an expired session: none gets what was ' +
      'committed after the revocation',
    env: { REVOCATIONS: '200' },
    node: vitest('test/auth/revocation.slow.test.ts'),
    minutes: 10,
  },
  rotations: {
    about:
      '20 kills of `rotate-key` while two processes export, deliver to 1,000 subscriptions and write secrets: no signature ' +
      'that fails, no answer 500, no secret that the named key does not open',
    env: { KILLS: '20', ROTATION_RECORD: 'bench/results/key-rotations.json' },
    node: vitest('test/auth/rotation/rotation-kills.slow.test.ts'),
    minutes: 15,
  },
  tamperings: {
    about:
      '1,000 random tamperings with the audit (rows changed, removed, inserted, swapped; its end, start or head forged): all ' +
      'found',
    env: { TAMPERINGS: '1000' },
    node: vitest('test/audit/tampering.test.ts'),
    minutes: 5,
  },
  upgrades: {
    about:
      'the upgrade from 0.2.0 of a firm with 300,000 movements, as its page says, under streams, copies, exports, deliveries ' +
      'and edits: 503 for a while, no other refusal, no wrong copy, file or event',
    env: { UPGRADE_MOVEMENTS: '300000', UPGRADE_RECORD: 'bench/results/upgrades.json' },
    node: vitest('test/process/release-upgrade.slow.test.ts'),
    minutes: 20,
  },
} satisfies Record<string, Program>

interface LongRunResult {
  at: string
  commit: string
  minutes: number
  /** Of the random data of its tests (test/support/changes/properties.ts). `SEED=7 npm run long -- histories` gives one. */
  seed: string
  exitCode: number
  passed?: number
  failed?: number
  skipped?: number
}

const results = resolve(import.meta.dirname, '../bench/results/long-runs.json')
const readResults = (): Record<string, LongRunResult> =>
  existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : {}

/** Makes one run, keeps its result, and prints it in a line. */
function runAndRecord(name: string, program: Program, words: string[]): number {
  const report = join(tmpdir(), `grandlivre-long-${process.pid}.json`)
  const isVitest = program.node[0]!.endsWith('vitest.mjs')
  const reporters = isVitest ? ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`] : []
  const started = Date.now()
  // Other data in each run: the same data again would find nothing new.
  const seed = process.env['SEED'] ?? String(started % 1_000_000)
  const ended = runProgram({ ...program, env: { ...program.env, SEED: seed } }, [...words, ...reporters])
  const counts = existsSync(report) ? countsOf(report) : undefined
  // If the programs that it needs are missing, all tests of a run are skipped. The run then proves nothing.
  const exitCode = counts?.passed === 0 ? Math.max(ended, 1) : ended
  const result: LongRunResult = {
    at: new Date(started).toISOString(),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    minutes: Math.round((Date.now() - started) / 6000) / 10,
    seed,
    exitCode,
    ...counts,
  }
  rmSync(report, { force: true })
  const kept = { ...readResults(), [name]: result }
  writeFileSync(results, `${JSON.stringify(Object.fromEntries(Object.entries(kept).sort()), null, 2)}\n`)
  console.log(`${name}: ${resultText(result)}`)
  return exitCode
}

function countsOf(report: string) {
  const counts = JSON.parse(readFileSync(report, 'utf8'))
  return {
    passed: counts.numPassedTests as number,
    failed: counts.numFailedTests as number,
    skipped: (counts.numPendingTests + counts.numTodoTests) as number,
  }
}

function resultText({ at, commit, minutes, exitCode, passed, failed, skipped }: LongRunResult): string {
  const counts = passed === undefined ? '' : `, ${passed} tests passed, ${failed} failed, ${skipped} skipped`
  return `${exitCode === 0 ? 'passed' : 'FAILED'} on ${at.slice(0, 10)} at ${commit} in ${minutes} minutes${counts}`
}

if (import.meta.main) {
  const kept = readResults()
  const programs: Record<string, Program> = {
    all: { about: 'all of them, one after the other; at the end a line for each', node: ['test/long.ts'] },
  }
  for (const [name, program] of Object.entries(longRuns)) {
    const last = kept[name] ? `\n  ${resultText(kept[name])}` : ''
    programs[name] = { ...program, about: program.about + last }
  }
  runNamed('long', programs, (name, words) => {
    if (name !== 'all') return runAndRecord(name, programs[name]!, words)
    const codes = Object.entries(longRuns).map(([each, program]) => runAndRecord(each, program, words))
    const now = readResults()
    for (const each of Object.keys(longRuns)) console.log(`${each}: ${resultText(now[each]!)}`)
    return Math.max(...codes)
  })
}
