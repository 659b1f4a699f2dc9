/**
 * The collective account and the code of each third party in a TRA file (docs/spec/tra.md#cae). A ledger that was
 * imported from a FEC has the collective account that its file gives; any other has one per root.
 */
import { accountNumber, type PartyKind, partyKind } from '../items/accounts/parties.ts'
import type { JournalType } from '../items/journal.ts'

/** An account with what a FEC filed of it: CompteNum and CompteLib, and CompAuxNum if it is a third party's. */
export interface NumberedAccount {
  id: string
  number: string
  name: string
  filedNumber: string | null
  filedName: string | null
  auxiliaryNumber: string | null
}

export interface ThirdParty {
  /** Its number in the file. */
  code: string
  /** The number of its collective account. */
  collective: string
}

/** Columns of an account number (p. 22). */
const numberMax = 17

export function thirdParties(accounts: readonly NumberedAccount[]) {
  const filed = filedCollectives(accounts)
  const ofRoots = new Map(collectiveAccounts(accounts))
  const ownOf = (account: NumberedAccount) => {
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
    /** The collective accounts of third parties that no FEC filed with one. */
    ofRoots,
    /** All collective accounts once, those of roots first. */
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
 * Collective accounts by number: the folder's own account if it has one, on which lines without an auxiliary are
 * booked.
 */
function filedCollectives(accounts: readonly NumberedAccount[]): Map<string, CollectiveAccount> {
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

/** The collective account that a FEC filed; undefined without one, or if its number does not fit. */
function filedCollective({ filedNumber, auxiliaryNumber }: NumberedAccount): string | undefined {
  if (filedNumber === null || auxiliaryNumber === null) return undefined
  const number = accountNumber(filedNumber)
  return number.length <= numberMax && partyKind(number) !== undefined ? number : undefined
}

const collectiveName = (kind: PartyKind) => partyNatures[kind].collectiveName

/** Numbers by id of the account; in place of one that is too long the auxiliary number, if no other account has it. */
function codesOf(parties: readonly NumberedAccount[], numbers: ReadonlySet<string>): Map<string, string> {
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

/** The nature of accounts and journals in a TRA file, by number and type (docs/spec/tra.md#cgn, #cae and #jal). */

/** Natures of third-party accounts and of their collective accounts. */
export const partyNatures = {
  supplier: { nature: 'FOU', collective: 'COF', collectiveName: 'Fournisseurs' },
  customer: { nature: 'CLI', collective: 'COC', collectiveName: 'Clients' },
  employee: { nature: 'SAL', collective: 'COS', collectiveName: 'Personnel' },
} as const satisfies Record<PartyKind, object>

export interface CollectiveAccount {
  number: string
  name: string
  /** Null if the folder has no such account; the file then defines one. */
  id: string | null
}

export type CollectiveAccounts = ReadonlyMap<PartyKind, CollectiveAccount>

/**
 * The collective account of each root: the number is the root alone or the root and zeros (401, 401000). The shortest
 * wins; if there is none, a new one is made. A collective account accepts no line without a third party, so lines
 * booked directly on it get a third party of the same number. Roots without accounts have no collective account.
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

/** The longest matching root counts. */
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

/** @param type code of the type of a journal (docs/spec/resources.md#journal) */
export function journalNature(type: string): string {
  return journalNatures[type as JournalType] ?? 'OD'
}

/** The type of a journal whose nature is this one; undefined for a nature that no type has. */
export function journalTypeOf(nature: string): JournalType | undefined {
  if (nature === 'OD') return 'OD'
  const found = Object.entries(journalNatures).find((each) => each[1] === nature)
  return found?.[0] as JournalType | undefined
}
