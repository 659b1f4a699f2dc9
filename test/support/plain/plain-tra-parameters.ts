/** The parameter records of a plain TRA file. See plain-tra.ts. */
import { countryCode } from '../../../src/formats/tra/country-code.ts'
import {
  amount,
  type Column,
  day,
  days,
  flags,
  isForeign,
  line,
  modeOf,
  type PlainTra,
  type Row,
  record,
  rootOf,
  roots,
  type State,
} from './plain-tra-line.ts'

type Read = (text: string, values?: unknown[]) => Promise<Row[]>

export async function parameters(
  state: State,
  read: Read,
  { generatedAt }: PlainTra,
  isWhole: boolean,
  movements: Row[],
): Promise<string[]> {
  const [folder] = await read(
    `select f.*, to_json(f.address) as address, firm.name as firm from grandlivre.folders f
     join grandlivre.firms firm on (firm.schema_id, firm.id) = (f.schema_id, f.firm_id)
     where f.schema_id = $1 and f.id = $2`,
  )
  const payments = await read('select code from grandlivre.payments where § order by id')
  const paid = [...new Set(payments.map(({ code }) => modeOf(code)))]
  const bare = (name: string) => (isWhole ? [`***${name}\r\n`] : [])
  const orBare = (name: string, lines: string[]) => (lines.length > 0 ? lines : bare(name))
  return [
    header(folder, isWhole, generatedAt),
    ...settings(state, folder),
    ...orBare('EXO', await exercices(read)),
    ...bare('SSA'),
    establishment(folder),
    ...orBare('MDP', paid.map(modeOfPayment)),
    ...orBare('MDR', paid.map(modeOfSettlement)),
    ...currencies(movements),
    record('REG', 44, [
      [7, 3, 'FRA'],
      [10, 35, 'France'],
    ]),
    ...orBare('TVA', await vatCodes(state, read)),
    ...orBare('SAT', sections(state)),
    ...['NSA', 'SPA', 'SOU'].flatMap(bare),
    ...correspondences(state),
    ...orBare('CGN', generalAccounts(state)),
    ...orBare(
      'CAE',
      state.accounts.filter((account) => !isGeneral(account)).map((account) => thirdParty(state, account)),
    ),
    ...orBare('JAL', journals(state)),
    ...(await banks(read)),
  ]
}

function header(folder: Row, isWhole: boolean, generatedAt: string): string {
  const columns: Column[] = [
    [1, 14, `***S5EXP${isWhole ? 'DOS' : 'JRL'}ETE`],
    ...days(18, 26, 137),
    [34, 3, '011'],
    [42, 12, generatedAt],
    [54, 35, 'Grandlivre'],
    [89, 35, folder.firm],
    [145, 3, '001'],
    [149, 1, '-'],
  ]
  return line(columns, 149)
}

const isGeneral = ({ number }: Row) => rootOf(number) === undefined
const sectionsOf = (state: State, axis: Row) => state.sections.filter(({ axis_id }) => axis_id === axis?.id)

/** PS1 to PS5. */
function settings({ accounts, ...state }: State, folder: Row): string[] {
  const withRoot = (root: string) =>
    accounts
      .map(({ number }) => number)
      .filter((n) => n.startsWith(root))
      .sort()[0]
  const opening = state.journals.find(({ type }) => type === 'AN')
  return [
    record('PS1', 6, [
      [7, 35, folder.name],
      [42, 35, folder.address.street_name],
      [77, 35, folder.address.complement],
      [147, 9, folder.address.postal_code],
      [156, 35, folder.address.city],
      [191, 3, countryCode(folder.address.country)],
      [194, 25, folder.contact_phone_number],
      [269, 35, folder.contact_mail],
      [391, 35, folder.siret],
      [426, 17, folder.rcs_name],
      [478, 20, amount(folder.capital), 'right'],
    ]),
    record('PS2', 26, [...lengths({ accounts, ...state }), [28, 17, withRoot('471')]]),
    record('PS3', 6, [
      [75, 3, opening && state.codes.journals.get(opening.id)],
      [84, 17, state.collectives.get('411')?.number],
      [101, 17, state.collectives.get('401')?.number],
      [118, 17, state.collectives.get('421')?.number],
    ]),
    record('PS5', 48, [
      [7, 5, 'EUR2X'],
      [15, 17, withRoot('476')],
      [32, 17, withRoot('477')],
      [49, 10, '6,55957'],
      [71, 3, '001'],
      [74, 2, '07'],
      [76, 1, state.axes.length > 0 ? 'X' : '-'],
    ]),
  ]
}

/** Of numbers and codes, and the default sections of axes. */
function lengths(state: State): Column[] {
  const { accounts, collectives, axes, codes } = state
  const length = (texts: string[], least: number): string =>
    String(Math.min(17, Math.max(least, ...texts.map((text) => text.length))))
  const general = [...accounts.filter(isGeneral), ...collectives.values()].map(({ number }) => number)
  const third = accounts.filter((account) => !isGeneral(account)).map(({ number }) => number)
  return [
    [7, 2, length(general, 6), 'right'],
    [9, 1, '0'],
    [10, 2, length(third, 6), 'right'],
    [12, 1, '0'],
    ...[0, 1, 2, 3, 4].flatMap((i): Column[] => {
      const written = sectionsOf(state, axes[i]).map(({ id }) => codes.sections.get(id)!)
      return [
        [13 + 3 * i, 2, length(written, 3), 'right'],
        [15 + 3 * i, 1, '0'],
        [113 + 17 * i, 17, codes.sections.get(axes[i]?.default_section_id)],
      ]
    }),
  ]
}

async function exercices(read: Read): Promise<string[]> {
  const rows = await read(
    `select *, start_date::text as "from", end_date::text as "to",
       (closed_at at time zone 'Europe/Paris')::date::text as closed
     from grandlivre.exercices where § order by start_date, id`,
  )
  return rows.map((exercice, i) =>
    record('EXO', 77, [
      [7, 3, String(i + 1).padStart(3, '0')],
      [10, 8, day(exercice.from)],
      [18, 8, day(exercice.to)],
      [26, 3, exercice.closed === null ? 'OUV' : 'CDE'],
      [32, 35, `Exercice au ${day(exercice.to)}`],
      [67, 3, exercice.lettering === 'MONO' ? 'H' : 'OAN'],
      [70, 8, exercice.closed && day(exercice.closed)],
    ]),
  )
}

function establishment({ name, address }: Row): string {
  return record('ETB', 9, [
    [7, 3, '001'],
    [10, 35, name],
    [45, 35, street(address)],
    [80, 35, address.complement],
    [150, 9, address.postal_code],
    [159, 35, address.city],
    [194, 3, countryCode(address.country)],
  ])
}

type Mode = ReturnType<typeof modeOf>

function modeOfPayment([code, name]: Mode): string {
  return record('MDP', 44, [[7, 3, code, 'right'], [10, 35, name], [45, 3, code, 'right'], ...flags(51, 52)])
}

function modeOfSettlement([code, name]: Mode): string {
  return record('MDR', 44, [
    [7, 3, code],
    [10, 35, name],
    [45, 3, 'ECR'],
    [48, 3, '0', 'right'],
    [54, 2, '1', 'right'],
    [82, 3, code, 'right'],
    [85, 6, '100,00', 'right'],
  ])
}

/** Those of the selected movements behind the euro and the franc, each with its last rate. */
function currencies(movements: Row[]): string[] {
  const foreign = new Map<string, string>()
  for (const { currency, rate } of movements.toSorted(byDate))
    if (isForeign({ currency, rate })) foreign.set(currency, rate)
  return [['EUR', '1'], ['FRF', '6.55957'], ...[...foreign].sort()].map(([code, rate]) =>
    devise(code!, rate!),
  )
}

async function vatCodes({ codes }: State, read: Read): Promise<string[]> {
  const rows = await read('select * from grandlivre.vat_codes where § order by id')
  return rows.map(({ id, rate }) =>
    record('TVA', 44, [
      [7, 3, codes.vat.get(id)],
      [10, 35, `TVA ${amount(String(rate))} %`],
      [45, 3, 'FRA'],
      [48, 10, amount(String(rate)), 'right'],
      [58, 10, amount(String(rate)), 'right'],
    ]),
  )
}

function sections(state: State): string[] {
  return state.axes.slice(0, 5).flatMap((axis, i) =>
    sectionsOf(state, axis).map(({ id, name }) =>
      record('SAT', 61, [
        [7, 17, state.codes.sections.get(id)],
        [24, 35, name],
        [59, 3, `A${i + 1}`],
      ]),
    ),
  )
}

function correspondences({ accounts }: State): string[] {
  return accounts
    .filter(({ id }) => accounts.some(({ correspondance_account_id }) => correspondance_account_id === id))
    .map(({ number, name }) =>
      record('CRR', 61, [
        [7, 17, number],
        [24, 35, name],
        [59, 3, 'GE1'],
      ]),
    )
}

const natures: Record<string, string> = {
  ACH: 'ACH',
  VTE: 'VTE',
  BQ: 'BQE',
  CAISSE: 'CAI',
  AN: 'ANO',
  OD_EXC: 'EXT',
}

function journals(state: State): string[] {
  return state.journals.map(({ id, name, type, counterpart, locked }) =>
    record('JAL', 47, [
      [7, 3, state.codes.journals.get(id)],
      [10, 35, name],
      [45, 3, natures[type] ?? 'OD'],
      [54, 17, ['BQ', 'CAISSE'].includes(type) ? counterpart : null],
      [74, 3, '-'],
      [495, 1, locked ? 'X' : ''],
      [516, 1, type === 'A_EXT' ? 'X' : ''],
    ]),
  )
}

async function banks(read: Read): Promise<string[]> {
  const rows = await read(
    `select b.*, a.number from grandlivre.banks b
     left join grandlivre.accounts a on (a.schema_id, a.folder_id, a.id) = (b.schema_id, b.folder_id, b.account_id)
     where b.schema_id = $1 and b.folder_id = $2 order by b.id`,
  )
  return rows.map((bank, i) => {
    const rib = (bank.rib ?? '').replace(/[^0-9A-Za-z]/g, '')
    const part = (from: number, to: number) => (rib.length === 23 ? rib.slice(from, to) : '')
    return record('RIB', 29, [
      [7, 17, bank.number],
      [24, 6, String(i + 1), 'right'],
      [30, 1, bank.is_default ? 'X' : '-'],
      [31, 5, part(0, 5)],
      [36, 5, part(5, 10)],
      [41, 11, part(10, 21)],
      [52, 2, part(21, 23)],
      [119, 35, bank.bic],
      ...flags(157, 158, 159),
      [160, 70, bank.iban],
      [234, 8, part(0, 5)],
      [242, 20, part(10, 21)],
    ])
  })
}

const byDate = (a: Row, b: Row) => (a.date === b.date ? 0 : a.date < b.date ? -1 : 1)

const street = (address: Row) =>
  [address.number, address.locating_index, address.street_type, address.street_name].filter(Boolean).join(' ')

/** What has no name of its own bears its number or code. */
const named = (name: string, otherwise: string) => (name.trim() === '' ? otherwise : name)

function devise(code: string, rate: string): string {
  const name = new Intl.DisplayNames('fr', { type: 'currency' }).of(code)
  const isEuro = code === 'EUR' || code === 'FRF' ? 'X' : '-'
  return record('DEV', 80, [
    [7, 3, code],
    [10, 35, name],
    [48, 1, '-'],
    [49, 1, '2'],
    [56, 1, isEuro],
    [
      57,
      20,
      rate
        .replace(/(\.\d*?)0+$/, '$1')
        .replace(/\.$/, '')
        .replace('.', ','),
      'right',
    ],
    [77, 3, code],
    [80, 1, isEuro],
  ])
}

function generalAccounts({ accounts, axes, collectives }: State): string[] {
  const general = (number: string, name: string, collective: boolean, account: Row): string => {
    const nature = natureOf(number, collective)
    return record('CGN', 68, [
      [7, 17, number],
      [24, 35, named(name, number)],
      [59, 3, nature],
      [62, 1, nature === 'TIC' || nature === 'TID' ? 'X' : '-'],
      [63, 1, '-'],
      ...[1, 2, 3, 4, 5].map(
        (rank): Column => [63 + rank, 1, /^[67]/.test(number) && axes.length >= rank ? 'X' : '-'],
      ),
      [259, 17, account?.correspondance],
      [349, 1, account?.closed ? 'X' : ''],
      [350, 1, collective ? 'X' : ''],
    ])
  }
  const created = [...collectives.values()].filter(({ isNew }) => isNew)
  const numbers = [...collectives.values()].map(({ number }) => number)
  return [
    ...created.map(({ number, name }) => general(number, name, true, undefined)),
    ...accounts
      .filter(({ number }) => rootOf(number) === undefined || numbers.includes(number))
      .map((account) => general(account.number, account.name, numbers.includes(account.number), account)),
  ]
}

function natureOf(number: string, collective: boolean): string {
  if (collective) return roots.find(([root]) => number.startsWith(root))![2]
  const natures = {
    2: 'IMO',
    40: 'TIC',
    41: 'TID',
    51: 'BQE',
    53: 'CAI',
    6: 'CHA',
    7: 'PRO',
    8: 'EXT',
    9: 'EXT',
  }
  return Object.entries(natures).find(([root]) => number.startsWith(root))?.[1] ?? 'DIV'
}

function thirdParty({ collectives }: State, account: Row): string {
  const [root, nature] = rootOf(account.number)!
  const { address } = account
  const contact = account.contacts?.[0]
  return record('CAE', 545, [
    [7, 17, account.number],
    [24, 35, named(account.name, account.number)],
    [59, 3, nature],
    [62, 1, 'X'],
    [63, 17, collectives.get(root)!.number],
    [267, 35, address && street(address)],
    [302, 35, address?.complement],
    [372, 9, address?.postal_code],
    [381, 35, address?.city],
    [463, 3, address && countryCode(address.country)],
    [486, 1, '-'],
    [490, 25, account.phone_number ?? contact?.phoneNumber],
    [543, 3, account.payment && modeOf(account.payment)[0]],
    [598, 17, account.siren],
    [615, 5, account.ape_code],
    [620, 35, account.first_name ?? contact?.firstname],
  ])
}
