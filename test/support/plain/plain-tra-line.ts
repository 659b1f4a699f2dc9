/**
 * What plain-tra.ts writes its lines with: columns transcribed a second time from the descriptor, and strings.
 */
import iconv from 'iconv-lite'

/** First column, length, text, and whether it is right-aligned. */
export type Column = [at: number, length: number, text: string | null | undefined, side?: 'right']

// biome-ignore lint/suspicious/noExplicitAny: rows of the queries below
export type Row = any

export const days = (...columns: number[]): Column[] => columns.map((at) => [at, 8, '01011900'])

/** Each character of the result is a byte. */
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
  // trimEnd would also remove no-break spaces, and / +$/ takes seconds for long runs of spaces inside a line.
  const end = bytes.findLastIndex((byte) => byte !== space) + 1
  return bytes.toString('latin1', 0, end).padEnd(mandatoryEnd)
}

const lineColumnsMax = 1407
const space = ' '.charCodeAt(0)

export function amount(minor: string | bigint): string {
  const [, sign, digits] = /^(-?)(\d+)$/.exec(String(minor))!
  return `${sign}${digits!.padStart(3, '0').replace(/(\d\d)$/, ',$1')}`
}

export const day = (iso: string | null) => (iso === null ? '01011900' : iso.split('-').toReversed().join(''))

const modes: Record<string, string> = {
  CB: 'CB',
  VIRT: 'VIR',
  ESP: 'ESP',
  CHQ: 'CHQ',
  PRLV: 'PRE',
  LCR: 'LCR',
}
export const modeOf = (code: string) => modes[code] ?? 'CHQ'

const roots = ['401', '411', '421']
export const rootOf = (number: string) => roots.find((root) => number.startsWith(root))

/** Collective account by id of the third party: as filed, else the folder's own of the root, else one that is made. */
export function collectivesOf(accounts: Row[]): Map<string, string> {
  // A number that is too long for its columns falls back to that of the root.
  const filedOf = ({ filed_number, auxiliary_number }: Row) =>
    auxiliary_number === null || filed_number.length > 17 ? undefined : filed_number
  const filed = new Set(accounts.map(filedOf))
  const ofRoots = new Map(
    roots.map((root): [string, string] => {
      const own = accounts
        .map(({ number }) => number)
        .filter((number) => number.startsWith(root) && /^0*$/.test(number.slice(3)))
        .toSorted((a, b) => a.length - b.length)
      return [root, own[0] ?? `${root}000`]
    }),
  )
  return new Map(
    accounts.flatMap((account): [string, string][] => {
      const root = rootOf(account.number)
      if (root === undefined) return []
      return [
        [account.id, filedOf(account) ?? (filed.has(account.number) ? account.number : ofRoots.get(root)!)],
      ]
    }),
  )
}

/** A third party's number; one that is too long gives way to the number that it was filed with. */
export const partyCode = ({ number, auxiliary_number }: Row) =>
  number.length > 17 ? auxiliary_number : number

export const isForeign = ({ currency, rate }: Row) => currency !== 'EUR' && rate !== null && Number(rate) > 0

/** `0.873400` as `0,8734`. */
export const rateText = (rate: string) =>
  (rate.includes('.') ? rate.replace(/\.?0+$/, '') : rate).replace('.', ',')
