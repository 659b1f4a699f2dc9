/** The nature of accounts and journals in a TRA file, by number and type (docs/spec/tra.md#cgn, #cae and #jal). */

import type { JournalType } from '../../items/journal.ts'
import { type PartyKind, partyKind } from '../../party-kind.ts'

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

/** The longest matching root counts. */
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
  '42': 'COD',
  '43': 'COD',
  '44': 'COD',
  '45': 'COD',
  '46': 'COD',
}

export function accountNature(number: string, isCollective: boolean): AccountNature {
  const party = partyKind(number)
  if (isCollective && party) return partyNatures[party].collective
  const byRoot = (natures: Record<string, AccountNature>) =>
    natures[number.slice(0, 2)] ?? natures[number.slice(0, 1)]
  return (isCollective ? byRoot(naturesOfCollectives) : undefined) ?? byRoot(naturesByRoot) ?? 'DIV'
}

export type JournalNature = 'ACH' | 'VTE' | 'BQE' | 'CAI' | 'ANO' | 'EXT' | 'OD'

const journalNatures: Partial<Record<JournalType, JournalNature>> = {
  ACH: 'ACH',
  VTE: 'VTE',
  BQ: 'BQE',
  CAISSE: 'CAI',
  AN: 'ANO',
  OD_EXC: 'EXT',
}

/** @param type code of the type of a journal (docs/spec/resources.md#journal) */
export function journalNature(type: string): JournalNature {
  return journalNatures[type as JournalType] ?? 'OD'
}

/** The type of a journal whose nature is this one; undefined for a nature that no type has. */
export function journalTypeOf(nature: string): JournalType | undefined {
  if (nature === 'OD') return 'OD'
  const found = Object.entries(journalNatures).find((each) => each[1] === nature)
  return found?.[0] as JournalType | undefined
}
