/** The movements of a seeded ledger before they have ids, with their lettering codes and analytic shares. */

import { type EntryRow, type MovementRow, movementTable } from '../../../../src/formats/items/entry.ts'
import { blank } from '../../../../src/formats/items/table.ts'
import type { ThirdParty } from './chart.ts'
import type { Random } from './random.ts'

type Keys = 'schemaId' | 'folderId' | 'exerciceId'
export type Line = Omit<MovementRow, Keys | 'entryId' | 'id'>
/** An entry and its movements before they have ids. */
export interface DraftedEntry extends Omit<EntryRow, Keys | 'id' | 'number'> {
  lines: Line[]
  /** The item that this entry opens, and that a later bank entry must settle; null if it opens none. */
  opens: OpenItem | null
}

/**
 * An invoice or salary that is still to be paid. Its line is lettered from the start, because it is loaded long before
 * it is settled. So the ledger must later contain the settlement.
 */
export interface OpenItem {
  kind: 'supplier' | 'customer' | 'employee'
  party: ThirdParty
  invoiceNumber: string
  /** The amount to be paid: all of the line if the lettering is complete, less if it is partial. */
  payable: bigint
  state: 'complete' | 'partial'
  code: string
}

const blankMovement = blank(movementTable)

/** @param amount positive for a debit, negative for a credit */
export function newLine(accountId: string, description: string, invoiceNumber: string, amount: bigint): Line {
  return {
    ...blankMovement,
    letteringState: 'none',
    accountId,
    description,
    invoiceNumber,
    debit: amount > 0n ? amount : 0n,
    credit: amount < 0n ? -amount : 0n,
  }
}

/** The lettering code with this index: AAA, AAB, ... ZZZ, AAAA, ..., as in accounting. */
export function letteringCode(index: number): string {
  let width = 3
  let rest = index
  while (rest >= 26 ** width) rest -= 26 ** width++
  let code = ''
  for (let position = 0; position < width; position++) {
    code = String.fromCharCode(65 + (rest % 26)) + code
    rest = Math.floor(rest / 26)
  }
  return code
}

/**
 * Splits the amount of a line over one to three sections of the first axis, and for half of the lines also over one or
 * two sections of the second. On each axis the shares add up to the line's amount to the cent, and their rates to 100
 * %.
 * @param axes the section ids of each axis, at least three on each
 */
export function splitShares(random: Random, axes: bigint[][], amount: bigint): bigint[] {
  const shares: bigint[] = []
  splitOverAxis(random, axes[0]!, random.pick([1, 1, 1, 2, 2, 3]), amount, shares)
  if (random.chance(0.5)) splitOverAxis(random, axes[1]!, random.pick([1, 1, 2]), amount, shares)
  return shares
}

function splitOverAxis(random: Random, sections: bigint[], count: number, amount: bigint, shares: bigint[]) {
  const first = random.integer(0, sections.length - 1)
  let amountLeft = amount
  let percentLeft = 100
  for (let index = 0; index < count; index++) {
    const isLast = index === count - 1
    const percent = isLast ? percentLeft : random.integer(1, percentLeft - (count - index))
    // The last section also gets the rounding difference.
    const share = isLast ? amountLeft : (amount * BigInt(percent)) / 100n
    shares.push(sections[(first + index) % sections.length]!, share, BigInt(percent) * 10_000n)
    amountLeft -= share
    percentLeft -= percent
  }
}
