/** The rows of tables that a line of an entry becomes. The order of values is that of the columns. */
import { itemsOf, membersOf } from './members.ts'

/** As the databases keep it: amounts in cents, whole numbers. */
export type Value = string | number | bigint | Uint8Array | null

/** `cents`: an amount of money, exact. `time`: seconds since 1970, UTC. */
export type ColumnType = 'id' | 'text' | 'date' | 'time' | 'cents' | 'number' | 'boolean' | 'json' | 'bytes'

export interface Column {
  name: string
  type: ColumnType
}

/** @param list `name type, name type` */
export function columns(list: string): readonly Column[] {
  return list.split(',').map((column) => {
    const [name, type] = column.trim().split(/\s+/) as [string, ColumnType]
    return { name, type }
  })
}

/** One row per entry. */
export const entryColumns = columns(`
  entry_id id, exercice_id id, draft boolean, entry_date date, entry_due_date date, accounted_at date, created_at time,
  validated_at date, journal_id id, source text, partner_code text, currency text, currency_rate number,
  entry_comment text, ecriture_num text`)

/** One row per movement. */
export const movementColumns = columns(`
  entry_id id, movement_id id, account_id id, description text, due_date date, free_number text, invoice_number text,
  debit cents, credit cents, payment_code text, lettering_state text, lettering_code text, analytics json,
  attachments json, piece_date date, auxiliary_number text, auxiliary_name text`)

export interface EntryRows {
  id: number
  entry: Value[]
  movements: Value[][]
}

/** What this file reads of an entry. `filed` and `ecritureNum` come with `columns=extended` alone. */
interface EntryItem {
  producerId: string
  attachments: Attachments
  date: string
  dueDate: string | null
  journal: { producerId: string }
  currency: { code: string; rate?: number }
  movements: MovementItem[]
  additionalProducerProperties: {
    source: { name: string; thirdParty: { code: string } | null }
    comment: string | null
    createdAt: number
    accountedAt: string
    validationDate: string | null
    ecritureNum?: string | null
  }
}

interface MovementItem {
  producerId: string
  description: string
  dueDate: string | null
  freeNumber: string | null
  invoiceNumber: string
  value: { credit: number; debit: number }
  attachments: Attachments
  account: { producerId: string }
  payment: { code: string } | null
  analytics: { code: string; sections: { code: string; amount: number; rate: number }[] }[]
  lettering: { state: string; value: string | null }
  filed?: { pieceDate: string | null; auxiliaryNumber: string | null; auxiliaryName: string | null }
}

type Attachments = Record<string, { value: string }>

export interface RowsOfPart {
  exercice: string
  draft: boolean
}

/** @param line of an entry, without its line feed */
export function entryRows(line: Buffer, { exercice, draft }: RowsOfPart): EntryRows {
  const item = JSON.parse(line.toString()) as EntryItem
  const { additionalProducerProperties: properties } = item
  const id = Number(item.producerId)
  const { ecritureNum } = properties
  const pieceDate = ecritureNum === undefined ? null : item.date
  const files = addressesOf(item.attachments)
  return {
    id,
    entry: [
      id,
      Number(exercice),
      draft ? 1 : 0,
      item.date,
      item.dueDate,
      properties.accountedAt,
      properties.createdAt,
      properties.validationDate,
      Number(item.journal.producerId),
      properties.source.name,
      properties.source.thirdParty?.code ?? null,
      item.currency.code,
      item.currency.rate ?? null,
      properties.comment,
      ecritureNum ?? null,
    ],
    movements: item.movements.map((movement, place) => {
      const { value, lettering, filed } = movement
      const isLarge = Math.abs(value.debit) >= exactBelow || Math.abs(value.credit) >= exactBelow
      const exact = isLarge ? amountsOf(line, place) : undefined
      return [
        id,
        Number(movement.producerId),
        Number(movement.account.producerId),
        movement.description,
        movement.dueDate,
        movement.freeNumber,
        movement.invoiceNumber,
        exact ? exact.debit : Math.round(value.debit * 100),
        exact ? exact.credit : Math.round(value.credit * 100),
        movement.payment?.code ?? null,
        lettering.state,
        // A partial code has a star in front.
        lettering.state === 'partial' ? lettering.value!.slice(1) : lettering.value,
        movement.analytics.length === 0 ? null : sharesOf(movement.analytics),
        attachmentsOf(files, addressesOf(movement.attachments)),
        // Blank, if it was filed so.
        filed ? filed.pieceDate : pieceDate,
        filed?.auxiliaryNumber ?? null,
        filed?.auxiliaryName ?? null,
      ]
    }),
  }
}

/** Below this a double has its cents right after a multiplication by 100. */
const exactBelow = 1e13

/** Amounts of a movement, read from their digits. */
function amountsOf(line: Buffer, place: number): { debit: bigint; credit: bigint } {
  const movements = membersOf(line, 0).find(({ name }) => name === 'movements')!
  const [start] = itemsOf(line, movements.value)[place]!
  const value = membersOf(line, start).find(({ name }) => name === 'value')!
  const amounts = new Map(
    membersOf(line, value.value).map(({ name, value: at, end }) => [
      name,
      centsOf(line.toString('latin1', at, end)),
    ]),
  )
  return { debit: amounts.get('debit')!, credit: amounts.get('credit')! }
}

/** @param digits a JSON number with at most two decimals and no exponent */
export function centsOf(digits: string): bigint {
  const [whole = '', decimals = ''] = digits.split('.')
  return BigInt(whole + decimals.padEnd(2, '0'))
}

function addressesOf(attachments: Attachments): Record<string, string> | undefined {
  let addresses: Record<string, string> | undefined
  for (const name in attachments) {
    addresses ??= {}
    addresses[name] = attachments[name]!.value
  }
  return addresses
}

/** As in the CSV file (docs/spec/exports.md#csv-and-parquet-files). */
function attachmentsOf(
  entry: Record<string, string> | undefined,
  movement: Record<string, string> | undefined,
): string | null {
  if (!entry && !movement) return null
  return JSON.stringify({ ...(entry ? { entry } : {}), ...(movement ? { movement } : {}) })
}

function sharesOf(axes: MovementItem['analytics']): string {
  return JSON.stringify(
    axes.flatMap(({ code, sections }) =>
      sections.map((section) => ({
        axis_code: code,
        section_code: section.code,
        amount: section.amount,
        rate: section.rate,
      })),
    ),
  )
}
