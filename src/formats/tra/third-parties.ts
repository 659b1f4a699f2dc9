/**
 * The collective account and the code of each third party in a TRA file (docs/spec/tra.md#cae). In a ledger that was
 * imported from a FEC, the collective account is the one that the FEC gave. Any other ledger has one collective account
 * per root.
 */
import { accountNumber, type PartyKind, partyKind } from '../items/accounts/parties.ts'
import type { JournalType } from '../items/journal.ts'
import type { FiledAccount } from '../rows.ts'

export interface ThirdParty {
  /** The number of the account in the file. */
  code: string
  /** The number of its collective account in the file. */
  collective: string
}

/** The most characters of an account number (p. 22). */
const numberMax = 17

export function thirdParties(accounts: readonly FiledAccount[]) {
  const filed = filedCollectives(accounts)
  const ofRoots = new Map(collectiveAccounts(accounts))
  const ownOf = (account: FiledAccount) => {
    const number = account.auxiliaryNumber === null ? account.number : filedCollective(account)
    return number === undefined ? undefined : filed.get(number)
  }
  const parties = accounts.flatMap((account) => {
    const kind = partyKind(account.number)
    return kind === undefined ? [] : [{ account, kind, own: ownOf(account) }]
  })
  for (const [kind, { id, number }] of ofRoots) {
    if (id !== null) continue
    const same = filed.get(number)
    if (same !== undefined) ofRoots.set(kind, same)
    else if (!parties.some((party) => party.kind === kind && party.own === undefined)) ofRoots.delete(kind)
  }
  const codes = codesOf(
    parties.map(({ account }) => account),
    new Set(accounts.map(({ number }) => number)),
  )
  const all = new Map([...ofRoots.values(), ...filed.values()].map((one) => [one.number, one]))
  const collectiveOf = ({ kind, own }: (typeof parties)[number]) => (own ?? ofRoots.get(kind)!).number
  return {
    /** The collective account of each root. It is that of a third party if no FEC filed a collective account for it. */
    ofRoots,
    /** All collective accounts, each once; those of roots come first. */
    collectives: [...all.values()],
    byAccount: new Map<string, ThirdParty>(
      parties.map((party) => {
        const { id } = party.account
        return [id, { code: codes.get(id)!, collective: collectiveOf(party) }]
      }),
    ),
  }
}
export type ThirdParties = ReturnType<typeof thirdParties>

/**
 * Collective accounts by number. If the folder has an account with this number, it is the collective account; lines
 * without a third party are booked on it.
 */
function filedCollectives(accounts: readonly FiledAccount[]): Map<string, CollectiveAccount> {
  const own = new Map(
    accounts
      .filter(({ auxiliaryNumber }) => auxiliaryNumber === null)
      .map((account) => [account.number, account]),
  )
  const found = new Map<string, CollectiveAccount>()
  for (const account of accounts) {
    const number = filedCollective(account)
    if (number === undefined || found.has(number)) continue
    const { id = null, name = account.filedName || collectiveName(partyKind(number)!) } =
      own.get(number) ?? {}
    found.set(number, { id, number, name })
  }
  return found
}

/** The collective account that a FEC filed. Undefined if it filed none, or if the number does not fit. */
function filedCollective({ filedNumber, auxiliaryNumber }: FiledAccount): string | undefined {
  if (filedNumber === null || auxiliaryNumber === null) return undefined
  const number = accountNumber(filedNumber)
  return number.length <= numberMax && partyKind(number) !== undefined ? number : undefined
}

const collectiveName = (kind: PartyKind) => partyNatures[kind].collectiveName

/**
 * The code of each third party by the id of its account. It is the number of the account or, if that is too long, the
 * auxiliary number, unless another account has that number.
 */
function codesOf(parties: readonly FiledAccount[], numbers: ReadonlySet<string>): Map<string, string> {
  const tooLong = parties.filter(({ number }) => number.length > numberMax)
  const wanting = Map.groupBy(tooLong, ({ auxiliaryNumber }) => auxiliaryNumber)
  return new Map(
    parties.map(({ id, number, auxiliaryNumber }) => {
      const isAuxiliary =
        number.length > numberMax &&
        auxiliaryNumber !== null &&
        /^[!-~]{1,17}$/.test(auxiliaryNumber) &&
        !numbers.has(auxiliaryNumber) &&
        wanting.get(auxiliaryNumber)!.length === 1
      return [id, isAuxiliary ? auxiliaryNumber : number]
    }),
  )
}

/** The natures of accounts and journals in a TRA file, by number or type (docs/spec/tra.md#cgn, #cae and #jal). */

/** The natures of third-party accounts and of their collective accounts. */
export const partyNatures = {
  supplier: { nature: 'FOU', collective: 'COF', collectiveName: 'Fournisseurs' },
  customer: { nature: 'CLI', collective: 'COC', collectiveName: 'Clients' },
  employee: { nature: 'SAL', collective: 'COS', collectiveName: 'Personnel' },
} as const satisfies Record<PartyKind, object>

export interface CollectiveAccount {
  number: string
  name: string
  /** Null if the folder has no such account; the file then defines a new one. */
  id: string | null
}

export type CollectiveAccounts = ReadonlyMap<PartyKind, CollectiveAccount>

/**
 * The collective account of each root. Its number is the root alone, or the root followed by zeros (401, 401000); the
 * shortest number wins, and a new account is made if there is none. A collective account accepts no line without a
 * third party, so lines booked directly on it get a third party of the same number. A root without accounts has no
 * collective account.
 */
export function collectiveAccounts(
  accounts: Iterable<{ id: string; number: string; name: string }>,
): CollectiveAccounts {
  const found = new Map<PartyKind, CollectiveAccount>()
  for (const { id, number, name } of accounts) {
    const kind = partyKind(number)
    if (kind === undefined) continue
    const known = found.get(kind)
    const root = number.slice(0, 3)
    if (/^0*$/.test(number.slice(3)) && (!known?.id || number.length < known.number.length))
      found.set(kind, { id, number, name })
    else if (!known)
      found.set(kind, { id: null, number: `${root}000`, name: partyNatures[kind].collectiveName })
  }
  return found
}

/** The nature of general accounts by the root of their number. The longest matching root counts. */
const naturesByRoot: Record<string, string> = {
  '2': 'IMO',
  '40': 'TIC',
  '41': 'TID',
  '51': 'BQE',
  '53': 'CAI',
  '6': 'CHA',
  '7': 'PRO',
  '8': 'EXT',
  '9': 'EXT',
}
const naturesOfCollectives: Record<string, string> = {
  '42': 'COD',
  '43': 'COD',
  '44': 'COD',
  '45': 'COD',
  '46': 'COD',
}

export function accountNature(number: string, isCollective: boolean): string {
  const party = partyKind(number)
  if (isCollective && party) return partyNatures[party].collective
  const byRoot = (natures: Record<string, string>) =>
    natures[number.slice(0, 2)] ?? natures[number.slice(0, 1)]
  return (isCollective ? byRoot(naturesOfCollectives) : undefined) ?? byRoot(naturesByRoot) ?? 'DIV'
}

const journalNatures: Partial<Record<JournalType, string>> = {
  ACH: 'ACH',
  VTE: 'VTE',
  BQ: 'BQE',
  CAISSE: 'CAI',
  AN: 'ANO',
  OD_EXC: 'EXT',
}

/** @param type the code of a journal's type (docs/spec/resources.md#journal) */
export function journalNature(type: string): string {
  return journalNatures[type as JournalType] ?? 'OD'
}

/** The type of journal that has this nature; undefined if no type has it. */
export function journalTypeOf(nature: string): JournalType | undefined {
  if (nature === 'OD') return 'OD'
  const found = Object.entries(journalNatures).find((each) => each[1] === nature)
  return found?.[0] as JournalType | undefined
}
