/** Loads what the entries of a TRA file refer to, in the caller's transaction, with new ids. */

import type { ClientBase } from 'pg'
import { vatTable } from '../../formats/items/accounts/vat.ts'
import { axisTable, sectionTable } from '../../formats/items/axis.ts'
import { bankTable } from '../../formats/items/bank.ts'
import { closedAtNoon, exerciceTable } from '../../formats/items/exercice.ts'
import { journalTable } from '../../formats/items/journal.ts'
import { paymentTable } from '../../formats/items/payment.ts'
import { blank, type TableOf } from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { TableWriter } from '../load.ts'
import { loadAccounts, type TraAccountIds } from './load-accounts.ts'
import type { TraParameters } from './parameters.ts'

/** Ids in the database, by the codes of the file. */
export interface TraIds {
  accounts: TraAccountIds
  journals: ReadonlyMap<string, string>
  payments: ReadonlyMap<string, string>
  /** By `sectionKey`. */
  sections: ReadonlyMap<string, string>
  /** In the order of the file. */
  exercices: { id: string; start: string; end: string }[]
  /** Banks that no journal of the file could belong to. */
  banksLeftOut: number
}

/** @param axis such as `A1` @param code as it is in its field: blanks around it do not count */
export function sectionKey(axis: string, code: string): string {
  return `${axis} ${code.trim()}`
}

/** @param timeZone in which exercices were closed on their day */
export async function loadParameters(
  client: ClientBase,
  ids: IdSource,
  { schemaId, folderId }: FolderKey,
  parameters: TraParameters,
  timeZone: string,
): Promise<TraIds> {
  const key = { schemaId, folderId }
  const write: Write = async (table, rows) => {
    await ids.reserve(rows.length)
    const writer = new TableWriter(client, table)
    const given = rows.map((row) => ({ ...key, id: ids.next(), ...row }))
    for (const row of given) writer.add(row as never)
    await writer.flush()
    return given.map(({ id }) => id)
  }
  const codes = [...parameters.payments.keys()]
  const paymentIds = await write(
    paymentTable,
    codes.map((code) => ({ code: parameters.payments.get(code)! })),
  )
  const payments = new Map(codes.map((code, i) => [code, paymentIds[i]!]))
  await write(
    vatTable,
    [...parameters.vatRates].map(([code, rate]) => ({ code, rate })),
  )
  const accounts = await loadAccounts(client, ids, key, parameters, (condition) =>
    payments.get(parameters.conditions.get(condition) ?? ''),
  )
  const journals = await loadJournals(write, parameters, accounts)
  const banksLeftOut = await loadBanks(write, parameters, accounts, journals)
  const sections = await loadAxes(write, ids, parameters)
  const exerciceIds = await write(
    exerciceTable,
    parameters.exercices.map(({ start, end, lettering, closedOn }) => ({
      startDate: start,
      endDate: end,
      lettering,
      ...blank(exerciceTable),
      closedAt: closedOn && closedAtNoon(closedOn, timeZone),
    })),
  )
  const exercices = parameters.exercices.map(({ start, end }, i) => ({ id: exerciceIds[i]!, start, end }))
  return { accounts, journals, payments, sections, exercices, banksLeftOut }
}

/** Loads rows of the folder with new ids, unless a row has one. @returns the ids */
type Write = <Row extends FolderKey & { id: string }>(
  table: TableOf<Row>,
  rows: (Omit<Row, keyof FolderKey | 'id'> & { id?: string })[],
) => Promise<string[]>

async function loadJournals(write: Write, parameters: TraParameters, accounts: TraAccountIds) {
  const journals = [...parameters.journals.values()]
  const given = await write(
    journalTable,
    journals.map(({ code, name, type, account, locked }) => ({
      code,
      name,
      type,
      counterpartAccountId: (account && accounts.general.get(account)) || null,
      locked,
    })),
  )
  return new Map(journals.map(({ code }, i) => [code, given[i]!]))
}

/**
 * A record names no journal: it is the bank journal with the same account, else the first one.
 * @returns how many are left out, as there is no bank journal
 */
async function loadBanks(
  write: Write,
  parameters: TraParameters,
  accounts: TraAccountIds,
  journals: ReadonlyMap<string, string>,
): Promise<number> {
  const ofBank = [...parameters.journals.values()].filter(({ type }) => type === 'BQ')
  if (ofBank.length === 0) return parameters.banks.length
  await write(
    bankTable,
    parameters.banks.map(({ account, ...bank }) => {
      const journal = ofBank.find((each) => account !== null && each.account === account) ?? ofBank[0]!
      return {
        ...bank,
        accountId: (account && accounts.general.get(account)) || null,
        journalId: journals.get(journal.code)!,
      }
    }),
  )
  return 0
}

/** The file has the rank of an axis, and neither code nor name. */
async function loadAxes(write: Write, ids: IdSource, { axes, sections, defaultSections }: TraParameters) {
  const ranks = Array.from({ length: axes }, (_, i) => i + 1)
  const found = ranks.flatMap((rank) => (sections.get(rank) ?? []).map((section) => ({ ...section, rank })))
  await ids.reserve(axes + 2 * found.length)
  const axisIds = ranks.map(() => ids.next())
  const idOf = new Map(found.map(({ rank, code }) => [sectionKey(`A${rank}`, code), ids.next()]))
  await write(
    axisTable,
    ranks.map((rank, i) => ({
      id: axisIds[i]!,
      code: `A${rank}`,
      name: `Axe ${rank}`,
      defaultSectionId: idOf.get(sectionKey(`A${rank}`, defaultSections.get(rank) ?? '')) ?? null,
    })),
  )
  await write(
    sectionTable,
    found.map(({ code, name, rank }) => ({
      id: idOf.get(sectionKey(`A${rank}`, code))!,
      axisId: axisIds[rank - 1]!,
      code,
      name,
      accountRoots: [],
      closed: false,
    })),
  )
  return idOf
}
