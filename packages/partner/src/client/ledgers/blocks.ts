/** Reads the digests of many ledgers, to compare copies with (docs/spec/ledgers.md#blocks). */
import { wholeTables } from '../../../../contract/src/ledger-tables.ts'
import { blocksLines, misfitOf } from '../answer-shapes.ts'
import { commonDigestOf, rowsOf } from '../blocks.ts'
import { clientError } from '../errors.ts'
import { cut } from '../http/connection.ts'
import { itemsOf, WholeLines } from '../lines.ts'
import { throughLosses } from '../reader.ts'
import type { Requests } from '../requests.ts'
import { areAscending } from './entry-ranges.ts'
import type { LedgerBlock, LedgerBlocks, LedgerChangesOptions, LedgerRefused } from './ledger-parts.ts'
import { askLedgers, ledgersMax } from './ledgers-requests.ts'

/**
 * Longest line. A block of at least 500 movements takes about 130 bytes, so a line can describe sixty million movements.
 */
const lineBytesMax = 16 * 1024 * 1024

type BlocksLine = Omit<LedgerBlocks, 'kind'> | { refused: string; code: string; message: string }

/** @throws {GrandlivreError} NOT-PROVEN if the digests do not fit together, or do not belong to the request */
export async function* readLedgerBlocks(
  requests: Requests,
  societies: readonly string[],
  options: LedgerChangesOptions,
): AsyncGenerator<LedgerBlocks | LedgerRefused, void, undefined> {
  let answered = 0
  async function* connection() {
    const asked = societies.slice(answered, answered + ledgersMax)
    const ledgers = asked.map((society) => ({ society }))
    const answer = await askLedgers(requests, 'blocks', 'application/x-ndjson', ledgers, options)
    let lines = 0
    for await (const line of itemsOf<BlocksLine>(wholeLines(answer.body))) {
      const part = checkedPart(line, asked[lines], answer.headers['x-request-id'])
      lines += 1
      answered += 1
      yield part
    }
    if (lines < asked.length) throw cut('The answer ended before the last ledger')
  }
  const lost = ({ message }: Error) =>
    `The digests stopped coming at ledger ${societies[answered]}: ${message}`
  const reader = { connection, reached: () => answered, lost }
  while (answered < societies.length) yield* throughLosses(requests, reader, options.signal)
}

async function* wholeLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const lines = new WholeLines({ lineBytesMax })
  for await (const chunk of body) {
    const whole = lines.push(chunk)
    if (whole) yield whole
  }
}

/** Checks a line, and turns it into a part. @param asked the folder whose line has to come */
function checkedPart(
  line: BlocksLine,
  asked: string | undefined,
  requestId: string | undefined,
): LedgerBlocks | LedgerRefused {
  const fail = (what: string) =>
    clientError('NOT-PROVEN', `The digests of ledger ${asked}: ${what}`, { requestId })
  const isRefused = typeof line === 'object' && line !== null && Object.hasOwn(line, 'refused')
  const wrong = misfitOf(line, blocksLines[isRefused ? 'refused' : 'society'], 'a line')
  if (wrong !== undefined) throw fail(wrong)
  const society = 'refused' in line ? line.refused : line.society
  if (asked === undefined) throw clientError('NOT-PROVEN', `More came than was asked for: ${society}`)
  if (society !== asked) throw fail(`those of ${society} came in their place`)
  if ('refused' in line) return { kind: 'refused', society, code: line.code, message: line.message }
  const { cursor, rows, digest, blocks } = line
  if (!areAscending(blocks.map(({ from, to }: LedgerBlock) => [from, to])))
    throw fail('the blocks are not ascending and disjoint')
  if (commonDigestOf(blocks) !== digest) throw fail('the blocks differ from their digest')
  if (rowsOf(blocks) !== rows) throw fail(`the blocks have ${rowsOf(blocks)} rows, and the line says ${rows}`)
  const tables = Object.fromEntries(wholeTables.map((name) => [name, line.tables[name]]))
  return { kind: 'blocks', society, cursor, rows, digest, tables: tables as typeof line.tables, blocks }
}
