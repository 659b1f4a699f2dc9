/**
 * The part of a TRA file that depends on the selected entries, as lines, from ordinary queries of the owner:
 * an export must match it byte for byte. Columns are transcribed a second time from the descriptor. Slow, and
 * shares nothing with the code it checks except the choice of short codes, which has its own tests. The other
 * records depend only on the folder and are in `fixtures/`.
 */
import type pg from 'pg'
import { letteringCodes, shortCodes } from '../../../src/formats/tra/codes.ts'
import type { Chosen } from '../fixtures/rendered-file.ts'
import {
  amount,
  type Column,
  collectivesOf,
  day,
  days,
  isForeign,
  line,
  modeOf,
  partyCode,
  type Row,
  rateText,
} from './plain-tra-line.ts'

interface State {
  accounts: Map<string, Row>
  journals: Map<string, Row>
  axes: Row[]
  sections: Map<string, Row>
  codes: Record<'journals' | 'sections', Map<string, string>> & {
    letterings: Map<string, Map<string, string>>
  }
  /** Number of the collective account, by id of a third party. */
  collectives: Map<string, string>
}

const byId = (rows: Row[]) => new Map<string, Row>(rows.map((row) => [row.id, row]))

export async function plainTra(
  owner: pg.ClientBase | pg.Pool,
  { schemaId, folderId }: { schemaId: string; folderId: string },
  { exerciceId, period, journalIds }: Chosen,
): Promise<{ currencies: string[]; entries: string[] }> {
  const read = async (text: string, values: unknown[] = []): Promise<Row[]> =>
    (
      await owner.query(text.replaceAll('§', 'schema_id = $1 and folder_id = $2'), [
        schemaId,
        folderId,
        ...values,
      ])
    ).rows
  const accounts = await read('select * from grandlivre.accounts where §')
  const journals = await read('select * from grandlivre.journals where § order by id')
  const axes = await read('select * from grandlivre.axes where § order by id')
  const sections = await read('select * from grandlivre.sections where § order by axis_id, id')
  const movements = await read(
    `select m.*, e.date::text, e.due_date::text as entry_due, m.due_date::text as due, e.currency, e.rate::text,
       e.journal_id, e.validated_at::text as validated, (e.created_at at time zone 'Europe/Paris')::date::text as created,
       x.lettering, p.code as payment
     from grandlivre.movements m
     join grandlivre.entries e on (e.schema_id, e.folder_id, e.id) = (m.schema_id, m.folder_id, m.entry_id)
     join grandlivre.exercices x on (x.schema_id, x.folder_id, x.id) = (e.schema_id, e.folder_id, e.exercice_id)
     left join grandlivre.payments p on (p.schema_id, p.folder_id, p.id) = (m.schema_id, m.folder_id, m.payment_id)
     where m.schema_id = $1 and m.folder_id = $2 and ($3::bigint is null or e.exercice_id = $3)
       and ($4::date is null or e.date between $4 and $5) and ($6::bigint[] is null or e.journal_id = any ($6))
     order by m.entry_id, m.id`,
    [exerciceId ?? null, period?.start ?? null, period?.end ?? null, journalIds ?? null],
  )
  const lettered = await read(
    `select account_id, array_agg(distinct lettering_code) as codes from grandlivre.movements
     where § and lettering_code is not null group by account_id`,
  )
  const state: State = {
    accounts: byId(accounts),
    journals: byId(journals),
    axes,
    sections: byId(sections),
    codes: {
      journals: shortCodes(journals, 'JAL'),
      sections: new Map(
        axes.flatMap(({ id }) => [
          ...shortCodes(
            sections.filter(({ axis_id }) => axis_id === id),
            'SAT',
          ),
        ]),
      ),
      letterings: new Map(lettered.map(({ account_id, codes }) => [account_id, letteringCodes(codes)])),
    },
    collectives: collectivesOf(accounts),
  }
  return { currencies: currencyLines(movements), entries: entryLines(state, movements) }
}

/** DEV: the euro, the franc, and the currencies of these movements, each with its latest rate. */
function currencyLines(movements: Row[]): string[] {
  const foreign = new Map<string, string>()
  for (const { currency, rate } of movements.toSorted(byDate))
    if (isForeign({ currency, rate })) foreign.set(currency, rate)
  return [['EUR', '1'], ['FRF', '6.55957'], ...[...foreign].sort()].map(([code, rate]) => {
    const isEuro = code === 'EUR' || code === 'FRF' ? 'X' : '-'
    return line(
      [
        [1, 9, `***DEV${code}`],
        [10, 35, new Intl.DisplayNames('fr', { type: 'currency' }).of(code!)],
        [48, 2, '-2'],
        [56, 1, isEuro],
        [57, 20, rateText(rate!), 'right'],
        [77, 4, code! + isEuro],
      ],
      80,
    )
  })
}

const byDate = (a: Row, b: Row) => (a.date === b.date ? 0 : a.date < b.date ? -1 : 1)
const isDraft = ({ validated }: Row) => validated === null
function pieceType(type: string, entry: Row[], numberOf: (movement: Row) => string): string {
  const on = (root: string) => entry.filter((movement) => numberOf(movement).startsWith(root))
  const isDebit = ({ debit }: Row) => debit !== '0'
  const [supplier] = on('401')
  const [customer] = on('411')
  if (type === 'ACH') return supplier && isDebit(supplier) ? 'AF' : 'FF'
  if (type === 'VTE') return customer && !isDebit(customer) ? 'AC' : 'FC'
  if (type !== 'BQ' && type !== 'CAISSE') return 'OD'
  if (supplier) return 'RF'
  return customer ? 'RC' : 'OD'
}

function entryLines(state: State, movements: Row[]): string[] {
  const { accounts, journals } = state
  const entries = Map.groupBy(movements, ({ entry_id }) => entry_id)
  return [...entries.values()].flatMap((entry, number) => {
    const journal = journals.get(entry[0]!.journal_id)!
    const type = pieceType(journal.type, entry, ({ account_id }) => accounts.get(account_id)!.number)
    const foreign = inCurrency(entry)
    return entry.flatMap((movement, index) => {
      const shares = sharesOf(state, movement)
      const foreignShares = sharesInCurrency(movement, shares, foreign[index]!)
      const account = accounts.get(movement.account_id)!
      const collective = state.collectives.get(account.id)
      const side = movement.debit !== '0' ? 'D' : 'C'
      const common = (minor: string, inForeign: bigint): Column[] => [
        [1, 3, state.codes.journals.get(journal.id)],
        [4, 8, day(movement.date)],
        [12, 2, type],
        [14, 17, collective ?? account.number],
        [122, 8, '01011900'],
        [130, 1, side],
        ...amounts(movement, minor, inForeign),
        [151, 1, isDraft(movement) ? 'S' : 'N'],
        [152, 8, String(number + 1), 'right'],
        [216, 3, '001'],
        ...days(258, 294, 925, 998, 1006),
        [266, 8, day(movement.created)],
        [302, 3, journal.type !== 'AN' ? 'N' : movement.lettering === 'MONO' ? 'H' : 'OAN'],
      ]
      return [
        line(
          [
            ...common(side === 'D' ? movement.debit : movement.credit, foreign[index]!),
            [31, 1, collective === undefined ? '' : 'X'],
            [32, 17, collective === undefined ? '' : partyCode(account)],
            [49, 35, movement.invoice_number],
            [84, 35, movement.description],
            [119, 3, movement.payment && modeOf(movement.payment), 'right'],
            [122, 8, day(movement.due ?? movement.entry_due)],
            [223, 35, movement.entry_id],
            [351, 35, movement.free_number],
            [386, 1, '-'],
            ...days(447, 455, 463, 1178, 1186, 1194),
            ...lettering(state, movement, collective !== undefined),
            [1177, 1, isDraft(movement) ? '-' : 'X'],
            [1400, 8, day(movement.validated)],
          ],
          1316,
        ),
        ...shares.map(([section, minor, axis], i) =>
          line(
            [...common(minor, foreignShares[i]!), [31, 1, 'A'], [32, 17, section], [219, 2, `A${axis}`]],
            1231,
          ),
        ),
      ]
    })
  })
}

function amounts({ currency, rate }: Row, euro: string, foreign: bigint): Column[] {
  if (!isForeign({ currency, rate }))
    return [
      [131, 20, amount(euro), 'right'],
      [160, 3, 'EUR'],
      [163, 10, '1', 'right'],
      [173, 3, 'E--'],
    ]
  return [
    [131, 20, amount(foreign), 'right'],
    [160, 3, currency],
    [163, 10, rateText(rate), 'right'],
    [173, 3, 'DE-'],
    [176, 20, amount(euro), 'right'],
  ]
}

/** Multiplies each running sum by a fraction, rounds it, and returns the differences between them. */
function apportioned(amounts: bigint[], times: bigint, per: bigint): bigint[] {
  const sums = amounts.map((_, i) => amounts.slice(0, i + 1).reduce((sum, each) => sum + each))
  const converted = sums.map((sum) => {
    const exact = sum * times * (per < 0n ? -1n : 1n)
    const divisor = per < 0n ? -per : per
    const magnitude = ((exact < 0n ? -exact : exact) * 2n + divisor) / (2n * divisor)
    return exact < 0n ? -magnitude : magnitude
  })
  return converted.map((sum, i) => sum - (converted[i - 1] ?? 0n))
}

const millionthsOf = (rate: string) => BigInt(rate.split('.')[0]! + (rate.split('.')[1] ?? '').padEnd(6, '0'))

/** The movements of an entry in its currency. */
function inCurrency(entry: Row[]): bigint[] {
  if (!isForeign(entry[0]!)) return entry.map(() => 0n)
  const signed = entry.map(({ debit, credit }) => BigInt(debit) - BigInt(credit))
  const converted = apportioned(signed, 1_000_000n, millionthsOf(entry[0]!.rate))
  return converted.map((each, i) => (entry[i]!.debit === '0' ? -each : each))
}

/** The shares of a movement in the currency of its entry. */
function sharesInCurrency(movement: Row, shares: [string, string, number][], foreign: bigint): bigint[] {
  if (!isForeign(movement)) return shares.map(() => 0n)
  const euro = BigInt(movement.debit === '0' ? movement.credit : movement.debit)
  const [times, per] = euro === 0n ? [1_000_000n, millionthsOf(movement.rate)] : [foreign, euro]
  const axes = Map.groupBy(shares, ([, , axis]) => axis)
  return [...axes.values()].flatMap((axis) =>
    apportioned(
      axis.map(([, minor]) => BigInt(minor)),
      times,
      per,
    ),
  )
}

function lettering(state: State, movement: Row, isThirdParty: boolean): Column[] {
  const { lettering_state: how, lettering_code: code, account_id: account } = movement
  if (how === 'none') return [[1021, 3, isThirdParty ? 'AL' : 'RI']]
  const written = state.codes.letterings.get(account)!.get(code)!
  return [
    [1014, 5, how === 'complete' ? written : written.toLowerCase()],
    [1021, 3, how === 'complete' ? 'TL' : 'PL'],
  ]
}

/** Section, amount and rank of the axis, for the first five axes. */
function sharesOf({ sections, axes, codes }: State, { shares }: Row): [string, string, number][] {
  const triples = Array.from({ length: (shares?.length ?? 0) / 3 }, (_, i) => shares.slice(3 * i, 3 * i + 2))
  return triples.flatMap(([id, minor]): [string, string, number][] => {
    const section = sections.get(id)
    const rank = axes.findIndex((axis) => axis.id === section.axis_id) + 1
    return rank > 5 ? [] : [[codes.sections.get(id)!, minor, rank]]
  })
}
