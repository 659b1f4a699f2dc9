/**
 * Maps the lines of a FEC to accounts of the ledger, and numbers these accounts (docs/spec/imports.md#accounts).
 *
 * - The account of a line is CompteNum. Below the roots 401 (supplier), 411 (customer) and 421 (employee), a line with
 *   CompAuxNum is booked on the third party's own account, which gets a company or employee. On any other account the
 *   auxiliary stays with the movement: an account of its own would need an invented number (60771 for 607000 and 71),
 *   which reads as another account of the chart.
 * - (CompteNum, CompAuxNum) as filed identifies an account, in this file and in files of other years. An account keeps
 *   the number it once got, so numbers depend on the folder, but not on the order of lines.
 * - Accounts that an earlier version imported do not have this identity. They are found by number, or by name if
 *   several accounts wanted the same number.
 */

import type { FecLine } from '../../../formats/fec/parse.ts'
import { accountNumber, partyKind } from '../../../formats/items/accounts/parties.ts'

export interface FecAccount {
  /** Identifies the account: CompteNum alone; or CompteNum, a line feed (which no field contains) and CompAuxNum. */
  key: string
  filedNumber: string
  filedName: string
  /** Null if the account is not a third party's. */
  auxiliaryNumber: string | null
  auxiliaryName: string | null
}

/** An account that the folder already has. The filed members are null if no FEC has named the account yet. */
export type KnownAccount = { id: string; number: string; name: string } & {
  [Member in Exclude<keyof FecAccount, 'key'>]: FecAccount[Member] | null
}

/** The account key of a line; undefined if CompteNum contains no digit or letter. */
export function accountKey(line: FecLine): string | undefined {
  const number = accountNumber(line.accountNumber)
  if (number === '') return undefined
  return hasOwnAccount(line, number) ? `${line.accountNumber}\n${line.thirdPartyNumber}` : line.accountNumber
}

/** The first three characters of a line's account if its auxiliary stays with the movement; otherwise undefined. */
export function rootOfAuxiliary(line: FecLine): string | undefined {
  if (line.thirdPartyNumber === '') return undefined
  const number = accountNumber(line.accountNumber)
  return hasOwnAccount(line, number) ? undefined : number.slice(0, 3)
}

function hasOwnAccount({ thirdPartyNumber }: FecLine, number: string): boolean {
  return thirdPartyNumber !== '' && partyKind(number) !== undefined
}

export function fecAccount(key: string, line: FecLine): FecAccount {
  const isParty = key.includes('\n')
  const account: FecAccount = {
    key: copyOf(key),
    filedNumber: copyOf(line.accountNumber),
    filedName: '',
    auxiliaryNumber: isParty ? copyOf(line.thirdPartyNumber) : null,
    auxiliaryName: isParty ? '' : null,
  }
  nameAccount(account, line)
  return account
}

/** Keeps the earliest non-empty name of the account in the file, and likewise that of the third party. */
export function nameAccount(account: FecAccount, line: FecLine): void {
  if (account.filedName === '' && line.accountName !== '') account.filedName = copyOf(line.accountName)
  if (account.auxiliaryName === '' && line.thirdPartyName !== '')
    account.auxiliaryName = copyOf(line.thirdPartyName)
}

/** The name of the third party, else the name of the account, else the number of the account. */
export function nameOf({ auxiliaryName, filedName, filedNumber }: FecAccount): string {
  return auxiliaryName || filedName || filedNumber
}

/** A copy to keep: a slice of a decoded chunk would keep the whole chunk in memory. */
export function copyOf(text: string): string {
  return Buffer.from(text).toString()
}

interface NumberedAccount {
  account: FecAccount
  number: string
  /** The account in the folder; undefined if the folder does not have it. */
  known: KnownAccount | undefined
}

/** Numbers all accounts of a file. The result does not depend on their order. */
export function numberAccounts(accounts: Iterable<FecAccount>, known: readonly KnownAccount[]) {
  const byNumber = new Map(known.map((account) => [account.number, account]))
  const identified = known.filter(({ filedNumber }) => filedNumber !== null)
  const byIdentity = new Map(identified.map((account) => [identityOf(account), account]))
  const taken = new Set(identified.map(({ number }) => number))
  const numbered: NumberedAccount[] = []
  const take = (account: FecAccount, number: string) => {
    taken.add(number)
    numbered.push({ account, number, known: byNumber.get(number) })
  }
  const unidentified: FecAccount[] = []
  for (const account of accounts) {
    const same = byIdentity.get(account.key)
    if (same === undefined) unidentified.push(account)
    else numbered.push({ account, number: same.number, known: same })
  }
  const unknown: FecAccount[] = []
  for (const account of unidentified.toSorted(byPrecedence)) {
    const number = numberByName(account, byNumber, taken)
    if (number === undefined) unknown.push(account)
    else take(account, number)
  }
  for (const account of unknown) take(account, numbersFor(account).find((number) => !taken.has(number))!)
  return numbered
}

/** The number under which an earlier version imported the account, which is recognised by its name. */
function numberByName(
  account: FecAccount,
  known: ReadonlyMap<string, KnownAccount>,
  taken: ReadonlySet<string>,
): string | undefined {
  for (const number of copiesOf(preferredNumber(account))) {
    const other = known.get(number)
    if (other === undefined) return undefined
    if (!taken.has(number) && other.name === nameOf(account)) return number
  }
}

/**
 * Whether a new account could not get the number in the file, because another account has it or because it contains
 * other characters.
 */
export function isRenumbered({ account, number, known }: NumberedAccount): boolean {
  const { filedNumber, auxiliaryNumber } = account
  return known === undefined && number !== (auxiliaryNumber === null ? filedNumber : preferredNumber(account))
}

function identityOf({ filedNumber, auxiliaryNumber }: KnownAccount): string {
  return auxiliaryNumber === null ? filedNumber! : `${filedNumber}\n${auxiliaryNumber}`
}

/**
 * Decides which of several accounts gets a number that they all want: first one without a third party, since its number
 * comes from the chart of accounts; then the one with the lowest CompteNum; then one whose number needed no change.
 */
function byPrecedence(one: FecAccount, other: FecAccount): number {
  const rank = ({ filedNumber, auxiliaryNumber }: FecAccount) =>
    auxiliaryNumber !== null ? 2 : isPlain(filedNumber) ? 0 : 1
  return (
    rank(one) - rank(other) ||
    compare(one.filedNumber, other.filedNumber) ||
    Number(isPlain(other.auxiliaryNumber ?? '')) - Number(isPlain(one.auxiliaryNumber ?? '')) ||
    compare(one.key, other.key)
  )
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** Yields the preferred number of an account, and then alternatives without end. */
function* numbersFor(account: FecAccount): Generator<string, undefined> {
  yield preferredNumber(account)
  const whole = accountNumber(account.filedNumber) + auxiliaryPart(account)
  yield* copiesOf(whole.slice(0, preferredCharactersMax))
}

function* copiesOf(number: string): Generator<string, undefined> {
  yield number
  for (let copy = 2; ; copy += 1) yield `${number}X${copy}`
}

/** An account number has at most 40 characters. The last ones are reserved for endings such as X2. */
const preferredCharactersMax = 34

function preferredNumber(account: FecAccount): string {
  const number = accountNumber(account.filedNumber)
  if (account.auxiliaryNumber === null) return number.slice(0, preferredCharactersMax)
  const root = number.slice(0, 3)
  const auxiliary = auxiliaryPart(account)
  // Some programs repeat the root in the third party's number: 401FIT, not 401401FIT.
  return (auxiliary.startsWith(root) ? auxiliary : root + auxiliary).slice(0, preferredCharactersMax)
}

/**
 * The part of an account's number that stands for the third party. It is never empty, because the number would then be
 * that of the collective account.
 */
function auxiliaryPart({ auxiliaryNumber }: FecAccount): string {
  return auxiliaryNumber === null ? '' : accountNumber(auxiliaryNumber) || 'X'
}

function isPlain(number: string): boolean {
  return /^[0-9A-Z]*$/.test(number)
}
