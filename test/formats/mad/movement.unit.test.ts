/** A movement in every combination of columns with and without a value, compared with JSON.stringify. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { renderDictionary } from '../../../src/formats/mad/dictionary.ts'
import { entryColumns } from '../../../src/formats/mad/entry.ts'
import { MovementRenderer, movementColumns } from '../../../src/formats/mad/movement.ts'
import { outputOf, Rows } from '../../../src/formats/text-bytes.ts'

const journal = { id: '7', code: 'AC', name: 'Achats "A"', type: 'ACH' }
const account = { id: '8', number: '401000', name: 'Fournisseurs é😀' }
const thirdParty = { id: '3', code: 'tp', name: 'Partner' }
const sections = [
  { id: '71', axisId: '5', code: 'N', name: 'Nord' },
  { id: '72', axisId: '5', code: 'S', name: 'Sud' },
  { id: '73', axisId: '6', code: 'C', name: 'x'.repeat(200) },
]
const axes = [
  { id: '5', code: 'R', name: 'Région' },
  { id: '6', code: 'P', name: 'Projet' },
]
const dictionary = renderDictionary({
  journals: [journal],
  accounts: [account],
  payments: [{ id: '9', code: 'CB' }],
  axes,
  sections,
  thirdParties: [thirdParty],
})

/** A row as COPY prints it, with seven bytes after it; `null` is `\\N`. */
function rowOf(columns: readonly string[], values: Record<string, string | null>) {
  const texts = columns.map((column) => values[column]?.replaceAll('\\', '\\\\') ?? '\\N')
  const bytes = Buffer.from(`${texts.join('\t')}\n"\\"\\"\\"`)
  const fields = new Int32Array(columns.length + 1)
  for (const [i, text] of texts.entries()) fields[i + 1] = fields[i]! + Buffer.byteLength(text) + 1
  return new Rows(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.length), fields)
}

const url = (name: string, value: string) => ({ [name]: { type: 'URL', value } })
const share = (index: number, amount: number, rate: number) => {
  const { id, code, name } = sections[index]!
  return { producerId: id, amount, rate, code, name }
}
const axis = (index: number, shares: object[]) => {
  const { id, code, name } = axes[index]!
  return { producerId: id, code, name, sections: shares }
}

/** For each column its values in the row and in the JSON. */
const choices = {
  description: [
    ['', ''],
    ['Achat "é" \\', 'Achat "é" \\'],
  ],
  due_date: [
    [null, null],
    ['2025-01-31', '2025-01-31'],
  ],
  free_number: [
    [null, null],
    ['', ''],
    ['F "1"', 'F "1"'],
  ],
  invoice_number: [
    ['', ''],
    ['FA-2025-000123', 'FA-2025-000123'],
  ],
  amounts: [
    [['0', '0'], { credit: 0, debit: 0, amount: 0 }],
    [['1200', '0'], { credit: 0, debit: 12, amount: -12 }],
    [['0', '26444'], { credit: 264.44, debit: 0, amount: 264.44 }],
    [['-5', '0'], { credit: 0, debit: -0.05, amount: 0.05 }],
    [['0', '-1210'], { credit: -12.1, debit: 0, amount: -12.1 }],
  ],
  attachments: [
    [null, {}],
    ['{"a.pdf": "https://a"}', url('a.pdf', 'https://a')],
  ],
  payment_id: [
    [null, null],
    ['9', { producerId: '9', name: 'Carte Bleue', code: 'CB' }],
  ],
  shares: [
    [null, []],
    ['{71,1200,1000000}', [axis(0, [share(0, 12, 100)])]],
    [
      '{71,10,333333,72,-1,5,73,7,10000}',
      [axis(0, [share(0, 0.1, 33.3333), share(1, -0.01, 0.0005)]), axis(1, [share(2, 0.07, 1)])],
    ],
  ],
  lettering: [
    [['none', null], { state: 'none', value: null }],
    [['partial', '*A"'], { state: 'partial', value: '*A"' }],
    [['complete', 'AAA'], { state: 'complete', value: 'AAA' }],
  ],
} as const

// biome-ignore lint/suspicious/noExplicitAny: a value in a row and in the JSON, of any type
type Chosen = readonly [any, any]

/** Every combination of one value for each key. */
function combinations<T extends Record<string, readonly (readonly unknown[])[]>>(of: T) {
  let all: Record<string, readonly unknown[]>[] = [{}]
  for (const [key, values] of Object.entries(of))
    all = all.flatMap((chosen) => values.map((value) => ({ ...chosen, [key]: value })))
  return all as unknown as Record<keyof T, Chosen>[]
}

const rowValues = ({ amounts, lettering, ...chosen }: Record<keyof typeof choices, Chosen>) => ({
  entry_id: '41',
  id: '1234567',
  account_id: '8',
  debit: amounts[0][0],
  credit: amounts[0][1],
  lettering_state: lettering[0][0],
  shown_lettering_code: lettering[0][1],
  ...Object.fromEntries(Object.entries(chosen).map(([column, [value]]) => [column, value])),
})

const jsonOf = (chosen: Record<keyof typeof choices, Chosen>, entry?: object) => ({
  producerId: '1234567',
  description: chosen.description[1],
  dueDate: chosen.due_date[1],
  freeNumber: chosen.free_number[1],
  invoiceNumber: chosen.invoice_number[1],
  value: chosen.amounts[1],
  ...(entry && { entry }),
  attachments: chosen.attachments[1],
  account: { producerId: '8', number: account.number, name: account.name },
  payment: chosen.payment_id[1],
  analytics: chosen.shares[1],
  lettering: chosen.lettering[1],
})

function written(renderer: MovementRenderer, row: Rows): string {
  const out = outputOf(new Uint8Array(5 + renderer.bytesMax(row)))
  return Buffer.from(out.bytes.subarray(5, renderer.write(out, 5, row))).toString()
}

test('a movement alone, as in a full export', () => {
  const renderer = new MovementRenderer(dictionary)
  for (const chosen of combinations(choices))
    expect(written(renderer, rowOf(movementColumns, rowValues(chosen)))).toBe(JSON.stringify(jsonOf(chosen)))
})

const entryChoices = {
  due_date: [
    [null, null],
    ['2025-02-28', '2025-02-28'],
  ],
  rate: [
    [null, undefined],
    ['1.25', 1.25],
  ],
  third_party_id: [
    [null, null],
    ['3', { name: 'Partner', code: 'tp' }],
  ],
  partner_metadata: [
    [null, null],
    ['{"partnerId" : "p", "json" : null}', { partnerId: 'p', json: null }],
  ],
  comment: [
    [null, null],
    ['', ''],
    ['dit "non" \\', 'dit "non" \\'],
  ],
  attachments: [
    [null, {}],
    ['{"e.pdf": "https://e"}', url('e.pdf', 'https://e')],
  ],
} as const

test('a movement with its entry', () => {
  const renderer = new MovementRenderer(dictionary)
  const few = { ...choices, shares: choices.shares.slice(0, 1), lettering: choices.lettering.slice(0, 1) }
  const movements = combinations({ ...few, amounts: choices.amounts.slice(0, 1) })
  for (const chosen of combinations(entryChoices)) {
    const values = Object.fromEntries(Object.entries(chosen).map(([column, [value]]) => [column, value]))
    const entryRow = rowOf(entryColumns, {
      id: '41',
      date: '2025-01-01',
      currency: 'EUR',
      journal_id: '7',
      source: 'API',
      created_epoch: '1735689600',
      accounted_at: '2025-01-02',
      ...values,
    })
    const entry = {
      producerId: '41',
      date: '2025-01-01',
      dueDate: chosen.due_date[1],
      currency: { code: 'EUR', rate: chosen.rate[1] },
      journal: { producerId: '7', customerReferenceCode: 'AC', name: journal.name, type: 'Achat' },
      additionalProducerProperties: {
        source: { name: 'API', thirdParty: chosen.third_party_id[1] },
        partnerMetadata: chosen.partner_metadata[1],
        comment: chosen.comment[1],
        createdAt: 1735689600,
        accountedAt: '2025-01-02',
      },
      attachments: chosen.attachments[1],
    }
    renderer.setEntry(entryRow)
    for (const movement of movements)
      expect(written(renderer, rowOf(movementColumns, rowValues(movement)))).toBe(
        JSON.stringify(jsonOf(movement, entry)),
      )
  }
})
