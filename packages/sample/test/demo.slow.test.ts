/** The demo as a newcomer runs it, on an embedded database of its own. */
import type { ChildProcess } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { environment, runNode } from '../../../test/support/process.ts'
import { until } from '../../../test/support/until.ts'

let folder: string
let child: ChildProcess
let output: { out: string; error: string }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  await chmod(folder, 0o755)
})

afterEach(async () => {
  child.kill('SIGKILL')
  const lock = await readFile(join(folder, 'data/postgres/postmaster.pid'), 'utf8').catch(() => undefined)
  if (lock !== undefined) process.kill(Number(lock.split('\n')[0]), 'SIGKILL')
  expect(lock, 'no server is left running').toBeUndefined()
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** @returns its exit code and signal */
function demo(...words: string[]): Promise<[number | null, string | null]> {
  // Its commands use the folder of the demo, not one that the reader has chosen elsewhere.
  const env = { ...environment, DATA_DIR: join(folder, 'data'), PORT: '0', GRANDLIVRE_SOCIETY: '1' }
  const out = words.includes('--out') ? [] : ['--out', join(folder, 'out')]
  const argv = ['packages/sample/src/demo.ts', ...out, ...words]
  const run = runNode(argv, env)
  child = run.child
  output = run.output
  return run.ended
}

test('the demo succeeds, and names exactly the files that it wrote', async () => {
  expect(await demo('--once', '--movements', '1000'), output.error).toEqual([0, null])
  const named = [...output.out.matchAll(/^ {2}\S+\/(\S+) +\d+\.\d MB /gm)].map(([, name]) => name!)
  expect(named).toHaveLength(4)
  // The lock of a copy is an empty file beside it.
  const written = (await readdir(join(folder, 'out'))).filter((name) => !name.endsWith('.lock'))
  expect(written.toSorted()).toEqual(named.toSorted())
  // A partner's copy, made and then changed.
  expect(output.out).toMatch(
    /5 of 5 ledgers copied, .*^The bookkeeper corrects 100 entries\.$.*1 of 5 ledgers copied, .* 5 ledgers with 2,000 movements are equal; .*^\d+ .* DEMO-4 +current$/ms,
  )
  expect(output.out).toMatch(/^The TRA file can be imported: 1,000 movements; /m)
})

test('the demo refills its folder with another size, and a closed terminal stops all of it', async () => {
  const ended = demo('--movements', '1500')
  await until(() => output.out.includes('Ctrl-C stops the service') || child.exitCode !== null)
  expect(output.out).toMatch(/^The TRA file can be imported: 1,500 movements; /m)
  // Lines fit a terminal, apart from the paths of this test and what the commands print.
  const own = output.out.replaceAll(folder, '').replaceAll(/^\$.*?\n\n/gms, '')
  expect(own).toContain('npx grandlivre login --from')
  expect(own.split('\n').filter((line) => line.length > 79)).toEqual([])
  child.kill('SIGHUP')
  expect(await ended).toEqual([0, null])
})

test('a closed pipe leaves no database running', async () => {
  const ended = demo('--once', '--movements', '1500')
  child.stdout!.destroy()
  expect(await ended, output.error).toEqual([0, null])
})

test('a mistake is one line that says what to do', async () => {
  const wrong = [
    [['--movements', '999'], /^--movements takes a whole number from 1000 to 5000000, not "999"\n$/],
    [['--out', '/dev/null'], /^The files cannot go to \/dev\/null, choose another --out: .*\n$/],
  ] as const
  for (const [words, message] of wrong) {
    expect(await demo(...words)).toEqual([1, null])
    expect(output.error).toMatch(message)
  }
})
