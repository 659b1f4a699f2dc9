/**
 * `npm run bench -- folders`: thousands of small folders, each pulled once by one of many clients, from one, two and
 * four processes of the service on one database. With `--against FOLDER` another checkout of the project takes
 * turns with this one. `--full` triggers a full export of each instead (`full-exports.ts`).
 */
import { createHash } from 'node:crypto'
import { movementsMin } from '../../packages/sample/src/seed.ts'
import { drain } from '../drain.ts'
import { startUsage } from '../measure.ts'
import { against, flag, only, readOptions, wholeNumber } from '../options.ts'
import { runBench, say, script, startListener } from '../own-process.ts'
import { loadLines, watchMachine } from '../report/machine.ts'
import { describeMachine, machineLine, writeResult } from '../report/results.ts'
import { type ServiceProcess, startServiceProcess, yearUrl } from '../service-process.ts'
import { type Candidate, copyFolders, databaseOf, makeCandidates } from './candidate.ts'
import { type FoldersRow, type FoldersSample, tableOfFolders } from './folders-table.ts'
import { measureFullExports } from './full-exports.ts'
import type { Pass, PassSeen } from './readers.ts'

const processCounts = [1, 2, 4].map((count) => ({
  name: count === 1 ? '1 process' : `${count} processes`,
  count,
}))

/** Folders whose bodies the bench hashes itself. Of all others it compares what they announce. */
const hashedMax = 100

/** A checkout with its folders and its service, which runs in as many processes as are measured at most. */
interface Running {
  name: string
  databasePid: number
  postgresVersion: string
  services: ServiceProcess[]
  /** Folders that the bench has hashed. */
  hashed: number
  pass: Omit<Pass, 'origins' | 'clients'>
}

runBench(async (stack) => {
  const full = process.argv.includes('--full')
  const { folders, movements, clients, rounds, seconds, ...options } = readOptions(
    'npm run bench -- folders',
    {
      full: flag('trigger a full export of each folder, instead of pulling it'),
      folders: wholeNumber('folders', full ? 3_000 : 2_000, [1, 100_000]),
      movements: wholeNumber('movements of each', full ? 1_500 : 2_000, [movementsMin, 100_000]),
      clients: wholeNumber('clients at once', full ? 8 : 32, [1, 1_000]),
      rounds: wholeNumber('rounds', full ? 1 : 3, [1, 100]),
      seconds: wholeNumber('with --full, when a round ends at the latest', 300, [1, 10_000]),
      only,
      against,
    },
  )
  const counts = options.only.of(processCounts)
  const processes = Math.max(...counts.map(({ count }) => count))
  if (full) {
    const [{ count }] = counts as [(typeof counts)[number]]
    return measureFullExports(
      { folders, movements, clients, rounds, seconds, processes: count },
      options.against,
      stack,
    )
  }

  const running: Running[] = []
  for (const candidate of await makeCandidates(movements, options.against, stack))
    running.push(await startOnCopies(candidate, folders, processes, stack))
  const readers = await startListener(script('./small/readers.ts'), { env: {} })
  stack.defer(readers.stop)
  const read = async (pass: Pass): Promise<PassSeen> => {
    const answer = fetch(readers.url, { method: 'POST', body: JSON.stringify(pass) })
    return (await (await Promise.race([answer, readers.failed])).json()) as PassSeen
  }

  const measured = running.flatMap((checkout) =>
    counts.map(({ name, count }) => ({
      checkout,
      services: checkout.services.slice(0, count),
      row: { name: running.length === 1 ? name : `${name}, ${checkout.name}`, samples: [] } as FoldersRow,
    })),
  )
  const endWatch = watchMachine(running[0]!.databasePid)
  for (let round = 1; round <= rounds; round++)
    for (const { checkout, services, row } of measured) {
      say(`round ${round} of ${rounds}: ${row.name}`)
      row.samples.push(await measurePass(checkout, services, clients, read))
    }

  const rows = measured.map(({ row }) => row)
  const machine = describeMachine(running[0]!.postgresVersion)
  const at = new Date().toISOString()
  const { expected } = running[0]!.pass
  const load = endWatch()
  return [
    `${folders.toLocaleString('en')} folders of ${movements.toLocaleString('en')} movements, ${clients} clients, ${at.slice(0, 10)}`,
    machineLine(machine),
    ...loadLines(load),
    '',
    ...tableOfFolders(rows),
    '',
    `Medians of ${rounds} rounds with the least and the most. Each round reads every folder once.`,
    `Checked: the announced SHA-256, length and row count of every answer: ${expected.bytes.toLocaleString('en')} bytes, ${expected.rows} movements,`,
    `${expected.sha256}; before the rounds the bench has hashed ${running[0]!.hashed} of the folders itself. One that differs ends the run.`,
    writeResult(`folders-${folders}.json`, {
      at,
      machine,
      load,
      folders,
      movements,
      clients,
      expected,
      rows,
    }),
  ]
})

/** Copies the folder of the candidate, and starts its service. */
async function startOnCopies(
  candidate: Candidate,
  folders: number,
  processes: number,
  stack: AsyncDisposableStack,
): Promise<Running> {
  const { name, checkout, dataDir } = candidate
  const services: ServiceProcess[] = []
  for (let started = 0; started < processes; started++) {
    services.push(await startServiceProcess(dataDir, {}, checkout))
    stack.defer(services.at(-1)!.stop)
  }
  // Each start makes new credentials, which replace those of the one before.
  const last = services.at(-1)!
  const tokens = (await copyFolders(candidate, folders - 1)).map(({ token }) => token)
  const url = yearUrl(last, last.exercices.at(-1)!.id)
  const thirdPartySecret = last.headers['X-Third-Party-Secret']!
  const expected = await drain(url, last.headers)
  const urls = services.map((service) => url.replace(last.url, service.url))
  const hashed = tokens.filter((_, place) => place % Math.ceil(folders / hashedMax) === 0)
  say(`warming up and comparing ${hashed.length} folders of ${name}`)
  await checkFolders(urls, hashed, thirdPartySecret, expected)
  const { pid, postgresVersion } = await databaseOf(candidate)
  const path = url.slice(last.url.length)
  return {
    name,
    databasePid: pid,
    postgresVersion,
    services,
    hashed: hashed.length,
    pass: { path, thirdPartySecret, tokens, expected },
  }
}

/**
 * Reads some folders, and hashes what arrives. This is also the warm-up.
 * @throws {Error} if one answers other bytes than the original
 */
async function checkFolders(
  urls: string[],
  tokens: string[],
  thirdPartySecret: string,
  expected: Pass['expected'],
): Promise<void> {
  const waiting = tokens.values()
  const check = async (url: string): Promise<void> => {
    for (const token of waiting) {
      const headers = { Authorization: `Bearer ${token}`, 'X-Third-Party-Secret': thirdPartySecret }
      const answer = await fetch(url, { headers: { ...headers, 'Accept-Encoding': 'identity' } })
      const sha256 = createHash('sha256')
        .update(new Uint8Array(await answer.arrayBuffer()))
        .digest('hex')
      if (sha256 !== expected.sha256)
        throw new Error(`A folder answered ${answer.status} with ${sha256}, not ${expected.sha256}`)
    }
  }
  await Promise.all(urls.flatMap((url) => [check(url), check(url)]))
}

async function measurePass(
  { databasePid, pass }: Running,
  services: ServiceProcess[],
  clients: number,
  read: (pass: Pass) => Promise<PassSeen>,
): Promise<FoldersSample> {
  const ends = services.map(({ pid }) => startUsage({ pid, databasePid }))
  const origins = services.map(({ url }) => url)
  const seen = await Promise.race([
    read({ ...pass, origins, clients }),
    ...services.map(({ failed }) => failed),
  ])
  const used = ends.map((end) => end())
  if (seen.different > 0) throw new Error(`${seen.different} answers differ from those before`)
  const sum = (values: (number | null)[]) =>
    values.includes(null) ? null : values.reduce<number>((total, value) => total + value!, 0)
  const exports = pass.tokens.length - seen.refused.length
  return {
    ...seen,
    exports,
    cpuMs: sum(used.map(({ cpuMs }) => cpuMs)),
    databaseCpuMs: used[0]!.databaseCpuMs,
    peakMb: sum(used.map(({ peakMb }) => peakMb)),
    clientCpuMs: seen.cpuMs,
  }
}
