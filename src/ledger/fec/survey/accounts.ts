/**
 * Which account a line of a FEC goes to, and under which number the ledger knows it.
 *
 * - Without a third party: the account of CompteNum.
 * - With one (CompAuxNum): the third party's own account, whose number is a root and the third party's
 *   number. The root is the first three digits of CompteNum: 401 (supplier), 411 (customer) and 421
 *   (employee) get their company or employee. The collective accounts below one root (401000, 401100) are one
 *   here, as a third party is one. Other roots (404 suppliers of fixed assets, 408 invoices not received, 455
 *   partners, 467 ...) stay what they are and get an account per third party without a company: the balance
 *   sheet shows them on other lines than 401, so moving them under 401 would falsify it.
 * - Numbers hold digits and capitals only. Where two numbers become the same by that (`AB-1` and `AB1`), the
 *   one that needed no change keeps it, and the others get X2, X3 and so on in alphabetical order, whatever
 *   the order of lines. Which of them a file has differs from year to year: what an earlier import numbered
 *   is found again by its name.
 */

import type { FecLine } from '../../../formats/fec/parse.ts'
import { partyKind } from '../../../formats/party-kind.ts'

export interface FecAccount {
  /** What tells one account of the file from another: CompteNum, or root, a tab and CompAuxNum. */
  key: string
  name: string
  /** Whether the name is its own, not one that stands in. */
  hasOwnName: boolean
  party: 'company' | 'employee' | undefined
}

/** The account of a line, as a key; undefined where CompteNum holds no digit or letter. */
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

/** The first name that the file has for it; a third party without one is called as its collective account. */
export function nameAccount(account: FecAccount, line: FecLine): void {
  const ownName = line.thirdPartyNumber === '' ? line.accountName : line.thirdPartyName
  if (account.hasOwnName || (ownName === '' && account.name !== '')) return
  // Copied: a piece of a decoded chunk would keep the whole chunk in memory for as long as the account.
  account.name = Buffer.from(ownName || line.accountName || line.accountNumber).toString()
  account.hasOwnName = ownName !== ''
}

/**
 * Numbers for all accounts of a file; the same for the same accounts in any order.
 * @param known accounts that the folder has already, by number
 */
export function numberAccounts(
  accounts: Iterable<FecAccount>,
  known: ReadonlyMap<string, { name: string }>,
): Map<FecAccount, string> {
  // Accounts without a third party first: their numbers are those of the chart of accounts and must not give
  // way.
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

/** The number that an account should have, and what it may have instead, without end. */
function* numbersFor(key: string): Generator<string, undefined> {
  const preferred = preferredNumber(key)
  yield preferred
  for (let copy = 2; ; copy += 1) yield `${preferred}X${copy}`
}

/** An account number has at most 40 characters; the last ones are left for X2 and its like. */
const preferredCharactersMax = 34

function preferredNumber(key: string): string {
  const [root, thirdParty] = key.split('\t')
  if (thirdParty === undefined) return normalise(key).slice(0, preferredCharactersMax)
  const number = normalise(thirdParty) || 'X'
  // Some programs repeat the root in the third party's number: 401FIT, not 401401FIT.
  return (number.startsWith(root!) ? number : root + number).slice(0, preferredCharactersMax)
}

/** Digits and capitals, accents dropped: `Café-1` is CAFE1. */
function normalise(number: string): string {
  if (/^[0-9A-Z]*$/.test(number)) return number
  return number
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^0-9A-Z]/g, '')
}
