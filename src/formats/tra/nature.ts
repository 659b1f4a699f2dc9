/** What accounts and journals are to a TRA file, by their numbers and types (tra.md, CGN, CAE and JAL). */

/** Suppliers, customers, employees: accounts with these roots are third parties. */
export const thirdPartyRoots = ['401', '411', '421'] as const
export type ThirdPartyRoot = (typeof thirdPartyRoots)[number]

export function thirdPartyRoot(number: string): ThirdPartyRoot | undefined {
  return thirdPartyRoots.find((root) => number.startsWith(root))
}

export const thirdPartyNatures = { '401': 'FOU', '411': 'CLI', '421': 'SAL' } as const

export interface CollectiveAccount {
  number: string
  name: string
  /** Null: the folder has no such account, the file brings it along. */
  id: string | null
}

export type CollectiveAccounts = ReadonlyMap<ThirdPartyRoot, CollectiveAccount>

const createdCollectives: Record<ThirdPartyRoot, { number: string; name: string }> = {
  '401': { number: '401000', name: 'Fournisseurs' },
  '411': { number: '411000', name: 'Clients' },
  '421': { number: '421000', name: 'Personnel' },
}

/**
 * The account that the third parties of each root hang from: the root itself or the root and zeros (401, 401000), the
 * shortest where there are several, and a new one where there is none. Lines booked on it directly are those of a third
 * party of the same number, as a collective account takes no line without one. Roots without third parties have none.
 */
export function collectiveAccounts(
  accounts: Iterable<{ id: string; number: string; name: string }>,
): CollectiveAccounts {
  const found = new Map<ThirdPartyRoot, CollectiveAccount>()
  for (const { id, number, name } of accounts) {
    const root = thirdPartyRoot(number)
    if (root === undefined) continue
    const known = found.get(root)
    if (/^4[012]10*$/.test(number) && (!known?.id || number.length < known.number.length))
      found.set(root, { id, number, name })
    else if (!known) found.set(root, { id: null, ...createdCollectives[root] })
  }
  return found
}

export type AccountNature =
  | 'BQE'
  | 'CAI'
  | 'CHA'
  | 'COC'
  | 'COD'
  | 'COF'
  | 'COS'
  | 'DIV'
  | 'EXT'
  | 'IMO'
  | 'PRO'
  | 'TIC'
  | 'TID'

/** By the longest root that fits. */
const naturesByRoot: Record<string, AccountNature> = {
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
const naturesOfCollectives: Record<string, AccountNature> = {
  '401': 'COF',
  '411': 'COC',
  '421': 'COS',
  '42': 'COD',
  '43': 'COD',
  '44': 'COD',
  '45': 'COD',
  '46': 'COD',
}

export function accountNature(number: string, isCollective: boolean): AccountNature {
  const byRoot = (natures: Record<string, AccountNature>) =>
    natures[number.slice(0, 3)] ?? natures[number.slice(0, 2)] ?? natures[number.slice(0, 1)]
  return (isCollective ? byRoot(naturesOfCollectives) : undefined) ?? byRoot(naturesByRoot) ?? 'DIV'
}

export type JournalNature = 'ACH' | 'VTE' | 'BQE' | 'CAI' | 'ANO' | 'EXT' | 'OD'

const journalNatures: Record<string, JournalNature> = {
  ACH: 'ACH',
  VTE: 'VTE',
  BQ: 'BQE',
  CAISSE: 'CAI',
  AN: 'ANO',
  OD_EXC: 'EXT',
}

/** @param type the journal's code of contract, section 4 */
export function journalNature(type: string): JournalNature {
  return journalNatures[type] ?? 'OD'
}
