/**
 * Keeps a copy of the newest fiscal year of a folder and keeps it right: pulls it once, then asks only for what has
 * changed, compares the copy with the ledger block by block, and reads again what differs.
 * `npx node examples/follow-ledger.ts --help` shows how to run it.
 */
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  type Block,
  type Copy,
  changed,
  digestOf,
  digestsOf,
  dropCopy,
  type EntryRange,
  keep,
  keepCursor,
  linesOf,
  readCursor,
  writeLines,
} from './ledger-copy.ts'
import {
  ask,
  environmentHelp,
  type Partner,
  partnerFrom,
  print,
  printHeading,
  printResult,
  Refused,
  type Result,
  run,
} from './partner.ts'
import { newestExercice, pull, receive } from './pull-year.ts'

const help = `Usage: npx node examples/follow-ledger.ts [options]

Keeps a copy of the newest fiscal year of a folder, one movement per line, and
keeps it right: pulls it once, then asks only for what has changed, compares the
copy with the ledger, and reads again what differs. Ctrl-C stops it at any
moment; the next run goes on from there.

Options:
  --out <folder>  where the copy and its cursor go (default: out)
  --once          bring the copy up to date, compare it, and end
  --help          show this help

${environmentHelp}

Example:
  GRANDLIVRE_URL=http://127.0.0.1:8080 GRANDLIVRE_TOKEN=glv_api_... \\
    GRANDLIVRE_SECRET=glv_secret_... npx node examples/follow-ledger.ts --once`

/** The longest that the service lets a request wait for a change. */
const waitSeconds = 30
/** How often a copy is compared with the ledger while it is followed. */
const compareEveryMs = 3_600_000
/** After a failure that may pass, unless the service says how long. */
const retryMs = 1_000
/** The service takes as many ranges in one request. */
const rangesMax = 100
const comparisonsMax = 10

/**
 * Brings the copy up to date: with what has changed since its cursor, or in full if that is no longer known.
 * @param wait seconds for which the request waits if nothing has changed
 * @throws {Refused} if the service does not answer
 */
export async function update(partner: Partner, copy: Copy, wait = 0): Promise<void> {
  const since = await readCursor(copy)
  if (since === undefined) return pullInFull(partner, copy)
  try {
    await applyChanges(partner, copy, since, wait)
  } catch (error) {
    if (!(error instanceof Refused && error.code === 'ERR-CURSOR-EXPIRED')) throw error
    print(error.message)
    await pullInFull(partner, copy)
  }
}

async function pullInFull(partner: Partner, copy: Copy): Promise<void> {
  const draft = `${copy.file}.part`
  const order = { path: copy.path, file: draft, label: 'pulled in full', encoding: 'zstd' } as const
  const { cursor, ...pulled } = await pull(partner, order)
  await keep(copy, draft, cursor)
  printResult(order.label, pulled)
}

async function applyChanges(partner: Partner, copy: Copy, since: string, wait: number): Promise<void> {
  const path = `${copy.path}&since=${since}${wait > 0 ? `&wait=${wait}` : ''}`
  await download(partner, path, copy, 1, async ({ file, ...received }) => {
    const lines = linesOf(file)
    const first = await lines.next()
    const { cursor, entries } = JSON.parse(String(first.value)) as { cursor: string; entries: EntryRange[] }
    if (entries.length > 0) await rewrite(copy, lines, entries, cursor)
    else if (cursor !== since) await keepCursor(copy, cursor)
    if (wait === 0 || cursor !== since)
      printResult(entries.length === 0 ? 'nothing changed' : 'what has changed', received)
  })
}

/** Gives the copy these lines in place of its own in the ranges. */
async function rewrite(
  copy: Copy,
  lines: AsyncIterator<Buffer>,
  ranges: EntryRange[],
  cursor: string,
): Promise<void> {
  const draft = `${copy.file}.part`
  await writeLines(draft, changed(linesOf(copy.file), lines, ranges))
  await keep(copy, draft, cursor)
}

/**
 * Reads an answer into a file of its own, compares it with its trailers, and uses it.
 * @param firstLines lines before the movements, which the trailer does not count
 */
async function download(
  partner: Partner,
  path: string,
  copy: Copy,
  firstLines: number,
  use: (received: Result & { file: string }) => Promise<void>,
): Promise<void> {
  const started = performance.now()
  const response = await ask(partner, path, { Accept: 'application/x-ndjson', 'Accept-Encoding': 'zstd' })
  const file = `${copy.file}.changes`
  let wireBytes = 0
  try {
    const handle = await open(file, 'w')
    const order = { path, label: 'changes', firstLines }
    const received = await receive(response, handle, order, (bytes) => {
      wireBytes += bytes
    }).finally(() => handle.close())
    await use({ file, ms: performance.now() - started, wireBytes, ...received })
  } finally {
    await rm(file, { force: true })
  }
}

/**
 * Compares the copy with the ledger, and reads again what differs.
 * @throws {Error} if it still differs after several attempts
 */
export async function compare(partner: Partner, copy: Copy): Promise<void> {
  const path = copy.path.replace('/movements', '/movements/blocks')
  for (let comparison = 1; comparison <= comparisonsMax; comparison += 1) {
    const started = performance.now()
    const response = await ask(partner, path)
    const blocks = (await json(response)) as Block[]
    const cursor = String(response.headers['x-ledger-cursor'])
    if (cursor !== (await readCursor(copy))) {
      // The ledger has changed since the copy was brought up to date.
      await update(partner, copy)
      continue
    }
    const digests = await digestsOf(linesOf(copy.file), blocks)
    const wrong = blocks.filter(({ sha256 }, place) => sha256 !== digests[place])
    if (wrong.length === 0 && digestOf(digests) === response.headers['x-ledger-digest']) {
      const rows = blocks.reduce((sum, block) => sum + block.rows, 0)
      return printResult(`equal in all ${blocks.length} blocks`, { ms: performance.now() - started, rows })
    }
    print(`${wrong.length} of ${blocks.length} blocks differ from the ledger`)
    await repair(partner, copy, cursor, wrong)
  }
  throw new Error(`${copy.file} differs from the ledger, or the ledger changes too often to compare them`)
}

/** What is read again may be newer than the cursor. The next changes name its entries then, too. */
async function repair(partner: Partner, copy: Copy, cursor: string, blocks: Block[]): Promise<void> {
  for (let first = 0; first < blocks.length; first += rangesMax) {
    const ranges = blocks.slice(first, first + rangesMax).map(({ from, to }): EntryRange => [from, to])
    const entries = ranges.map((range) => range.join('-')).join(',')
    await download(partner, `${copy.path}&entries=${entries}`, copy, 0, async ({ file, ...received }) => {
      await rewrite(copy, linesOf(file), ranges, cursor)
      printResult('read again', received)
    })
  }
}

/** Follows the ledger until the program is stopped. */
async function follow(partner: Partner, copy: Copy): Promise<never> {
  for (let comparedAt = performance.now(); ; ) {
    try {
      await update(partner, copy, waitSeconds)
      if (performance.now() - comparedAt < compareEveryMs) continue
      await compare(partner, copy)
      comparedAt = performance.now()
    } catch (error) {
      if (!mayPass(error)) throw error
      print(`${(error as Error).message}; asking again`)
      await delay(error instanceof Refused ? (error.retryAfterMs ?? retryMs) : retryMs)
    }
  }
}

/** The service is away, or the connection was lost. */
function mayPass(error: unknown): boolean {
  if (error instanceof Refused) return error.status === 503
  return [
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ENOTFOUND',
    'EAI_AGAIN',
    'ETIMEDOUT',
    'ERR_STREAM_PREMATURE_CLOSE',
  ].includes((error as NodeJS.ErrnoException).code ?? '')
}

async function followLedger(): Promise<void> {
  const options = {
    out: { type: 'string', default: 'out' },
    once: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const
  const { out, once, help: showHelp } = parseArgs({ options }).values
  if (showHelp) return print(help)
  const partner = partnerFrom(process.env)
  await mkdir(out, { recursive: true })
  const { producerId, period } = await newestExercice(partner)
  const file = join(out, `ledger-${producerId}.ndjson`)
  const path = `/api/v1/mad/movements?version=1.0.0&idExercice=${producerId}`
  const copy = { path, file, cursorFile: file.replace('.ndjson', '.cursor') }
  printHeading(`A copy of ${period.start.slice(0, 4)}`)
  try {
    await update(partner, copy)
    await compare(partner, copy)
    print(`The copy is the ledger. Files:`)
    for (const written of [copy.file, copy.cursorFile]) print(`  ${written}`)
    if (!once) await follow(partner, copy)
  } catch (error) {
    throw await explained(error, copy)
  }
}

/** What the refusals of a copy mean. */
async function explained(error: unknown, copy: Copy): Promise<unknown> {
  if (!(error instanceof Refused)) return error
  if (error.code === 'ERR-EXERCICE-NOT-FOUND') {
    await dropCopy(copy)
    return new Error(`The fiscal year is gone from the ledger, so its copy was removed`, { cause: error })
  }
  if (error.code === 'ERR-VALIDATION')
    return new Error(
      `${error.message}\nIf ${copy.cursorFile} is not of this ledger, remove it, or choose another --out`,
      { cause: error },
    )
  return error
}

if (import.meta.main) await run(followLedger)
