/** What plain TRA files are written with: columns once more from the descriptor, and strings. See plain-tra.ts. */
import iconv from 'iconv-lite'

export interface PlainTra {
  folder: { schemaId: string; folderId: string }
  /** `DDMMYYYYHHMM` */
  generatedAt: string
  exerciceId?: string
  period?: { start: string; end: string }
  journalIds?: string[]
}

/** First column, length, text, and whether it stands on the right. */
export type Column = [at: number, length: number, text: string | null | undefined, side?: 'right']

// biome-ignore lint/suspicious/noExplicitAny: rows of the queries below
export type Row = any

export const days = (...columns: number[]): Column[] => columns.map((at) => [at, 8, '01011900'])
export const flags = (...columns: number[]): Column[] => columns.map((at) => [at, 1, '-'])

/** A character of the result is a byte. */
function windows1252(text: string): string {
  if (/^[ -~]*$/.test(text)) return text
  const one = (character: string) => {
    const bytes = iconv.encode(character, 'windows-1252')
    return iconv.decode(bytes, 'windows-1252') === character ? bytes.toString('latin1') : undefined
  }
  const composed = text.normalize('NFC').replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
  return [...composed]
    .map((character) => {
      const bare = character.normalize('NFKD').replace(/\p{M}/gu, '')
      return one(character) ?? [...bare].map((part) => one(part) ?? '?').join('')
    })
    .join('')
}

export function line(columns: Column[], mandatoryEnd: number): string {
  const bytes = Buffer.alloc(lineColumnsMax, ' ')
  for (const [at, length, text, side] of columns) {
    const given = windows1252(text ?? '').slice(0, length)
    bytes.write(side === 'right' ? given.padStart(length) : given.padEnd(length), at - 1, 'latin1')
  }
  const written = bytes.toString('latin1').replace(/ +$/, '')
  return `${written.padEnd(mandatoryEnd)}\r\n`
}

const lineColumnsMax = 1407

export const record = (name: string, mandatoryEnd: number, columns: Column[]) =>
  line([[1, 6, `***${name}`], ...columns], mandatoryEnd)

export function amount(minor: string | bigint): string {
  const [, sign, digits] = /^(-?)(\d+)$/.exec(String(minor))!
  return `${sign}${digits!.padStart(3, '0').replace(/(\d\d)$/, ',$1')}`
}

export const day = (iso: string | null) => (iso === null ? '01011900' : iso.split('-').toReversed().join(''))

const modes: Record<string, [string, string]> = {
  CB: ['CB', 'Carte Bleue'],
  VIRT: ['VIR', 'Virement'],
  ESP: ['ESP', 'Espèce'],
  CHQ: ['CHQ', 'Chèque'],
  PRLV: ['PRE', 'Prélèvement'],
  LCR: ['LCR', 'Lettre de change'],
}
export const modeOf = (code: string) => modes[code] ?? modes['CHQ']!

export interface State {
  accounts: Row[]
  journals: Row[]
  axes: Row[]
  sections: Row[]
  codes: Record<'journals' | 'vat' | 'sections', Map<string, string>> & {
    letterings: Map<string, Map<string, string>>
  }
  /** Number by root. */
  collectives: Map<string, { number: string; isNew: boolean; name: string }>
}

export const roots: [root: string, nature: string, collectiveNature: string, name: string][] = [
  ['401', 'FOU', 'COF', 'Fournisseurs'],
  ['411', 'CLI', 'COC', 'Clients'],
  ['421', 'SAL', 'COS', 'Personnel'],
]
export const rootOf = (number: string) => roots.find(([root]) => number.startsWith(root))

export const isForeign = ({ currency, rate }: Row) => currency !== 'EUR' && rate !== null && Number(rate) > 0
