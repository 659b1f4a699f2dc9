/** The views of a copy in SQL, for people who ask it questions: docs/guides/sql.md. Pure. */
import { movementColumns } from '../lines/rows.ts'

/** What SQLite and PostgreSQL say differently. */
export interface Dialect {
  /** Time of creation of the entry `e`. */
  createdAt: string
  /** An amount of a movement `m` to show. */
  money(column: string): string
  /** Further columns of movements. */
  exact: string[]
  /** An exact sum to show; its argument adds and subtracts amounts as {@link amount} gives them. */
  sum(expression: string): string
  amount(row: string, column: 'debit' | 'credit'): string
  isValidated: string
  /** Whole days from the day to today. */
  daysSince(day: string): string
  /** Year and month of a day: `2026-01`. */
  month(day: string): string
  /** The shares of a movement `m`, as `s`. */
  shares: string
  share(member: 'axis_code' | 'section_code' | 'rate'): string
  /** The amount of a share, by the ends of the names of its columns. */
  shareAmount: [suffix: '' | '_cents', value: string][]
}

/** Creates the views, each after those that it reads. */
export function viewsOf(dialect: Dialect): string {
  const views = [
    ['movements', movements(dialect)],
    ['account_balances', accountBalances(dialect)],
    ['journal_totals', journalTotals(dialect)],
    ['open_items', openItems(dialect)],
    ['aged_receivables', aged('411', 'receivable', 1, dialect)],
    ['aged_payables', aged('401', 'payable', -1, dialect)],
    ['analytic_shares', analyticShares(dialect)],
    ['section_totals', sectionTotals(dialect)],
    ['unbalanced_entries', unbalancedEntries(dialect)],
  ]
  return views.map(([name, select]) => `create view ${name} as ${select};`).join('\n')
}

const ofMovements = `
  from movement_rows m
  join entries e on e.entry_id = m.entry_id
  left join journals j on j.journal_id = e.journal_id
  left join accounts a on a.account_id = m.account_id`

/** As in the balance of the service: validated, and no journal that is outside the books. */
const inBooks = ({ isValidated }: Dialect): string =>
  `${isValidated} and (j.journal_type is null or j.journal_type <> 'OD_EXC')`

/** These stand before the description of a movement in the CSV file. */
const namedBefore = [
  'entry_id',
  'movement_id',
  'account_id',
  'piece_date',
  'auxiliary_number',
  'auxiliary_name',
]

/** The columns of the CSV file, in its order. */
function movements({ createdAt, money, exact }: Dialect): string {
  const booked = movementColumns
    .filter(({ name }) => !namedBefore.includes(name))
    .map(({ name, type }) => (type === 'cents' ? `${money(name)} as ${name}` : `m.${name}`))
  return `select e.entry_id, e.entry_date, e.entry_due_date, e.accounted_at, ${createdAt} as created_at,
    e.validated_at, e.draft, e.exercice_id, e.journal_id, j.journal_code, j.journal_name, j.journal_type, e.source,
    e.currency, e.currency_rate, e.entry_comment, e.ecriture_num, m.piece_date, m.movement_id, m.account_id,
    a.account_number, a.account_name, m.auxiliary_number, m.auxiliary_name, ${[...booked, ...exact].join(', ')}
    ${ofMovements}`
}

function accountBalances(dialect: Dialect): string {
  const [debit, credit] = [dialect.amount('m', 'debit'), dialect.amount('m', 'credit')]
  return `select t.exercice_id, x.exercice_name, t.account_id, a.account_number, a.account_name, t.debit, t.credit, t.balance
    from (
      select e.exercice_id, m.account_id, ${dialect.sum(debit)} as debit, ${dialect.sum(credit)} as credit,
        ${dialect.sum(`${debit} - ${credit}`)} as balance
      from movement_rows m
      join entries e on e.entry_id = m.entry_id
      left join journals j on j.journal_id = e.journal_id
      where ${inBooks(dialect)}
      group by e.exercice_id, m.account_id
    ) t
    left join accounts a on a.account_id = t.account_id
    left join exercices x on x.exercice_id = t.exercice_id`
}

function journalTotals(dialect: Dialect): string {
  const [debit, credit] = [dialect.amount('m', 'debit'), dialect.amount('m', 'credit')]
  return `select e.exercice_id, j.journal_code, j.journal_name, ${dialect.month('e.entry_date')} as month,
      count(distinct e.entry_id) as entries, ${dialect.sum(debit)} as debit, ${dialect.sum(credit)} as credit
    from movement_rows m
    join entries e on e.entry_id = m.entry_id
    left join journals j on j.journal_id = e.journal_id
    where ${dialect.isValidated}
    group by e.exercice_id, j.journal_code, j.journal_name, ${dialect.month('e.entry_date')}`
}

/** Movements of customers and suppliers that are not completely lettered. Without a due date the entry's own day counts. */
function openItems(dialect: Dialect): string {
  const due = 'coalesce(m.due_date, e.entry_date)'
  return `select e.exercice_id, a.account_id, a.account_number, a.account_name, e.entry_id, m.movement_id, e.entry_date,
      ${due} as due_date, ${dialect.daysSince(due)} as days_overdue, m.invoice_number, m.description,
      m.lettering_state, m.lettering_code, ${dialect.money('debit')} as debit, ${dialect.money('credit')} as credit
      ${dialect.exact.map((column) => `, ${column}`).join('')}
    from movement_rows m
    join entries e on e.entry_id = m.entry_id
    join accounts a on a.account_id = m.account_id
    left join journals j on j.journal_id = e.journal_id
    where (a.account_number like '401%' or a.account_number like '411%') and m.lettering_state <> 'complete'
      and ${inBooks(dialect)}`
}

/** What is still open of each customer or supplier of an exercice, by how long it is overdue. */
function aged(root: string, column: string, sign: 1 | -1, dialect: Dialect): string {
  const [debit, credit] = [dialect.amount('o', 'debit'), dialect.amount('o', 'credit')]
  const open = sign === 1 ? `${debit} - ${credit}` : `${credit} - ${debit}`
  const between = (condition: string): string => dialect.sum(`case when ${condition} then ${open} else 0 end`)
  return `select o.exercice_id, o.account_id, o.account_number, o.account_name, ${dialect.sum(open)} as ${column},
      ${between('o.days_overdue <= 0')} as not_due,
      ${between('o.days_overdue between 1 and 30')} as days_1_30,
      ${between('o.days_overdue between 31 and 60')} as days_31_60,
      ${between('o.days_overdue between 61 and 90')} as days_61_90,
      ${between('o.days_overdue > 90')} as days_over_90
    from open_items o
    where o.account_number like '${root}%'
    group by o.exercice_id, o.account_id, o.account_number, o.account_name`
}

/** A share has no sign of its own: it is of a debit or of a credit, as its movement. */
function analyticShares(dialect: Dialect): string {
  const { isValidated, shares, share, shareAmount } = dialect
  const isDebit = `${dialect.amount('m', 'debit')} <> 0`
  const sides = shareAmount.flatMap(([suffix, value]) => [
    `case when ${isDebit} then ${value} else 0 end as debit${suffix}`,
    `case when ${isDebit} then 0 else ${value} end as credit${suffix}`,
  ])
  return `select e.exercice_id, e.entry_id, e.entry_date, m.movement_id, a.account_number, a.account_name,
      ${share('axis_code')} as axis_code, ${share('section_code')} as section_code, ${sides.join(', ')},
      ${share('rate')} as rate
    ${ofMovements}
    cross join ${shares}
    where m.analytics is not null and ${isValidated}`
}

/** By the first two characters of the account: 60 are purchases, 70 sales. */
function sectionTotals(dialect: Dialect): string {
  const [debit, credit] = [dialect.amount('s', 'debit'), dialect.amount('s', 'credit')]
  return `select s.exercice_id, s.axis_code, s.section_code, substr(s.account_number, 1, 2) as account_class,
      ${dialect.sum(debit)} as debit, ${dialect.sum(credit)} as credit, ${dialect.sum(`${debit} - ${credit}`)} as balance
    from analytic_shares s
    group by s.exercice_id, s.axis_code, s.section_code, substr(s.account_number, 1, 2)`
}

function unbalancedEntries(dialect: Dialect): string {
  const [debit, credit] = [dialect.amount('m', 'debit'), dialect.amount('m', 'credit')]
  return `select e.exercice_id, e.draft, e.entry_id, e.entry_date, ${dialect.sum(debit)} as debit,
      ${dialect.sum(credit)} as credit, ${dialect.sum(`${debit} - ${credit}`)} as difference
    from movement_rows m join entries e on e.entry_id = m.entry_id
    group by e.exercice_id, e.draft, e.entry_id, e.entry_date
    having sum(${debit}) <> sum(${credit})`
}
