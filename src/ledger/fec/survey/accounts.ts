/**
 * Maps the lines of a FEC to accounts of the ledger, and numbers these.
 *
 * - Without a third party: the account of CompteNum.
 * - With one (CompAuxNum): the third party's own account, whose number is a root followed by the third party's number.
 *   The root is the first three digits of CompteNum: 401 (supplier), 411 (customer) and 421 (employee) get a company or
 *   employee. Collective accounts with the same root (401000, 401100) are merged here, because they hold the same third
 *   party. Other roots (404 suppliers of fixed assets, 408 invoices not received, 455 partners, 467 ...) keep their
 *   root and get an account per third party without a company: the balance sheet shows them on other lines than 401, so
 *   moving them under 401 would falsify it.
 * - Numbers consist of digits and capitals. If two numbers become equal that way (`AB-1` and `AB1`), the one that
 *   needed no change keeps its number, and the others get X2, X3 and so on in alphabetical order, regardless of the
 *   order of lines. A file of another year may contain other ones, so an account numbered by an earlier import is found
 *   again by its name.
 */

import type { FecLine } from '../../../formats/fec/parse.ts'
import { partyKind } from '../../../formats/party-kind.ts'

export interface FecAccount {
  /** Identifies an account within the file: CompteNum, or root, tab and CompAuxNum. */
  key: string
  name: string
  /** Whether the name is its own rather than a substitute. */
  hasOwnName: boolean
  party: 'company' | 'employee' | undefined
}

/** The account key of a line; undefined if CompteNum contains no digit or letter. */
export function accountKey(line: FecLine): string | undefined {
  const number = normalise(line.accountNumber)
  if (number === '') return undefined
  return line.thirdPartyNumber === '' ? line.accountNumber : `${number.slice(0, 3)}\t${line.thirdPartyNumber}`
}

export function fecAccount(key: string, line: FecLine): FecAccount {
  const kind = line.thirdPartyNumber === '' ? undefined : partyKind(key)
  const party = kind && (kind === 'employee' ? 'employee' : 'company')
  const account: FecAccount = { key, name: '', hasOwnName: false, party }
  nameAccount(account, line)
  return account
}

/**
 * Takes the first name that the file gives the account; a third party without one is named after its collective
 * account.
 */
export function nameAccount(account: FecAccount, line: FecLine): void {
  const ownName = line.thirdPartyNumber === '' ? line.accountName : line.thirdPartyName
  if (account.hasOwnName || (ownName === '' && account.name !== '')) return
  // Copied, because a slice of a decoded chunk would keep the whole chunk in memory as long as the account.
  account.name = Buffer.from(ownName || line.accountName || line.accountNumber).toString()
  account.hasOwnName = ownName !== ''
}

/**
 * Numbers all accounts of a file; the result does not depend on their order.
 * @param known accounts that exist in the folder, by number
 */
export function numberAccounts(
  accounts: Iterable<FecAccount>,
  known: ReadonlyMap<string, { name: string }>,
): Map<FecAccount, string> {
  // Accounts without a third party first: their numbers come from the chart of accounts and must not change.
  const rank = ({ key }: FecAccount) => (key.includes('\t') ? 2 : 0) + (/[^0-9A-Z\t]/.test(key) ? 1 : 0)
  const sorted = [...accounts].toSorted(
    (one, other) => rank(one) - rank(other) || (one.key < other.key ? -1 : 1),
  )
  const numbers = new Map<FecAccount, string>()
  const taken = new Set<string>()
  const take = (account: FecAccount, number: string) => {
    taken.add(number)
    numbers.set(account, number)
  }
  for (const account of sorted)
    for (const number of numbersFor(account.key)) {
      if (!known.has(number)) break
      if (taken.has(number) || known.get(number)!.name !== account.name) continue
      take(account, number)
      break
    }
  for (const account of sorted)
    if (!numbers.has(account)) take(account, numbersFor(account.key).find((number) => !taken.has(number))!)
  return numbers
}

/** The preferred number of an account and then its alternatives, without end. */
function* numbersFor(key: string): Generator<string, undefined> {
  const preferred = preferredNumber(key)
  yield preferred
  for (let copy = 2; ; copy += 1) yield `${preferred}X${copy}`
}

/** An account number has at most 40 characters; the last ones are reserved for X2 and the like. */
const preferredCharactersMax = 34

function preferredNumber(key: string): string {
  const [root, thirdParty] = key.split('\t')
  if (thirdParty === undefined) return normalise(key).slice(0, preferredCharactersMax)
  const number = normalise(thirdParty) || 'X'
  // Some programs repeat the root in the third party's number: 401FIT, not 401401FIT.
  return (number.startsWith(root!) ? number : root + number).slice(0, preferredCharactersMax)
}

/** Keeps digits and capitals, without accents: `Café-1` is CAFE1. */
function normalise(number: string): string {
  if (/^[0-9A-Z]*$/.test(number)) return number
  return number
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^0-9A-Z]/g, '')
}
