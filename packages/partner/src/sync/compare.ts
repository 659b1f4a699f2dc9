/** Compares the rows of a ledger in a copy with the digests of the service, at one cursor. */
import { createHash, type Hash } from 'node:crypto'
import {
  type LedgerTableName,
  type WholeTableName,
  wholeTables,
} from '../../../contract/src/ledger-tables.ts'
import type { EntryRange } from '../client/changes.ts'
import type { LedgerBlock, LedgerBlocks } from '../client/ledgers/parts.ts'
import type { Copy, TableDigests } from './copy.ts'

/** Beyond the ids of the service, which a row may have that somebody has made. */
const [least, most] = ['-9223372036854775808', '9223372036854775807']

export interface Comparison {
  /** Movements of the copy. */
  rows: number
  /** Ranges of blocks that differ. */
  blocks: EntryRange[]
  /** Ranges outside of all blocks, in which the copy has rows. */
  outside: EntryRange[]
  tables: WholeTableName[]
  /** Of the tables that are equal. */
  equal: TableDigests
}

export const isEqual = ({ blocks, outside, tables }: Comparison): boolean =>
  blocks.length + outside.length + tables.length === 0

export async function compare(copy: Copy, expected: LedgerBlocks): Promise<Comparison> {
  const { society } = expected
  const tables: WholeTableName[] = []
  const equal: TableDigests = {}
  for (const table of wholeTables) {
    const digest = await digestOf(copy, society, table)
    if (digest === expected.tables[table]) equal[table] = digest
    else tables.push(table)
  }
  const cutter = new BlockCutter(expected.blocks)
  for await (const { buffer, byteOffset, length } of copy.lines(society, 'movements'))
    cutter.pass(Buffer.from(buffer, byteOffset, length))
  return { ...cutter.end(), tables, equal }
}

async function digestOf(copy: Copy, society: string, table: LedgerTableName): Promise<string> {
  const hash = createHash('sha256')
  for await (const lines of copy.lines(society, table)) hash.update(lines)
  return hash.digest('hex')
}

/** Cuts lines, which ascend by entry, where blocks begin and end. */
class BlockCutter {
  readonly #blocks: readonly LedgerBlock[]
  /** The block that is next or under way. Its bounds as numbers: ids of the service are exact. */
  #place = 0
  #from = 0
  #to = 0
  #hash: Hash = createHash('sha256')
  #rows = 0
  #rowsOutside = 0
  #total = 0
  readonly #wrong: EntryRange[] = []
  readonly #outside: EntryRange[] = []

  constructor(blocks: readonly LedgerBlock[]) {
    this.#blocks = blocks
    this.#enter(0)
  }

  pass(lines: Buffer): void {
    // Lines of one block are hashed together.
    let start = 0
    for (let at = 0; at < lines.length; ) {
      const id = idAt(lines, at)
      while (id > this.#to) {
        this.#hash.update(lines.subarray(start, at))
        start = at
        this.#close()
      }
      const next = lines.indexOf(10, at) + 1
      this.#total += 1
      if (id >= this.#from) this.#rows += 1
      else {
        this.#rowsOutside += 1
        start = next
      }
      at = next
    }
    this.#hash.update(lines.subarray(start))
  }

  end(): { rows: number; blocks: EntryRange[]; outside: EntryRange[] } {
    while (this.#place < this.#blocks.length) this.#close()
    this.#noteOutside()
    return { rows: this.#total, blocks: this.#wrong, outside: this.#outside }
  }

  #close(): void {
    this.#noteOutside()
    const { from, to, rows, sha256 } = this.#blocks[this.#place]!
    if (this.#hash.digest('hex') !== sha256 || this.#rows !== rows) this.#wrong.push([from, to])
    this.#hash = createHash('sha256')
    this.#rows = 0
    this.#enter(this.#place + 1)
  }

  #enter(place: number): void {
    this.#place = place
    const block = this.#blocks[place]
    this.#from = block ? Number(block.from) : Number.POSITIVE_INFINITY
    this.#to = block ? Number(block.to) : Number.POSITIVE_INFINITY
  }

  /** Rows before the block that is under way, and after the one before it. */
  #noteOutside(): void {
    if (this.#rowsOutside === 0) return
    const [before, after] = [this.#blocks[this.#place - 1], this.#blocks[this.#place]]
    this.#outside.push([
      before ? String(BigInt(before.to) + 1n) : least,
      after ? String(BigInt(after.from) - 1n) : most,
    ])
    this.#rowsOutside = 0
  }
}

const [minus, zero, nine] = [45, 48, 57]

/** The number at the beginning of a line. */
function idAt(line: Buffer, start: number): number {
  let id = 0
  let at = line[start] === minus ? start + 1 : start
  for (; line[at]! >= zero && line[at]! <= nine; at += 1) id = id * 10 + line[at]! - zero
  return line[start] === minus ? -id : id
}
