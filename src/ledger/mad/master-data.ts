/**
 * The master data of a MAD file, which its entries refer to, in memory: accounts, journals, payments, axes,
 * exercices. Checks each item by its schema. Also checks that ids and codes are unique, and that a member which repeats
 * that of another item is equal to it.
 */

import { z } from 'zod'
import { AccountingFolder, type FileFolder } from '../../formats/items/accounting-folder.ts'
import { accountRow, accountShape, type FileAccount } from '../../formats/items/accounts/account.ts'
import { addressItem, addressOf, type FileAddress } from '../../formats/items/accounts/address.ts'
import { companyRow, employeeRow } from '../../formats/items/accounts/parties.ts'
import { type FileVat, vatRow } from '../../formats/items/accounts/vat.ts'
import { AnalyticalAxe, axisRow, type FileAxis, sectionRows } from '../../formats/items/axis.ts'
import { Exercice, exerciceRow, type FileExercice, monthsOf } from '../../formats/items/exercice.ts'
import {
  Bank,
  bankRow,
  type FileBank,
  type FileJournal,
  Journal,
  journalRow,
  journalTypeLabels,
} from '../../formats/items/journal.ts'
import { type FilePayment, Payment, paymentMode, paymentRow } from '../../formats/items/payment.ts'
import { text } from '../../formats/items/values.ts'
import { type FileItem, FileProblems, pathOf, readItem } from '../../formats/mad/read-items.ts'
import type { IdTable, MasterRows } from '../import/master-data.ts'

/** Only the version is checked. The other members describe the export. */
const Metadata = z.looseObject({ version: text }, 'an object is expected')

interface Named {
  producerId: string
}

/** For each member by which an item names another item: the list that has the named item. */
const namedBy = {
  account: 'accounts',
  counterpartAccount: 'accounts',
  correspondanceAccount: 'accounts',
  doubtfulAccount: 'accounts',
  payment: 'payments',
  journal: 'journals',
} as const
type NamedTable = (typeof namedBy)[keyof typeof namedBy]

interface FileSection extends Named {
  code: string
  name: string
  axis: FileAxis
}

/** All lists of `data` except `data.entries`. */
const listPlaces = ['payments', 'banks', 'journals', 'accounts', 'exercices', 'analytics'].map(
  (name) => `data.${name}`,
)
const folderPlace = 'data.accountingFolder'
/** The places that must be read before the entries can be. */
export const masterDataPlaces: readonly string[] = ['metadata', folderPlace, ...listPlaces]
/**
 * These places, the file itself and `data`. The last two become items if they are not objects, which is a problem.
 */
export const placesBesideEntries: ReadonlySet<string> = new Set(['', 'data', ...masterDataPlaces])

export class MadMasterData {
  readonly problems = new FileProblems()
  folder: FileFolder | undefined
  /** The items of the file, by id. */
  readonly items = {
    payments: new Map<string, FilePayment>(),
    /** The VAT codes that companies name, as the file has no list of them. */
    vat_codes: new Map<string, FileVat>(),
    accounts: new Map<string, FileAccount>(),
    journals: new Map<string, FileJournal>(),
    banks: new Map<string, FileBank>(),
    axes: new Map<string, FileAxis>(),
    sections: new Map<string, FileSection>(),
    exercices: new Map<string, FileExercice>(),
  }
  /**
   * Counts addresses with a full name that differs from their parts, and exercices with a duration that differs from
   * their dates.
   */
  readonly counts = { fullNames: 0, durations: 0 }
  /** Accounts of employees that have no data, in a file that was made for a token without the group `employees`. */
  readonly hiddenEmployees: string[] = []
  /** The place of each item, for messages. */
  readonly #placeOf = new Map<object, string>()
  readonly #checks: (() => void)[] = []
  readonly #codes = new Map<string, string>()

  /** The path of an id, for messages. */
  pathOfId(table: IdTable, id: string): string {
    return `${this.#placeOf.get(this.items[table].get(id)!) ?? table}.producerId`
  }

  /** @param item an item at one of `placesBesideEntries` */
  take(item: FileItem): void {
    const { place, index, value } = item
    const at = pathOf(item)
    const isList = listPlaces.includes(place)
    if (place === '' || place === 'data')
      this.problems.add(at, value, 'a full export is expected: an object with metadata and data')
    else if (isList !== (index !== undefined))
      this.problems.add(place, value, isList ? 'a list is expected' : 'an object is expected')
    else if (place === 'metadata') this.#takeMetadata(item)
    else if (place === folderPlace) {
      this.folder = readItem(AccountingFolder, item, this.problems)
      this.#checkAddress(this.folder?.address)
    } else if (place === 'data.payments') this.#takePayment(item, at)
    else if (place === 'data.banks') this.#takeBank(item, at)
    else if (place === 'data.journals') this.#takeJournal(item, at)
    else if (place === 'data.accounts') this.#takeAccount(item, at)
    else if (place === 'data.exercices') this.#takeExercice(item, at)
    else this.#takeAxis(item, at)
  }

  /**
   * Call it after the last item, because an item may refer to later items. @param complete the members that the file
   * has
   */
  check(complete: ReadonlySet<string>): void {
    for (const place of masterDataPlaces)
      if (!complete.has(place)) this.problems.add(place, undefined, 'missing: a full export has it')
    // An empty list in place of the folder has no item that could be refused.
    if (this.folder === undefined && complete.has(folderPlace))
      this.problems.add(folderPlace, [], 'an object is expected')
    for (const check of this.#checks) check()
    this.#checkPeriods()
  }

  /** @param timeZone the time zone of the days on which exercices were closed */
  rows(timeZone: string): MasterRows {
    const { payments, vat_codes, accounts, journals, banks, axes, exercices } = this.items
    const ofAccounts = [...accounts.values()]
    const rows = {
      payments: [...payments.values()].map(paymentRow),
      vat_codes: [...vat_codes.values()].map(vatRow),
      accounts: ofAccounts.map(accountRow),
      journals: [...journals.values()].map(journalRow),
      banks: [...banks.values()].map(bankRow),
      axes: [...axes.values()].map(axisRow),
      sections: [...axes.values()].flatMap(sectionRows),
      exercices: [...exercices.values()].map((each) => exerciceRow(each, timeZone)),
    }
    // New ids ascend in the same order as the ids of the file, which is the order of exports.
    for (const table of Object.values(rows)) table.sort((one, other) => Number(one.id) - Number(other.id))
    return {
      ...rows,
      companies: ofAccounts.flatMap((each) =>
        'company' in each ? [companyRow(each.producerId, each.company)] : [],
      ),
      employees: ofAccounts.flatMap((each) =>
        'employee' in each && each.employee ? [employeeRow(each.producerId, each.employee)] : [],
      ),
    }
  }

  /**
   * Adds a problem if the file lacks the item that `given` names, or if that item has other values in the members of
   * `given`.
   */
  checkNamed(table: NamedTable, given: Named | null, at: string): void {
    if (given !== null) this.checkSame(given, this.items[table].get(given.producerId), at, `data.${table}`)
  }

  /** Adds a problem if `known` is undefined, or has other values in the members of `given`. */
  checkSame(given: Named, known: Named | undefined, at: string, list: string): void {
    if (known === undefined) {
      this.problems.add(`${at}.producerId`, given.producerId, `${list} has no such id`)
      return
    }
    for (const [name, value] of Object.entries(given)) {
      if (value === known[name as keyof Named]) continue
      const place = this.#placeOf.get(known) ?? list
      const shown = typeof value === 'bigint' ? String(value) : value
      this.problems.add(`${at}.${name}`, shown, `${place} has the same id and another ${name}`)
    }
  }

  /** Checks the members by which an item, or a part of it, names other items. */
  #checkMembers(item: object, at: string): void {
    for (const [name, value] of Object.entries(item)) {
      const path = `${at}.${name}`
      if (typeof value !== 'object' || value === null) continue
      if (Object.hasOwn(namedBy, name)) this.checkNamed(namedBy[name as keyof typeof namedBy], value, path)
      else if (name === 'vat') this.#takeVat(value, path)
      else this.#checkMembers(value, path)
    }
  }

  /**
   * Counts a full name that is not made of the other members. It is no problem: a file of another program may have only
   * the full name.
   */
  #checkAddress(address: FileAddress | null | undefined): void {
    if (!address) return
    const given = address.fullName ?? address.fullname
    if (given !== null && given !== addressItem(addressOf(address)).fullName) this.counts.fullNames += 1
  }

  #takeMetadata(item: FileItem): void {
    const read = readItem(Metadata, item, this.problems)
    if (read !== undefined && !/^1\./.test(read.version))
      this.problems.add('metadata.version', read.version, 'version 1 of the format is expected')
  }

  #takePayment(item: FileItem, at: string): void {
    const payment = this.#read(Payment, item, this.items.payments)
    if (payment === undefined) return
    const { code } = paymentMode(payment.additionalProducerProperties.code)
    if (payment.code !== code) this.problems.add(`${at}.code`, payment.code, `${code} is expected`)
  }

  #takeBank(item: FileItem, at: string): void {
    const bank = this.#read(Bank, item, this.items.banks)
    if (bank === undefined) return
    const { type, ...journal } = bank.journal
    this.#checks.push(() => this.#checkMembers({ account: bank.account, journal }, at))
  }

  #takeJournal(item: FileItem, at: string): void {
    const journal = this.#read(Journal, item, this.items.journals)
    if (journal === undefined) return
    this.#checkUnique('journal', journal.customerReferenceCode, at, 'customerReferenceCode')
    const label = journalTypeLabels[journal.additionalProducerProperties.type]
    if (journal.type !== label) this.problems.add(`${at}.type`, journal.type, `${label} is expected`)
    this.#checks.push(() => this.#checkMembers(journal, at))
  }

  #takeAccount(item: FileItem, at: string): void {
    const { value } = item
    const number = typeof value === 'object' && value !== null && 'number' in value ? value.number : undefined
    const shape = accountShape(typeof number === 'string' ? number : '')
    const account = this.#read<FileAccount>(shape, item, this.items.accounts)
    if (account === undefined) return
    if ('company' in account) this.#checkAddress(account.company.address)
    if ('employee' in account) {
      if (account.employee) this.#checkAddress(account.employee.address)
      else this.hiddenEmployees.push(account.producerId)
    }
    this.#checkUnique('account', account.number, at, 'number')
    this.#checks.push(() => this.#checkMembers(account, at))
  }

  /** The first company that names a VAT code defines it. */
  #takeVat(vat: FileVat, at: string): void {
    const known = this.items.vat_codes.get(vat.producerId)
    if (known !== undefined) this.checkSame(vat, known, at, 'data.accounts')
    else {
      this.items.vat_codes.set(vat.producerId, vat)
      this.#placeOf.set(vat, at)
      this.#checkUnique('VAT code', vat.customerReferenceCode, at, 'customerReferenceCode')
    }
  }

  #takeExercice(item: FileItem, at: string): void {
    const exercice = this.#read(Exercice, item, this.items.exercices)
    if (exercice === undefined) return
    const { start, end, duration, closed } = exercice.period
    if (end <= start) this.problems.add(`${at}.period.end`, end, `a day after ${start} is expected`)
    if (duration.text !== String(monthsOf(start, end))) this.counts.durations += 1
    if ((exercice.state === 'closed') !== (closed !== null)) {
      const message =
        closed === null ? 'open is expected without period.closed' : 'closed is expected with period.closed'
      this.problems.add(`${at}.state`, exercice.state, message)
    }
  }

  /** Exercices must not overlap, because an entry belongs to the exercice of its date. */
  #checkPeriods(): void {
    const sorted = [...this.items.exercices.values()].toSorted((one, other) =>
      one.period.start < other.period.start ? -1 : 1,
    )
    for (const [i, later] of sorted.entries()) {
      const before = sorted[i - 1]
      if (before === undefined || before.period.end < later.period.start) continue
      const message = `a day after ${before.period.end} is expected, the end of ${this.#placeOf.get(before)}`
      this.problems.add(`${this.#placeOf.get(later)}.period.start`, later.period.start, message)
    }
  }

  #takeAxis(item: FileItem, at: string): void {
    const axis = this.#read(AnalyticalAxe, item, this.items.axes)
    if (axis === undefined) return
    this.#checkUnique('axis', axis.code, at, 'code')
    for (const [i, { producerId, code, name }] of axis.sections.entries()) {
      const place = `${at}.sections[${i}]`
      this.#keep(this.items.sections, { producerId, code, name, axis }, place)
      this.#checkUnique(`section of axis ${axis.producerId}`, code, place, 'code')
    }
    const { defaultSectionId } = axis.additionalProducerProperties
    if (defaultSectionId === null || axis.sections.some(({ producerId }) => producerId === defaultSectionId))
      return
    const path = `${at}.additionalProducerProperties.defaultSectionId`
    this.problems.add(path, defaultSectionId, 'the axis has no such section')
  }

  /** Reads an item and stores it by its id. Returns undefined if the item has problems. */
  #read<Item extends Named>(
    schema: z.ZodType<Item>,
    item: FileItem,
    known: Map<string, NoInfer<Item>>,
  ): Item | undefined {
    const read = readItem(schema, item, this.problems)
    if (read !== undefined) this.#keep(known, read, pathOf(item))
    return read
  }

  #keep<Item extends Named>(known: Map<string, Item>, item: Item, at: string): void {
    const { producerId } = item
    const other = known.get(producerId)
    if (other !== undefined)
      this.problems.add(`${at}.producerId`, producerId, `${this.#placeOf.get(other)} has the same id`)
    known.set(producerId, item)
    this.#placeOf.set(item, at)
  }

  /** Adds a problem if a number or code that must be unique in a folder occurs twice. */
  #checkUnique(what: string, code: string, at: string, member: string): void {
    const key = JSON.stringify([what, code])
    const other = this.#codes.get(key)
    if (other !== undefined)
      this.problems.add(`${at}.${member}`, code, `${other} has the same: it must be unique`)
    this.#codes.set(key, at)
  }
}
