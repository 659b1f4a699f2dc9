/**
 * `npm run bench -- python`: how long a machine keeps somebody waiting from `pip install` of the wheel to a proven copy of a firm
 * in a DataFrame, by the program of the package's README; and what one large ledger costs as a table of Arrow.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { movementsMin } from '../../packages/sample/src/seed.ts'
import { makeDataDir, openDataset } from '../dataset.ts'
import { readOptions, wholeNumber } from '../options.ts'
import { project, runBench, say } from '../own-process.ts'
import { loadLines, watchMachine } from '../report/machine.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { alignedTable, digits } from '../report/table.ts'
import { startServiceProcess } from '../service-process.ts'
import { median } from '../statistics.ts'
import { makeFirm } from './tenants.ts'

const run = promisify(execFile)

/** Prints rows, and processor seconds of the process until they were in Arrow, and of the proof afterwards. */
const program = `
import json, os, resource, time, grandlivre
firm = grandlivre.Firm(*(os.environ[f"GRANDLIVRE_{name}"] for name in ("URL", "TOKEN", "SECRET")), encoding="identity")
start = time.process_time()
books = {change.society: dict(change.tables) for change in firm.changes()}
copied = time.process_time() - start
is_right = all(proof.is_equal for proof in firm.verify(books))
verified = time.process_time() - start - copied
rows = sum(book["movements"].num_rows for book in books.values())
megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(json.dumps({"rows": rows, "copied": copied, "verified": verified, "isRight": is_right, "megabytes": megabytes}))`

interface Large {
  rows: number
  copied: number
  verified: number
  isRight: boolean
  megabytes: number
}

runBench(async (stack) => {
  const { folders, movements, large, rounds } = readOptions('npm run bench -- python', {
    folders: wholeNumber('folders of the firm', 30, [1, 10_000]),
    movements: wholeNumber('movements of each', 2_000, [movementsMin, 100_000]),
    large: wholeNumber('movements of the large ledger', 2_000_000, [movementsMin, 5_000_000]),
    rounds: wholeNumber('rounds of the large ledger', 3, [1, 100]),
  })
  const { dataDir, databasePid, postgresVersion } = await openDataset(
    movementsMin,
    stack,
    await makeDataDir(stack),
  )
  say(`seeding ${folders} folders of ${movements} movements, and one of ${large}`)
  const firm = await makeFirm(dataDir, folders, movements)
  const one = await makeFirm(dataDir, 1, large)
  const service = await startServiceProcess(dataDir)
  stack.defer(service.stop)
  const work = await mkdtemp(join(tmpdir(), 'grandlivre-python-'))
  stack.defer(() => rm(work, { recursive: true, force: true }))
  await run('python3', [
    '-m',
    'pip',
    'wheel',
    '--quiet',
    '--no-deps',
    '--wheel-dir',
    work,
    join(project, 'python'),
  ])
  const [wheel] = (await readdir(work)).filter((name) => name.endsWith('.whl'))
  await run('python3', ['-m', 'venv', join(work, 'environment')])
  const python = join(work, 'environment/bin/python3')
  const env = { PATH: process.env['PATH'], HOME: work, GRANDLIVRE_URL: service.url }
  const endWatch = watchMachine(databasePid)
  const timed = async (words: string[], more: Record<string, string> = {}) => {
    const started = performance.now()
    const { stdout } = await run(python, words, { env: { ...env, ...more }, cwd: work })
    return { seconds: (performance.now() - started) / 1000, said: stdout.trim() }
  }
  const readme = await readFile(join(project, 'python/README.md'), 'utf8')
  const installed = await timed(['-m', 'pip', 'install', '--quiet', join(work, wheel!), 'pandas'])
  const copied = await timed(['-c', /```python\n(.*?)```/s.exec(readme)![1]!], firm.access)
  say(copied.said)
  const results: Large[] = []
  for (let round = 0; round < rounds; round += 1)
    results.push(JSON.parse((await timed(['-c', program], one.access)).said))
  if (!results.every(({ isRight, rows }) => isRight && rows === large))
    throw new Error('A copy is not the ledger')
  const perSecond = median(results.map(({ copied: seconds }) => large / seconds))
  const machine = describeMachine(postgresVersion)
  const [at, load] = [new Date().toISOString(), endWatch()]
  const steps = { install: installed.seconds, copy: copied.seconds }
  const facts = { at, machine, load, folders, movements, steps, said: copied.said, large, perSecond, results }
  const name = large.toLocaleString('en')
  return [
    machineLine(machine),
    ...loadLines(load),
    '',
    ...alignedTable([
      ['', 'median', 'target'],
      ['pip install of the wheel and pandas, with an empty cache', `${digits(steps.install)} s`, ''],
      [`a proven copy of ${folders} folders in a DataFrame`, `${digits(steps.copy)} s`, 'both 60 s'],
      [
        `${name} rows as Arrow, rows per second of processor`,
        Math.round(perSecond).toLocaleString('en'),
        '300,000',
      ],
      ['proof of them, processor', `${digits(median(results.map(({ verified }) => verified)))} s`, ''],
      ['memory', `${digits(median(results.map(({ megabytes }) => megabytes)))} MB`, ''],
    ]),
    '',
    writeResult('python.json', facts),
  ]
})
