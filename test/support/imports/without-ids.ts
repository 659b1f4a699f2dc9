/**
 * Replaces the ids in a MAD file by their rank within their kind, such as `accounts 1`. Numbers stay as they are
 * written. Two folders that differ only in their ids give the same text.
 */
export function withoutIds(mad: string): string {
  const ranks = new Map<string, Map<string, number>>()
  const named = (kind: string, id: unknown) => {
    if (id === null) return null
    const known = ranks.get(kind) ?? new Map<string, number>()
    ranks.set(kind, known)
    if (!known.has(id as string)) known.set(id as string, known.size + 1)
    return `${kind} ${known.get(id as string)}`
  }
  const walk = (value: unknown, kind: string): unknown => {
    if (Array.isArray(value)) return value.map((each) => walk(each, kind))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        if (key === 'producerId' && kind !== '') return [key, named(kind, inner)]
        if (key === 'defaultSectionId') return [key, named('sections', inner)]
        return [key, walk(inner, kinds[key] ?? (key in notIds ? '' : kind))]
      }),
    )
  }
  const exact = (_key: string, value: unknown, { source }: { source?: string }) =>
    typeof value === 'number' ? `number ${source}` : value
  const parse = JSON.parse as (text: string, reviver: typeof exact) => unknown
  return JSON.stringify(walk(parse(mad, exact), ''))
}

/** Members whose producerId is an id of a kind. */
const kinds: Record<string, string> = {
  payments: 'payments',
  payment: 'payments',
  banks: 'banks',
  journals: 'journals',
  journal: 'journals',
  accounts: 'accounts',
  account: 'accounts',
  counterpartAccount: 'accounts',
  correspondanceAccount: 'accounts',
  doubtfulAccount: 'accounts',
  vat: 'VAT codes',
  exercices: 'exercices',
  analytics: 'axes',
  sections: 'sections',
  entries: 'entries',
  movements: 'movements',
}
/** Members whose producerId is not of the ledger: a user, an activity, a commercial register. */
const notIds = { by: 0, ape: 0, RCS: 0, partnerMetadata: 0 }
