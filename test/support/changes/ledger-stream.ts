/** Reads an answer of many ledgers as a careful client does: every rule of docs/spec/ledgers.md#lines is checked. */
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import {
  type LedgerTableName,
  ledgerTables,
  wholeTables,
} from '../../../packages/contract/src/ledger-tables.ts'

export type Ranges = [from: string, to: string][]

export interface LedgerItem {
  society: string
  since: string | null
  cursor: string
  entries: Ranges
  /** Row lines of the tables that were sent, without line feeds. */
  tables: Partial<Record<LedgerTableName, string[]>>
  /** Rows of each proof of the movements. */
  proofs: number[]
  end: { rows: number; debit: string; credit: string; tables: Record<string, string> }
}

export interface RefusedItem {
  refused: string
  code: string
  message: string
}

const sha256 = (lines: string[]) =>
  createHash('sha256')
    .update(lines.map((line) => `${line}\n`).join(''))
    .digest('hex')

/** The ledgers in their order, and what is refused. */
export function readLedgers(text: string): { ledgers: LedgerItem[]; refused: RefusedItem[] } {
  const lines = text.split('\n')
  expect(lines.pop()).toBe('')
  const last = JSON.parse(lines.pop()!)
  const ledgers: LedgerItem[] = []
  const refused: RefusedItem[] = []
  let at = 0
  while (at < lines.length) {
    const first = JSON.parse(lines[at]!)
    if ('refused' in first) {
      refused.push(first)
      at++
    } else at = readLedger(lines, at, ledgers)
  }
  expect(last).toEqual({ whole: ledgers.length, refusals: refused.length })
  return { ledgers, refused }
}

function readLedger(lines: string[], from: number, ledgers: LedgerItem[]): number {
  let at = from
  const { ledger: society, since, cursor, entries, ...more } = JSON.parse(lines[at++]!)
  expect(more).toEqual({})
  const tables: LedgerItem['tables'] = {}
  let proofs: number[] = []
  while (lines[at]!.startsWith('{"table"')) {
    const { table, columns }: { table: LedgerTableName; columns: string[] } = JSON.parse(lines[at++]!)
    expect(columns).toEqual(ledgerTables[table].columns.map(({ name }) => name))
    const rows: string[] = []
    proofs = []
    for (let part: string[] = []; !/^\{"(?:table|end)"/.test(lines[at]!); at++) {
      if (!lines[at]!.startsWith('{')) {
        part.push(lines[at]!)
        continue
      }
      expect(JSON.parse(lines[at]!)).toEqual({ rows: part.length, sha256: sha256(part) })
      expect(part.length === 1 || Buffer.byteLength(`${part.join('\n')}\n`) <= 1024 * 1024).toBe(true)
      rows.push(...part)
      proofs.push(part.length)
      part = []
    }
    // None is behind the last proof; one of no rows stands alone.
    expect(lines[at - 1]).toMatch(/^\{"rows"/)
    expect(proofs.length === 1 || !proofs.includes(0)).toBe(true)
    expect(rows.every((row) => row.split('\t').length === columns.length)).toBe(true)
    tables[table] = rows
  }
  const order = [...wholeTables, 'movements'] as LedgerTableName[]
  expect(Object.keys(tables)).toEqual(order.filter((name) => name in tables))
  const { end: ended, ...end } = JSON.parse(lines[at++]!)
  expect(ended).toBe(society)
  expect(end.rows).toBe(tables.movements!.length)
  expect(Object.keys(end.tables)).toEqual(wholeTables)
  for (const name of wholeTables) if (tables[name]) expect(end.tables[name]).toBe(sha256(tables[name]))
  ledgers.push({ society, since, cursor, entries, tables, proofs, end })
  return at
}
