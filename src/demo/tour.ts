/** What the partner does with the movements of a folder, one request after another, each checked. */
import { createReadStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { createProgressBar } from '../commands/terminal/progress-bar.ts'
import { checkTra } from '../formats/tra/check/check.ts'
import type { Credentials } from '../sample/demo-folder.ts'
import { breakOff, type Download, download, type Order, RowCounter } from './download.ts'
import { downloadFile, type MadeExport, makeFullExport } from './full-export.ts'
import { ask, type Partner } from './partner.ts'
import { readBack } from './read-back.ts'
import { heading, money, pathOf, resultLine, sizeOf } from './table.ts'

export interface TourOptions {
  credentials: Credentials
  /** How many movements the folder has. */
  movements: number
  /** Folder of the files; it is there. */
  out: string
}

/** Bytes of one movement of the made-up ledger, measured; only the first progress bar is drawn from it. */
const bytesPerMovement = 800

/** About so many, of a small folder; those of a large one take longer than the window of the limit. */
const requestsOfTour = 16

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const ndjson = { Accept: 'application/x-ndjson' }
const zstd = { 'Accept-Encoding': 'zstd' }

/** @throws {Error} for the first thing that is not as it has to be */
export async function tour(options: TourOptions): Promise<void> {
  const { credentials, movements, out } = options
  const partner = {
    baseUrl: credentials.baseUrl,
    token: credentials.companyToken,
    secret: credentials.thirdPartySecret,
  }
  const exercice = credentials.exercices.at(-1)!
  const year = exercice.start.slice(0, 4)
  const yearPath = `/api/v1/mad/movements?version=1.0.0&idExercice=${exercice.id}`
  const march = `startDate=${year}-03-01&endDate=${year}-03-31`
  const marchPath = `/api/v1/mad/movements?version=1.0.0&${march}`
  const names = {
    json: join(out, `movements-${year}.json`),
    zstd: join(out, `movements-${year}.json.zst`),
    ndjson: join(out, `movements-${year}-03.ndjson`),
    resumed: join(out, `movements-${year}-03-resumed.ndjson`),
    everything: join(out, 'full-export.json'),
    tra: join(out, 'full-export.tra'),
  }

  await showRoutes(partner)
  print('')
  for (const line of heading) print(line)

  const plain = { path: yearPath, file: names.json }
  const json = await downloadShown(partner, `${year} as JSON`, plain, movements * bytesPerMovement)
  const compressed = { path: yearPath, headers: zstd, file: names.zstd }
  const packed = await downloadShown(partner, `${year} as JSON, zstd`, compressed, json.bytes)
  expect(packed.sha256 === json.sha256, 'the compressed answer holds other bytes than the plain one')

  const lines = { path: marchPath, headers: ndjson, file: names.ndjson }
  const month = await downloadShown(partner, `March ${year} as NDJSON`, lines, json.bytes / 12)
  await resume(partner, { ...lines, file: names.resumed }, month)
  await askAgain(partner, yearPath, json.etag)
  const counter = new RowCounter()
  const received = (chunk: Buffer) => counter.add(chunk)
  const made = await exportEverything(partner, 'JSON', names.everything, movements, received)
  expect(
    counter.rows === made.rows,
    `the file has ${counter.rows} movements, and the status says ${made.rows}`,
  )
  const inTra = await exportEverything(partner, 'TRA', names.tra, movements, () => {})
  expect(inTra.debit === made.debit && inTra.credit === made.credit, 'the two full exports have other sums')
  await readTra(names.tra, inTra)

  const { debit, credit } = await readBack(names.ndjson)
  expect(debit === credit, `March has ${money(debit)} of debit and ${money(credit)} of credit`)
  print('')
  print('Each body was counted and hashed on arrival and agrees with its trailers, the')
  print('files of the full exports with the rows, size and SHA-256 of their status.')
  print(`March ${year}: debit ${money(debit)} = credit ${money(credit)}.`)
  print(`Full exports: debit ${money(made.debit)} = credit ${money(made.credit)}.`)
  print('')
  print('Files:')
  for (const name of Object.values(names)) print(`  ${pathOf(name)}`)
}

interface Details {
  target: { type: string; societyId: number }
  routes: { path: string; method: string }[]
}

async function showRoutes(partner: Partner): Promise<void> {
  const answer = await ask(partner, '/api/v1/key/info?mode=extended')
  const { target, routes } = (await json(answer)) as Details
  expect(target.type === 'api', 'key/info takes the company token for another one')
  print(`Token     of folder ${target.societyId}; key/info opens to it:`)
  for (const { method, path } of routes) print(`            ${method.toUpperCase()} ${path}`)
  await waitForRate(answer)
}

/** Where another run was a moment ago: a wait in the midst of the tour would count as time that an answer took. */
async function waitForRate({ headers }: IncomingMessage): Promise<void> {
  if (Number(headers['x-rate-limit-remaining']) >= requestsOfTour) return
  const progress = createProgressBar(process.stdout)
  progress.show(0, 'Waiting for the rate limit, a few seconds')
  await delay(Math.max(0, Number(headers['x-rate-limit-reset']) - Date.now()))
  progress.clear()
}

async function downloadShown(
  partner: Partner,
  label: string,
  order: Omit<Order, 'onProgress'>,
  bytesExpected: number,
): Promise<Download> {
  const progress = createProgressBar(process.stdout)
  const started = performance.now()
  let done: Download
  try {
    done = await download(partner, {
      ...order,
      onProgress: ({ bytes, rows }) => {
        const rate = bytes / 1000 / Math.max(performance.now() - started, 1)
        const sofar = `${sizeOf(bytes)}, ${rate.toFixed(0)} MB/s, ${rows.toLocaleString('en')} rows`
        // What is expected is not known to the byte; the bar is full only when the last byte is there.
        progress.show(Math.min(bytes / bytesExpected, 0.99), `${label}: ${sofar}`)
      },
    })
  } finally {
    progress.clear()
  }
  print(resultLine(label, done))
  return done
}

/** A line that drops half-way: the rest is asked for, on condition that the ledger is still the same. */
async function resume(partner: Partner, order: Omit<Order, 'onProgress'>, whole: Download): Promise<void> {
  const first = await breakOff(partner, order, Math.ceil(whole.bytes / 2))
  expect(first.etag === whole.etag, 'the ledger changed during the tour')
  const second = await download(partner, {
    ...order,
    path: `${order.path}&after=${first.lastMovement}`,
    headers: { ...order.headers, 'If-Match': first.etag },
    append: true,
    onProgress: () => {},
  })
  const both = await readBack(order.file)
  expect(both.sha256 === whole.sha256, 'the two parts together are not the bytes of one export')
  const result = { ...whole, rows: both.rows, ms: first.ms + second.ms }
  print(resultLine('  cut off half-way, resumed', result))
}

async function askAgain(partner: Partner, path: string, etag: string): Promise<void> {
  const started = performance.now()
  const answer = await ask(partner, path, { 'If-None-Match': etag })
  answer.resume()
  expect(answer.statusCode === 304, `an unchanged ledger was answered with ${answer.statusCode}, not 304`)
  print(resultLine('The year again: 304, unchanged', { ms: performance.now() - started }))
}

/** The whole folder as one file: made by the service in its own time, then fetched from its address. */
async function exportEverything(
  partner: Partner,
  format: 'JSON' | 'TRA',
  file: string,
  movements: number,
  received: (chunk: Buffer) => void,
): Promise<MadeExport> {
  const made = await makeFullExport(partner, format)
  const { size, rows, debit, credit } = made
  expect(rows === movements, `the full export has ${rows} of the ${movements} movements`)
  expect(debit === credit, `the full export has ${money(debit)} of debit and ${money(credit)} of credit`)
  // One that was there already was not made at any rate.
  if (made.wasThere) print(resultLine(`Full export in ${format}, made before`, { rows, ms: made.ms }))
  else print(resultLine(`Full export in ${format}, made`, { bytes: size, rows, ms: made.ms }))
  const fetched = await downloadFile(made, file, received)
  expect(fetched.bytes === size, `the file has ${fetched.bytes} bytes, and the status says ${size}`)
  expect(fetched.sha256 === made.sha256, 'the file has another SHA-256 than the status says')
  print(resultLine('  downloaded from its address', { ...fetched, rows, wireBytes: fetched.bytes }))
  return made
}

/** As a bookkeeping program does before it imports the file. */
async function readTra(file: string, { size, rows, debit, credit }: MadeExport): Promise<void> {
  const started = performance.now()
  const progress = createProgressBar(process.stdout)
  const found = await checkTra(createReadStream(file), (bytes, lines) =>
    progress.show(bytes / size, `Read back: ${lines.toLocaleString('en')} lines, ${sizeOf(bytes)}`),
  ).finally(() => progress.clear())
  const [first] = found.problems
  if (first) expect(false, `line ${first.line}, column ${first.column} of ${file}: ${first.message}`)
  expect(
    found.movements === rows,
    `the TRA file has ${found.movements} movements, and its status says ${rows}`,
  )
  expect(found.debit === debit && found.credit === credit, 'the TRA file has other sums than its status')
  print(resultLine('  read back, without a fault', { bytes: size, rows, ms: performance.now() - started }))
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(`The tour found a fault: ${otherwise}`)
}
