/** The sums of an account (docs/spec/resources.md#accountbalance): no part of a full export. */
import type { z } from 'zod'
import { decimal } from '../../minor-units.ts'
import { money, NamedAccount, named } from '../values.ts'
import type { AccountRow } from './account.ts'

/** Sums are digits of minor units. */
export interface BalanceView extends Pick<AccountRow, 'id' | 'number' | 'name'> {
  debit: string
  credit: string
  /** Debit minus credit. */
  balance: string
}

export const AccountBalance = named('AccountBalance', {
  account: NamedAccount,
  debit: money,
  credit: money,
  balance: money.meta({ description: 'Debit minus credit' }),
})

export function balanceItem(row: BalanceView): z.input<typeof AccountBalance> {
  const { id, number, name, debit, credit, balance } = row
  return {
    account: { producerId: id, number, name },
    debit: decimal(debit, 2),
    credit: decimal(credit, 2),
    balance: decimal(balance, 2),
  }
}
