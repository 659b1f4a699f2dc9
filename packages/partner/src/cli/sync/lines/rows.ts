/** The rows of tables that a line of an entry becomes. The order of values is that of the columns. */
import type { Entry, EntryMovement } from '../../../client/api/items.ts'
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

/** An entry that came, and the part of the ledger that it came with. */
interface EntrySource {
  entry: Entry
  properties: Properties
  part: RowsOfPart
}

/** A movement of an entry that came. */
interface MovementSource {
  entry: Entry
  movement: EntryMovement
  /** The entry's attachments. */
  files: Record<string, string> | undefined
  /** The bytes of the entry, and where in it the movement stands. */
  line: Buffer
  place: number
}

type Properties = Entry['additionalProducerProperties']

/** The columns that hold each member of an item: the compiler names a member that is missing here. */
type ColumnsBy<Member extends string, Source> = Record<
  Member,
  [name: string, type: ColumnType, value: (source: Source) => Value][]
>

/** The columns of `entries`: one row per entry. */
const ofEntry: ColumnsBy<
  Exclude<keyof Entry | keyof Properties, 'movements' | 'additionalProducerProperties'>,
  EntrySource
> = {
  producerId: [
    ['entry_id', 'id', ({ entry }) => Number(entry.producerId)],
    ['exercice_id', 'id', ({ part }) => Number(part.exercice)],
    ['draft', 'boolean', ({ part }) => (part.draft ? 1 : 0)],
  ],
  date: [['entry_date', 'date', ({ entry }) => entry.date]],
  dueDate: [['entry_due_date', 'date', ({ entry }) => entry.dueDate]],
  accountedAt: [['accounted_at', 'date', ({ properties }) => properties.accountedAt]],
  createdAt: [['created_at', 'time', ({ properties }) => properties.createdAt]],
  validationDate: [['validated_at', 'date', ({ properties }) => properties.validationDate]],
  journal: [['journal_id', 'id', ({ entry }) => Number(entry.journal.producerId)]],
  source: [
    ['source', 'text', ({ properties }) => properties.source.name],
    ['partner_code', 'text', ({ properties }) => properties.source.thirdParty?.code ?? null],
  ],
  currency: [
    ['currency', 'text', ({ entry }) => entry.currency.code],
    ['currency_rate', 'number', ({ entry }) => entry.currency.rate ?? null],
  ],
  comment: [['entry_comment', 'text', ({ properties }) => properties.comment]],
  ecritureNum: [['ecriture_num', 'text', ({ properties }) => properties.ecritureNum ?? null]],
  // Stands with each movement.
  attachments: [],
  // Only in entry_lines.
  partnerMetadata: [],
}

/** The columns of `movement_rows`: one row per movement. */
const ofMovement: ColumnsBy<keyof EntryMovement, MovementSource> = {
  producerId: [
    ['entry_id', 'id', ({ entry }) => Number(entry.producerId)],
    ['movement_id', 'id', ({ movement }) => Number(movement.producerId)],
  ],
  account: [['account_id', 'id', ({ movement }) => Number(movement.account.producerId)]],
  description: [['description', 'text', ({ movement }) => movement.description]],
  dueDate: [['due_date', 'date', ({ movement }) => movement.dueDate]],
  freeNumber: [['free_number', 'text', ({ movement }) => movement.freeNumber]],
  invoiceNumber: [['invoice_number', 'text', ({ movement }) => movement.invoiceNumber]],
  value: [
    ['debit', 'cents', (source) => amountOf(source, 'debit')],
    ['credit', 'cents', (source) => amountOf(source, 'credit')],
  ],
  payment: [['payment_code', 'text', ({ movement }) => movement.payment?.code ?? null]],
  lettering: [
    ['lettering_state', 'text', ({ movement }) => movement.lettering.state],
    ['lettering_code', 'text', ({ movement }) => letteringCode(movement.lettering)],
  ],
  analytics: [['analytics', 'json', ({ movement }) => sharesOf(movement.analytics)]],
  attachments: [
    ['attachments', 'json', ({ movement, files }) => attachmentsOf(files, addressesOf(movement.attachments))],
  ],
  filed: [
    ['piece_date', 'date', pieceDate],
    ['auxiliary_number', 'text', ({ movement }) => movement.filed?.auxiliaryNumber ?? null],
    ['auxiliary_name', 'text', ({ movement }) => movement.filed?.auxiliaryName ?? null],
  ],
}

const entryFields = Object.values(ofEntry).flat()
const movementFields = Object.values(ofMovement).flat()
export const entryColumns: readonly Column[] = entryFields.map(([name, type]) => ({ name, type }))
export const movementColumns: readonly Column[] = movementFields.map(([name, type]) => ({ name, type }))

export interface EntryRows {
  id: number
  entry: Value[]
  movements: Value[][]
}

export interface RowsOfPart {
  exercice: string
  draft: boolean
}

/** @param line of an entry, without its line feed */
export function entryRows(line: Buffer, part: RowsOfPart): EntryRows {
  const entry = JSON.parse(line.toString()) as Entry
  const files = addressesOf(entry.attachments)
  const source = { entry, properties: entry.additionalProducerProperties, part }
  return {
    id: Number(entry.producerId),
    entry: entryFields.map(([, , value]) => value(source)),
    movements: entry.movements.map((movement, place) => {
      const booked = { entry, movement, files, line, place }
      return movementFields.map(([, , value]) => value(booked))
    }),
  }
}

/** As filed, blank if it was filed so; otherwise the date of the entry. An older service does not say. */
function pieceDate({ entry, movement: { filed } }: MovementSource): string | null {
  if (filed) return filed.pieceDate
  return entry.additionalProducerProperties.ecritureNum === undefined ? null : entry.date
}

/** A partial code has a star in front. */
function letteringCode({ state, value }: EntryMovement['lettering']): string | null {
  return state === 'partial' ? value!.slice(1) : value
}

/** Below this a double has its cents right after a multiplication by 100. */
const exactBelow = 1e13

/** In cents; a large one is read from its digits. */
function amountOf({ movement, line, place }: MovementSource, side: 'debit' | 'credit'): number | bigint {
  const amount = movement.value[side]
  if (Math.abs(amount) < exactBelow) return Math.round(amount * 100)
  const movements = membersOf(line, 0).find(({ name }) => name === 'movements')!
  const [start] = itemsOf(line, movements.value)[place]!
  const value = membersOf(line, start).find(({ name }) => name === 'value')!
  const digits = membersOf(line, value.value).find(({ name }) => name === side)!
  return centsOf(line.toString('latin1', digits.value, digits.end))
}

/** @param digits a JSON number with at most two decimals and no exponent */
export function centsOf(digits: string): bigint {
  const [whole = '', decimals = ''] = digits.split('.')
  return BigInt(whole + decimals.padEnd(2, '0'))
}

function addressesOf(attachments: Entry['attachments']): Record<string, string> | undefined {
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

function sharesOf(axes: EntryMovement['analytics']): string | null {
  if (axes.length === 0) return null
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
