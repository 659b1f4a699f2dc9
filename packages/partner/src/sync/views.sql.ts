/**
 * The views of a copy in SQL, for people who query it: docs/guides/sql.md#views. Pure. Whatever depends on today's date
 * (names of exercices, ages of open items) is only in views, so tables need no update at midnight. Views leave out
 * folders that are gone. A filter by firm, folder, exercice or account reaches the tables through every view.
 */

/** The expressions that differ between SQLite and PostgreSQL. */
export interface Dialect {
  /** A stored amount as an expression in the unit in which amounts are summed exactly. */
  amount(column: string): string
  /** Columns of this name that show an exact sum of amounts. */
  shown(sum: string, name: string): string
  today: string
  /** Whole days from this day to today. */
  daysSince(day: string): string
  /** Year and month of a day, such as `2026-01`. */
  month(day: string): string
  /** A source of rows `s`: the shares of a movement `m`. */
  shares: string
  share(member: 'axis_code' | 'section_code' | 'rate'): string
  /** The amount of a share, in the unit of {@link amount}. */
  shareAmount: string
}

/** SQLite keeps whole cents in columns whose names end in `_cents`. The columns without that ending are for reading. */
export const sqliteDialect: Dialect = {
  amount: (column) => `${column}_cents`,
  shown: (sum, name) => `${sum} as ${name}_cents, ${sum} / 100.0 as ${name}`,
  today: "date('now', 'localtime')",
  daysSince: (day) => `cast(julianday(date('now', 'localtime')) - julianday(${day}) as integer)`,
  month: (day) => `substr(${day}, 1, 7)`,
  // Damaged JSON must not make a query fail.
  shares: 'json_each(case when json_valid(m.analytics) then m.analytics end) s',
  share: (member) => `json_extract(s.value, '$.${member}')`,
  shareAmount: `cast(round(json_extract(s.value, '$.amount') * 100) as integer)`,
}

export const postgresDialect: Dialect = {
  amount: (column) => column,
  shown: (sum, name) => `${sum} as ${name}`,
  today: 'current_date',
  daysSince: (day) => `(current_date - ${day})`,
  month: (day) => `to_char(${day}, 'YYYY-MM')`,
  shares: 'json_array_elements(m.analytics) s',
  share: (member) => `(s ->> '${member}')${member === 'rate' ? '::numeric' : ''}`,
  shareAmount: `(s ->> 'amount')::numeric(18,2)`,
}

export interface View {
  name: string
  description: string
  select: string
}

/** All views, in an order in which each comes after the views that it reads. */
export function viewsOf(dialect: Dialect): View[] {
  return [
    ...[namedExercices(dialect), generalLedger(dialect), accountBalances(dialect), firmBalances(dialect)],
    ...[journalTotals(dialect), vatByMonth(dialect), openItems(dialect)],
    aged('aged_receivables', 'customer', '411', 'receivable', 1, dialect),
    aged('aged_payables', 'supplier', '401', 'payable', -1, dialect),
    ...[analyticShares(dialect), sectionTotals(dialect), unbalancedEntries(dialect)],
  ]
}

/** The day on which a movement falls due: its due date, or the day of the entry if it has none. */
export const dueDay = 'coalesce(due_date, entry_date)'
/**
 * Movements of customers and suppliers that are not completely lettered. The index of due items has the same condition.
 */
export const isOpenItem = `lettering_state <> 'complete' and (account_number like '401%' or account_number like '411%')`

const ofMovements = 'from movements m join folders f on f.society_id = m.society_id and f.gone_at is null'
/** Movements that the balance of the service counts: they are validated and in no journal outside of the books. */
const inBooks = `not m.draft and (m.journal_type is null or m.journal_type <> 'OD_EXC')`

/**
 * Exercices with the names of docs/spec/resources.md#exercice: counted from the exercice of today, or, without one,
 * from the latest exercice that has started.
 */
function namedExercices({ today }: Dialect): View {
  const latest = (condition: string) =>
    `max(case when ${condition} then x.place end) over (partition by x.society_id)`
  return {
    name: 'named_exercices',
    description: 'Fiscal years with the names that they have today: N, N-1',
    select: `select d.firm_id, d.society_id, d.exercice_id,
      case when d.distance = 0 then 'N' when d.distance < 0 then 'N' || d.distance else 'N+' || d.distance end
        as exercice_name, d.start_date, d.end_date, d.months, d.state, d.closed_at
    from (
      select x.*, x.place - coalesce(${latest(`x.start_date <= ${today} and ${today} <= x.end_date`)},
        ${latest(`x.start_date <= ${today}`)}, 0) as distance
      from (
        select f.firm_id, e.*,
          row_number() over (partition by e.society_id order by e.start_date, e.exercice_id) as place
        from exercices e join folders f on f.society_id = e.society_id and f.gone_at is null
      ) x
    ) d`,
  }
}

function generalLedger({ amount, shown }: Dialect): View {
  const [debit, credit] = [amount('m.debit'), amount('m.credit')]
  const balance = `sum(${debit} - ${credit}) over (partition by m.society_id, m.exercice_id, m.account_id
        order by m.entry_date, m.entry_id, m.movement_id rows unbounded preceding)`
  return {
    name: 'general_ledger',
    description:
      'Movements of validated entries with the running balance of their account in its fiscal year',
    select: `select f.firm_id, m.society_id, m.exercice_id, m.account_id, m.account_number, m.account_name, m.entry_date,
      m.entry_id, m.movement_id, m.journal_code, m.ecriture_num, m.invoice_number, m.description, m.lettering_state,
      m.lettering_code, ${shown(debit, 'debit')}, ${shown(credit, 'credit')}, ${shown(balance, 'balance')}
    ${ofMovements}
    where ${inBooks}`,
  }
}

function accountBalances({ amount, shown }: Dialect): View {
  const [debit, credit] = [amount('m.debit'), amount('m.credit')]
  return {
    name: 'account_balances',
    description: 'Debit, credit and balance of validated entries by fiscal year and account',
    select: `select t.*, x.exercice_name
    from (
      select f.firm_id, m.society_id, m.exercice_id, m.account_id, m.account_number, m.account_name,
        ${sums({ debit, credit, balance: `${debit} - ${credit}` }, shown)}
      ${ofMovements}
      where ${inBooks}
      group by f.firm_id, m.society_id, m.exercice_id, m.account_id, m.account_number, m.account_name
    ) t
    left join named_exercices x on x.society_id = t.society_id and x.exercice_id = t.exercice_id`,
  }
}

/** Balances of each folder of a firm, by which to compare the folders. */
function firmBalances({ amount, shown }: Dialect): View {
  const balance = amount('b.balance')
  const balanceOf = (root: string, sign: '' | '-' = '') =>
    `case when b.account_number like '${root}%' then ${sign}${balance} else 0 end`
  const result = `case when b.account_number like '6%' or b.account_number like '7%' then -${balance} else 0 end`
  const facts = {
    ...{ turnover: balanceOf('70', '-'), result, bank: balanceOf('512'), cash: balanceOf('53') },
    ...{ receivable: balanceOf('411'), payable: balanceOf('401', '-'), vat_due: balanceOf('445', '-') },
  }
  return {
    name: 'firm_balances',
    description:
      'Folders side by side by fiscal year: turnover (70), result (7 less 6), bank, cash, third parties, VAT',
    select: `select b.firm_id, f.firm_name, b.society_id, f.name as society_name, b.exercice_id, b.exercice_name,
      ${sums(facts, shown)}
    from account_balances b join folders f on f.society_id = b.society_id
    group by b.firm_id, f.firm_name, b.society_id, f.name, b.exercice_id, b.exercice_name`,
  }
}

function journalTotals({ amount, shown, month }: Dialect): View {
  const day = month('m.entry_date')
  return {
    name: 'journal_totals',
    description: 'Entries, debit and credit of validated entries by fiscal year, journal and month',
    select: `select f.firm_id, m.society_id, m.exercice_id, m.journal_id, m.journal_code, m.journal_name, ${day} as month,
      count(distinct m.entry_id) as entries,
      ${sums({ debit: amount('m.debit'), credit: amount('m.credit') }, shown)}
    ${ofMovements}
    where not m.draft
    group by f.firm_id, m.society_id, m.exercice_id, m.journal_id, m.journal_code, m.journal_name, ${day}`,
  }
}

/** Several VAT codes may share an account. A code or a rate is shown for an account only if all its codes agree. */
function vatByMonth({ amount, shown, month }: Dialect): View {
  const [debit, credit] = [amount('m.debit'), amount('m.credit')]
  const agreed = (column: string) =>
    `case when count(u.${column}) = count(*) and min(u.${column}) = max(u.${column}) then min(u.${column}) end`
  const codesOf = (account: string) =>
    `select society_id, ${account} as account_id, vat_code, rate from vats where ${account} is not null`
  const day = month('m.entry_date')
  return {
    name: 'vat_by_month',
    description: 'Validated movements of the VAT accounts (445) by fiscal year, month and account',
    select: `select f.firm_id, m.society_id, m.exercice_id, ${day} as month, m.account_id, m.account_number, m.account_name,
      v.vat_code, v.rate, ${sums({ debit, credit, balance: `${debit} - ${credit}` }, shown)}
    ${ofMovements}
    left join (
      select u.society_id, u.account_id, ${agreed('vat_code')} as vat_code, ${agreed('rate')} as rate
      from (${codesOf('deductible_account_id')} union all ${codesOf('collected_account_id')}) u
      group by u.society_id, u.account_id
    ) v on v.society_id = m.society_id and v.account_id = m.account_id
    where m.account_number like '445%' and ${inBooks}
    group by f.firm_id, m.society_id, m.exercice_id, ${day}, m.account_id, m.account_number, m.account_name, v.vat_code, v.rate`,
  }
}

function openItems({ amount, shown, daysSince }: Dialect): View {
  return {
    name: 'open_items',
    description:
      'Movements of customers (411) and suppliers (401) that are not completely lettered, with their age today',
    select: `select f.firm_id, m.society_id, m.exercice_id, m.account_id, m.account_number, m.account_name, m.entry_id,
      m.movement_id, m.entry_date, ${dueDay} as due_date, ${daysSince(dueDay)} as days_overdue, m.invoice_number,
      m.description, m.lettering_state, m.lettering_code, ${shown(amount('m.debit'), 'debit')},
      ${shown(amount('m.credit'), 'credit')}
    ${ofMovements}
    where ${isOpenItem} and ${inBooks}`,
  }
}

/** The open balance of each customer or supplier in an exercice, by how long it is overdue. */
function aged(name: string, who: string, root: string, column: string, sign: 1 | -1, dialect: Dialect): View {
  const [debit, credit] = [dialect.amount('o.debit'), dialect.amount('o.credit')]
  const open = sign === 1 ? `${debit} - ${credit}` : `${credit} - ${debit}`
  const where = (condition: string): string => `case when ${condition} then ${open} else 0 end`
  const ages = {
    [column]: open,
    not_due: where('o.days_overdue <= 0'),
    days_1_30: where('o.days_overdue between 1 and 30'),
    days_31_60: where('o.days_overdue between 31 and 60'),
    days_61_90: where('o.days_overdue between 61 and 90'),
    days_over_90: where('o.days_overdue > 90'),
  }
  return {
    name,
    description: `What is open of each ${who} by fiscal year, by how long it is overdue today`,
    select: `select o.firm_id, o.society_id, o.exercice_id, o.account_id, o.account_number, o.account_name,
      ${sums(ages, dialect.shown)}
    from open_items o
    where o.account_number like '${root}%'
    group by o.firm_id, o.society_id, o.exercice_id, o.account_id, o.account_number, o.account_name`,
  }
}

/** A share has no sign of its own: it is a debit or a credit like its movement. */
function analyticShares({ amount, shown, shares, share, shareAmount }: Dialect): View {
  const isDebit = `${amount('m.debit')} <> 0`
  const [debit, credit] = [
    `case when ${isDebit} then ${shareAmount} else 0 end`,
    `case when ${isDebit} then 0 else ${shareAmount} end`,
  ]
  return {
    name: 'analytic_shares',
    description: 'Analytic shares of movements of validated entries',
    select: `select f.firm_id, m.society_id, m.exercice_id, m.entry_id, m.entry_date, m.movement_id, m.account_number,
      m.account_name, ${share('axis_code')} as axis_code, ${share('section_code')} as section_code,
      ${shown(debit, 'debit')}, ${shown(credit, 'credit')}, ${share('rate')} as rate
    ${ofMovements}
    cross join ${shares}
    where m.analytics is not null and not m.draft`,
  }
}

/** Totals by the first two characters of the account: 60 for purchases, 70 for sales. */
function sectionTotals({ amount, shown }: Dialect): View {
  const [debit, credit] = [amount('s.debit'), amount('s.credit')]
  const root = 'substr(s.account_number, 1, 2)'
  return {
    name: 'section_totals',
    description: 'Analytic shares by fiscal year, axis, section and class of accounts',
    select: `select s.firm_id, s.society_id, s.exercice_id, s.axis_code, s.section_code, ${root} as account_class,
      ${sums({ debit, credit, balance: `${debit} - ${credit}` }, shown)}
    from analytic_shares s
    group by s.firm_id, s.society_id, s.exercice_id, s.axis_code, s.section_code, ${root}`,
  }
}

function unbalancedEntries({ amount, shown }: Dialect): View {
  const [debit, credit] = [amount('m.debit'), amount('m.credit')]
  return {
    name: 'unbalanced_entries',
    description: 'Entries, drafts included, whose debit is not their credit',
    select: `select f.firm_id, m.society_id, m.exercice_id, m.draft, m.entry_id, m.entry_date,
      ${sums({ debit, credit, difference: `${debit} - ${credit}` }, shown)}
    ${ofMovements}
    group by f.firm_id, m.society_id, m.exercice_id, m.draft, m.entry_id, m.entry_date
    having sum(${debit}) <> sum(${credit})`,
  }
}

/** Exact sums as columns, by name. */
function sums(summed: Record<string, string>, shown: Dialect['shown']): string {
  return Object.entries(summed)
    .map(([name, expression]) => shown(`sum(${expression})`, name))
    .join(', ')
}
