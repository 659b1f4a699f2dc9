/**
 * What the entries of a MAD file refer to, in memory: its accounts, journals, payments, axes, exercices. Everything is
 * checked: each item by its schema, ids and codes for being unique, and what items repeat of each other for being the
 * same.
 */

import { z } from 'zod'
import { AccountingFolder, type FileFolder } from '../../formats/items/accounting-folder.ts'
import { accountShape, type FileAccount } from '../../formats/items/accounts/account.ts'
import { addressItem, addressOf, type FileAddress } from '../../formats/items/accounts/address.ts'
import type { FileVat } from '../../formats/items/accounts/vat.ts'
import { AnalyticalAxe, type FileAxis } from '../../formats/items/axis.ts'
import { Bank, type FileBank } from '../../formats/items/bank.ts'
import { Exercice, type FileExercice, monthsOf } from '../../formats/items/exercice.ts'
import { type FileJournal, Journal, journalTypeLabels } from '../../formats/items/journal.ts'
import { type FilePayment, Payment } from '../../formats/items/payment.ts'
import { text } from '../../formats/items/values.ts'
import { type FileItem, pathOf } from '../../formats/mad/read/json-items.ts'
import type { FileProblems, Path } from '../../formats/mad/read/problems.ts'
import { readItem } from '../../formats/mad/read/read-item.ts'
import { paymentMode } from '../../formats/payment.ts'

/** The rest tells of the export, not of the ledger. */
const Metadata = z.looseObject({ version: text }, 'an object is expected')

export interface FileSection {
  producerId: string
  code: string
  name: string
  axis: FileAxis
}

/** Where an item stands in the file. */
export interface Place {
  /** Such as `data.entries[12]`. */
  item: string
  path: Path
}

export const within = ({ item, path }: Place, ...further: Path): Place => ({
  item,
  path: [...path, ...further],
})

/** The lists of `data` but the entries. */
const listPlaces = ['payments', 'banks', 'journals', 'accounts', 'exercices', 'analytics'].map(
  (name) => `data.${name}`,
)
const folderPlace = 'data.accountingFolder'
/** What has to be read before the entries can be. */
export const booksPlaces: readonly string[] = ['metadata', folderPlace, ...listPlaces]
/** What `Books` takes. The file itself and its data are items only where they are no objects, which is a problem. */
export const takenPlaces: ReadonlySet<string> = new Set(['', 'data', ...booksPlaces])
export const entriesPlace = 'data.entries'

export class Books {
  readonly problems: FileProblems
  folder: FileFolder | undefined
  readonly payments = new Map<string, FilePayment>()
  readonly banks = new Map<string, FileBank>()
  readonly journals = new Map<string, FileJournal>()
  readonly accounts = new Map<string, FileAccount>()
  readonly exercices = new Map<string, FileExercice>()
  readonly axes = new Map<string, FileAxis>()
  readonly sections = new Map<string, FileSection>()
  /** Of the companies: the file has no list of them. */
  readonly vatCodes = new Map<string, FileVat>()
  /** Addresses whose full name is not made of their parts. */
  fullNames = 0
  /** Employees without data, in a file that was made for a token without the group `employees`. */
  hiddenEmployees = 0
  /** Exercices whose duration is not that of their days. */
  durations = 0
  /** Items by their place, for messages. */
  readonly #placeOf = new Map<object, string>()
  readonly #checks: (() => void)[] = []
  readonly #taken = new Map<string, string>()

  readonly #takers: Readonly<Record<string, (item: FileItem) => void>> = {
    metadata: (item) => this.#takeMetadata(item),
    [folderPlace]: (item) => this.#takeFolder(item),
    'data.payments': (item) => this.#takePayment(item),
    'data.banks': (item) => this.#takeBank(item),
    'data.journals': (item) => this.#takeJournal(item),
    'data.accounts': (item) => this.#takeAccount(item),
    'data.exercices': (item) => this.#takeExercice(item),
    'data.analytics': (item) => this.#takeAxis(item),
    '': (item) => this.#refuseShape(item),
    data: (item) => this.#refuseShape(item),
  }

  constructor(problems: FileProblems) {
    this.problems = problems
  }

  /** Where the file defines it. */
  placeOf(item: object): string | undefined {
    return this.#placeOf.get(item)
  }

  /** @param item of `takenPlaces` */
  take(item: FileItem): void {
    const { place, index, value } = item
    const isList = listPlaces.includes(place)
    if (isList === (index !== undefined)) this.#takers[place]!(item)
    else this.problems.add(place, [], value, isList ? 'a list is expected' : 'an object is expected')
  }

  /** Call after the last item: what items refer to may follow them. @param complete members that the file has */
  check(complete: ReadonlySet<string>): void {
    for (const place of booksPlaces)
      if (!complete.has(place)) this.problems.add(place, [], undefined, 'missing: a full export has it')
    // An empty list in its place has no item that could be refused.
    if (this.folder === undefined && complete.has(folderPlace))
      this.problems.add(folderPlace, [], [], 'an object is expected')
    for (const check of this.#checks) check()
    this.#checkPeriods()
  }

  /** Adds a problem unless `given` names an account of the file, with its number and name. */
  checkAccount(given: { producerId: string; number: string; name: string } | null, at: Place): void {
    if (given !== null) this.checkSame(given, this.accounts.get(given.producerId), at, 'data.accounts')
  }

  checkPayment(given: { producerId: string; name?: string; code: string } | null, at: Place): void {
    if (given !== null) this.checkSame(given, this.payments.get(given.producerId), at, 'data.payments')
  }

  /** Adds a problem unless `known` exists and has the members that `given` repeats of it. */
  checkSame<Item extends { producerId: string }>(
    given: Item,
    known: NoInfer<Item> | undefined,
    at: Place,
    list: string,
  ): void {
    const { item, path } = at
    if (known === undefined) {
      this.problems.add(item, [...path, 'producerId'], given.producerId, `${list} has no such id`)
      return
    }
    for (const name in given) {
      if (given[name] === known[name]) continue
      const value = typeof given[name] === 'bigint' ? String(given[name]) : given[name]
      const place = this.#placeOf.get(known) ?? list
      this.problems.add(item, [...path, name], value, `${place} has the same id and another ${name}`)
    }
  }

  #refuseShape(item: FileItem): void {
    const message = 'a full export is expected: an object with metadata and data'
    this.problems.add(pathOf(item), [], item.value, message)
  }

  #takeFolder(item: FileItem): void {
    this.folder = readItem(AccountingFolder, item, this.problems)
    this.#checkAddress(this.folder?.address)
  }

  /** The full name is derived; a file of another program may have nothing else. */
  #checkAddress(address: FileAddress | null | undefined): void {
    if (!address) return
    const given = address.fullName ?? address.fullname
    if (given !== null && given !== addressItem(addressOf(address)).fullName) this.fullNames += 1
  }

  #takePayment(item: FileItem): void {
    const read = readItem(Payment, item, this.problems)
    if (read === undefined) return
    this.#keep(this.payments, read, item)
    const { code } = paymentMode(read.additionalProducerProperties.code)
    if (read.code !== code) this.problems.add(pathOf(item), ['code'], read.code, `${code} is expected`)
  }

  #takeMetadata(item: FileItem): void {
    const read = readItem(Metadata, item, this.problems)
    if (read !== undefined && !/^1\./.test(read.version))
      this.problems.add('metadata', ['version'], read.version, 'version 1 of the format is expected')
  }

  #takeBank(item: FileItem): void {
    const read = readItem(Bank, item, this.problems)
    if (read === undefined) return
    this.#keep(this.banks, read, item)
    const at = { item: pathOf(item), path: [] }
    this.#checks.push(() => {
      this.checkAccount(read.account, within(at, 'account'))
      const { producerId, name, customerReferenceCode } = read.journal
      const given = { producerId, name, customerReferenceCode }
      this.checkSame(given, this.journals.get(producerId), within(at, 'journal'), 'data.journals')
    })
  }

  #takeJournal(item: FileItem): void {
    const read = readItem(Journal, item, this.problems)
    if (read === undefined) return
    this.#keep(this.journals, read, item)
    const at = { item: pathOf(item), path: [] }
    this.#checkUnique('journal', read.customerReferenceCode, within(at, 'customerReferenceCode'))
    const label = journalTypeLabels[read.additionalProducerProperties.type]
    if (read.type !== label) this.problems.add(at.item, ['type'], read.type, `${label} is expected`)
    this.#checks.push(() => this.checkAccount(read.counterpartAccount, within(at, 'counterpartAccount')))
  }

  #takeAccount(item: FileItem): void {
    const { value } = item
    const number = typeof value === 'object' && value !== null && 'number' in value ? value.number : undefined
    const shape = accountShape(typeof number === 'string' ? number : '')
    const read: FileAccount | undefined = readItem(shape, item, this.problems)
    if (read === undefined) return
    this.#keep(this.accounts, read, item)
    if ('company' in read) this.#checkAddress(read.company.address)
    if ('employee' in read) {
      if (read.employee) this.#checkAddress(read.employee.address)
      else this.hiddenEmployees += 1
    }
    const at = { item: pathOf(item), path: [] }
    this.#checkUnique('account', read.number, within(at, 'number'))
    this.#checks.push(() => this.#checkAccountItem(read, at))
  }

  #checkAccountItem(account: FileAccount, at: Place): void {
    if ('counterpartAccount' in account)
      this.checkAccount(account.counterpartAccount, within(at, 'counterpartAccount'))
    if ('correspondanceAccount' in account)
      this.checkAccount(account.correspondanceAccount, within(at, 'correspondanceAccount'))
    if ('employee' in account && account.employee) {
      const { payment, miscellaneous } = account.employee
      this.checkPayment(payment, within(at, 'employee', 'payment'))
      this.checkAccount(
        miscellaneous?.doubtfulAccount ?? null,
        within(at, 'employee', 'miscellaneous', 'doubtfulAccount'),
      )
    }
    if (!('company' in account)) return
    const { payment, vat } = account.company
    this.checkPayment(payment, within(at, 'company', 'payment'))
    if (vat !== null) this.#takeVat(vat, within(at, 'company', 'vat'))
  }

  /** The first company that has it defines it. */
  #takeVat(vat: FileVat, at: Place): void {
    const known = this.vatCodes.get(vat.producerId)
    if (known !== undefined) this.checkSame(vat, known, at, 'data.accounts')
    else {
      this.vatCodes.set(vat.producerId, vat)
      this.#placeOf.set(vat, `${at.item}.${at.path.join('.')}`)
      this.#checkUnique('VAT code', vat.customerReferenceCode, within(at, 'customerReferenceCode'))
    }
  }

  #takeExercice(item: FileItem): void {
    const read = readItem(Exercice, item, this.problems)
    if (read === undefined) return
    this.#keep(this.exercices, read, item)
    const { start, end, duration, closed } = read.period
    const place = pathOf(item)
    if (end <= start) this.problems.add(place, ['period', 'end'], end, `a day after ${start} is expected`)
    if (duration.text !== String(monthsOf(start, end))) this.durations += 1
    if ((read.state === 'closed') !== (closed !== null))
      this.problems.add(place, ['state'], read.state, 'closed is expected exactly where period.closed is set')
  }

  /** An entry belongs to the exercice of its date. */
  #checkPeriods(): void {
    const sorted = [...this.exercices.values()].toSorted((one, other) =>
      one.period.start < other.period.start ? -1 : 1,
    )
    for (const [i, later] of sorted.entries()) {
      const before = sorted[i - 1]
      if (before === undefined || before.period.end < later.period.start) continue
      const message = `a day after ${before.period.end} is expected, the end of ${this.#placeOf.get(before)}`
      this.problems.add(this.#placeOf.get(later)!, ['period', 'start'], later.period.start, message)
    }
  }

  #takeAxis(item: FileItem): void {
    const read = readItem(AnalyticalAxe, item, this.problems)
    if (read === undefined) return
    this.#keep(this.axes, read, item)
    const at = { item: pathOf(item), path: [] }
    this.#checkUnique('axis', read.code, within(at, 'code'))
    for (const [i, section] of read.sections.entries()) {
      const { producerId, code, name } = section
      const place = within(at, 'sections', i)
      this.#checkId(this.sections, producerId, place)
      this.#checkUnique(`section of axis ${read.producerId}`, code, within(place, 'code'))
      const known = { producerId, code, name, axis: read }
      this.sections.set(producerId, known)
      this.#placeOf.set(known, `${at.item}.sections[${i}]`)
    }
    const { defaultSectionId } = read.additionalProducerProperties
    if (defaultSectionId !== null && !read.sections.some(({ producerId }) => producerId === defaultSectionId))
      this.problems.add(
        at.item,
        ['additionalProducerProperties', 'defaultSectionId'],
        defaultSectionId,
        'the axis has no such section',
      )
  }

  #keep<Item extends { producerId: string }>(known: Map<string, Item>, read: Item, item: FileItem): void {
    const place = pathOf(item)
    this.#checkId(known, read.producerId, { item: place, path: [] })
    known.set(read.producerId, read)
    this.#placeOf.set(read, place)
  }

  #checkId(known: ReadonlyMap<string, object>, producerId: string, at: Place): void {
    const other = known.get(producerId)
    if (other !== undefined)
      this.problems.add(
        at.item,
        [...at.path, 'producerId'],
        producerId,
        `${this.#placeOf.get(other)} has the same id`,
      )
  }

  /** Numbers and codes that the database keeps once in a folder. */
  #checkUnique(what: string, code: string, at: Place): void {
    const key = JSON.stringify([what, code])
    const other = this.#taken.get(key)
    if (other !== undefined)
      this.problems.add(at.item, at.path, code, `${other} has the same: it must be unique`)
    this.#taken.set(key, at.item)
  }
}
