/**
 * Schedules the entries of a seeded ledger: dates ascend evenly over the year, invoices are settled some weeks after
 * they arrive, and the number of movements is exact.
 *
 * An invoice is lettered from the start, because its movements are loaded before the payment exists. So the ledger owes
 * two movements for each open item. An entry is added only if the remaining movements still cover this debt. What
 * remains beyond the debt (the slack) must be zero or at least two, which is enough for another entry.
 */
import { strict as assert } from 'node:assert'
import type { Chart } from './chart.ts'
import * as entries from './entries.ts'
import type { DraftedEntry, OpenItem } from './lines.ts'
import type { Random } from './random.ts'

/** Most open items at a time. They are the only memory that grows with a ledger. */
const openItemsMax = 20_000

/**
 * Most lines of an entry. The longest one has the opening balances, which are few because the previous year is small.
 */
export const entryLinesMax = 4_000

const movementsOfYearBeforeMax = 3_000

/**
 * Makes the entries of two fiscal years: first the previous year, closed and small, then `year` with all other
 * movements.
 * @param movements of both years together, at least 10
 */
export function* generateLedger(
  chart: Chart,
  random: Random,
  plan: { movements: number; year: number; thirdPartyId: string },
): Generator<DraftedEntry> {
  assert(plan.movements >= 10, 'two years need at least ten movements')
  const before =
    plan.movements < 400 ? 2 : Math.min(Math.floor(plan.movements / 100), movementsOfYearBeforeMax)
  const yearBefore = { ...plan, year: plan.year - 1, movements: before, opening: null }
  const balances = new Map<string, bigint>()
  for (const entry of generateYear(chart, random, yearBefore)) {
    for (const { accountId, debit, credit } of entry.lines)
      balances.set(accountId, (balances.get(accountId) ?? 0n) + debit - credit)
    yield entry
  }
  const opening = openingBalances(chart, balances)
  yield* generateYear(chart, random, { ...plan, movements: plan.movements - before, opening })
}

/**
 * The balances with which the next year opens. Expenses and income are closed with their year: their sum becomes the
 * result, a profit or a loss.
 */
function openingBalances(chart: Chart, balances: Map<string, bigint>): Map<string, bigint> {
  const opening = new Map<string, bigint>()
  // Expenses and income are the accounts of classes 6 and 7.
  const closing = new Set(chart.accounts.flatMap(({ id, number }) => (number < '6' ? [] : id)))
  let result = 0n
  for (const [accountId, balance] of balances) {
    if (closing.has(accountId)) result += balance
    else if (balance !== 0n) opening.set(accountId, balance)
  }
  if (result !== 0n) opening.set(chart.accountId(result < 0n ? '120000' : '129000'), result)
  return opening
}

interface YearPlan {
  year: number
  movements: number
  thirdPartyId: string
  /**
   * The balances with which the year opens. Null in the first year of the books, which begins with the capital and has
   * no drafts.
   */
  opening: Map<string, bigint> | null
}

function* generateYear(chart: Chart, random: Random, plan: YearPlan): Generator<DraftedEntry> {
  const days = daysFrom(plan.year)
  const lastDay = days.indexOf(`${plan.year}-12-31`)
  const books = entries.bookkeeping(chart, random, plan.thirdPartyId, days)
  const openItems = openItemQueue()
  // Wages are at most an eighth of a ledger, so the smallest ledgers have none.
  const paySlipsPerMonth = Math.min(chart.staff.length, Math.floor(plan.movements / 12 / 64))
  const monthly: (() => DraftedEntry | null)[] = []
  let monthDone = ''
  let left = plan.movements

  const first =
    plan.opening === null ? entries.foundation(books, 0) : entries.openingEntry(books, 0, plan.opening)
  left -= first.lines.length
  yield first

  for (;;) {
    const progress = 1 - left / plan.movements
    const day = Math.min(Math.floor(progress * (lastDay + 1)), lastDay)
    const date = days[day]!
    if (date.slice(8) >= '27' && date.slice(0, 7) !== monthDone) {
      monthDone = date.slice(0, 7)
      for (const employee of chart.staff.slice(0, paySlipsPerMonth))
        monthly.push(() => entries.paySlip(books, day, employee))
      monthly.push(() => entries.vatReturn(books, day))
    }
    const slack = left - 2 * openItems.length()
    const entry =
      monthly.shift()?.() ??
      (openItems.length() > openItemsWanted(plan.movements, progress)
        ? settleNext(books, openItems, day, slack)
        : newEntry(books, day, progress, plan.opening !== null))
    const slackAfter = left - entry.lines.length - 2 * (openItems.length() + (entry.opens === null ? 0 : 1))
    if (slackAfter < 0 || slackAfter === 1) break
    left -= entry.lines.length
    if (entry.opens !== null) openItems.push(entry.opens)
    yield entry
  }

  while (openItems.length() > 0) {
    left -= 2
    yield entries.settlement(books, lastDay, openItems.shift())
  }
  if (left > 0) yield entries.accrual(books, lastDay, left)
}

/**
 * How many items should be open: about six weeks of invoices, and fewer towards the end of the year, so that the last
 * invoices are not all paid on its last day.
 */
function openItemsWanted(movements: number, progress: number): number {
  return Math.min(openItemsMax, movements / 60) * Math.min(1, (1 - progress) * 10)
}

function settleNext(
  books: entries.Bookkeeping,
  openItems: OpenItems,
  day: number,
  slack: number,
): DraftedEntry {
  const item = openItems.shift()
  const isDeposited = (next: OpenItem | undefined) =>
    next !== undefined && next.kind === 'customer' && ['CHQ', 'CB', 'ESP'].includes(next.party.payment)
  const items = [item]
  // A deposit uses fewer movements than are owed, which may turn a slack of zero into one, so it needs a slack.
  if (slack >= 2 && isDeposited(item))
    while (items.length < 6 && isDeposited(openItems.first())) items.push(openItems.shift())
  return items.length === 1 ? entries.settlement(books, day, item) : entries.deposit(books, day, items)
}

function newEntry(books: entries.Bookkeeping, day: number, progress: number, mayBeDraft: boolean) {
  const { random } = books
  const kind = random.fraction()
  if (kind < 0.82) {
    // About one invoice in fifty is a draft, and so one entry in a hundred. The last invoices of a year stay open until
    // the next.
    let fate: entries.InvoiceFate = 'open'
    if (mayBeDraft && random.chance(0.021)) fate = 'draft'
    else if (progress < 0.95 && random.chance(0.85)) fate = 'settled'
    return kind < 0.42 ? entries.purchase(books, day, fate) : entries.sale(books, day, fate)
  }
  if (kind < 0.9) return entries.cashSale(books, day)
  if (kind < 0.97) return entries.adjustment(books, day)
  return entries.bankCharge(books, day)
}

/** The days of a year as `YYYY-MM-DD`, followed by three months of the next year for due dates and validations. */
function daysFrom(year: number): string[] {
  const days: string[] = []
  for (let time = Date.UTC(year, 0, 1); time < Date.UTC(year + 1, 3, 1); time += 86_400_000)
    days.push(new Date(time).toISOString().slice(0, 10))
  return days
}

type OpenItems = ReturnType<typeof openItemQueue>

/** A first-in, first-out queue. A plain array would move all its items at each shift. */
function openItemQueue() {
  let items: OpenItem[] = []
  let head = 0
  return {
    length: () => items.length - head,
    first: () => items[head],
    push: (item: OpenItem) => void items.push(item),
    shift(): OpenItem {
      const item = items[head]
      assert(item !== undefined, 'there is an open item')
      head += 1
      if (head === 1024) {
        items = items.slice(head)
        head = 0
      }
      return item
    },
  }
}
