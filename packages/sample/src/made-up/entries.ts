/**
 * Makes the entries of a seeded ledger. A function for each kind of entry makes it from the day and random numbers. All
 * entries balance to the cent, because one amount is always the remainder of the others.
 */
import { strict as assert } from 'node:assert'
import tables from './chart.json' with { type: 'json' }
import type { Chart, ThirdParty } from './chart.ts'
import { type DraftedEntry, type Line, letteringCode, newLine, type OpenItem, splitShares } from './lines.ts'
import type { Random } from './random.ts'
import words from './words.json' with { type: 'json' }

/** Whether an invoice will be settled later, stays open, or is still a draft. */
export type InvoiceFate = 'settled' | 'open' | 'draft'

/** The data from which the entries of a year are made, and the running totals that later entries need. */
export type Bookkeeping = ReturnType<typeof bookkeeping>

/**
 * @param thirdPartyId the third party that sent the entries whose source is API
 * @param days the days of the fiscal year as `YYYY-MM-DD`, and days after it for validations and due dates
 */
export function bookkeeping(chart: Chart, random: Random, thirdPartyId: string, days: string[]) {
  const sectionsOf = (axis: { id: string }) =>
    chart.sections.filter(({ axisId }) => axisId === axis.id).map(({ id }) => BigInt(id))
  return {
    ...{ chart, random, thirdPartyId, days },
    axes: chart.axes.map(sectionsOf),
    /** How many lettering codes each account has used so far: a code is used once per account and year. */
    codes: new Map<string, number>(),
    ...{ invoices: 0, vatCollected: 0n, vatDeductible: 0n },
  }
}

export function purchase(books: Bookkeeping, day: number, fate: InvoiceFate): DraftedEntry {
  const { chart, random } = books
  const source = random.pick(['E', 'E', 'E', 'IB', 'IB', 'API', 'ABO', 'FEC', 'QUADRA', 'EXT'])
  const party = random.pick(chart.suppliers)
  const invoiceNumber = `${random.pick(['FA', 'F', 'INV-', ''])}${random.digits(random.integer(4, 8))}`
  const description = described(random, `FACTURE ${party.name} ${invoiceNumber}`)
  const accounts = source === 'ABO' ? ['613200', '626000', '616000'] : tables.expenseAccounts
  return invoice(books, day, fate, { kind: 'supplier', source, party, invoiceNumber, description, accounts })
}

export function sale(books: Bookkeeping, day: number, fate: InvoiceFate): DraftedEntry {
  const { chart, random, days } = books
  const source = random.pick(['E', 'E', 'M', 'API', 'EXCEL', 'CEGID', 'QUICK', 'P'])
  const party = random.pick(chart.customers)
  books.invoices += 1
  const invoiceNumber = `F${days[day]!.slice(0, 4)}-${String(books.invoices).padStart(6, '0')}`
  const description = described(random, `FACT ${invoiceNumber} ${party.name}`)
  const accounts = ['701000', '706000', '707000', '708500']
  return invoice(books, day, fate, { kind: 'customer', source, party, invoiceNumber, description, accounts })
}

interface Invoice extends OpenInvoice {
  kind: 'supplier' | 'customer'
  source: string
  description: string
  /** Numbers of the accounts of purchases or sales. */
  accounts: readonly string[]
}

/**
 * An invoice has one line for the third party, one to three for purchases or sales, and one for VAT if there is any.
 */
function invoice(books: Bookkeeping, day: number, fate: InvoiceFate, given: Invoice): DraftedEntry {
  const { chart, random, days, axes } = books
  const { kind, source, party, invoiceNumber, description, accounts } = given
  const isPurchase = kind === 'supplier'
  /** The sign of the lines for purchases or sales. The line of the third party has the other sign. */
  const sign = isPurchase ? 1n : -1n
  const line = (accountId: string, amount: bigint) => newLine(accountId, description, invoiceNumber, amount)
  const lines: Line[] = []
  let net = 0n
  for (let count = random.pick([1, 1, 1, 2, 2, 3]); count > 0; count--) {
    const amount = random.cents(3, 6.3)
    net += amount
    const netLine = line(chart.accountId(random.pick(accounts)), sign * amount)
    netLine.shares = splitShares(random, axes, amount)
    lines.push(netLine)
  }
  const vat = (net * BigInt(party.vatRate) + 5000n) / 10_000n
  if (vat > 0n) lines.push(line(chart.accountId(isPurchase ? '445660' : '445710'), sign * vat))
  books[isPurchase ? 'vatDeductible' : 'vatCollected'] += vat
  const dueDate = random.chance(0.8) ? days[day + random.pick([0, 15, 30, 30, 45, 60])]! : null
  const partyLine = line(party.accountId, -sign * (net + vat))
  partyLine.dueDate = dueDate
  partyLine.paymentId = random.chance(0.7) ? chart.paymentId(party.payment) : null
  const opens = fate === 'settled' ? letter(books, partyLine, { kind, party, invoiceNumber }) : null
  if (random.chance(0.06)) partyLine.freeNumber = `BL ${random.digits(5)}/${random.pick(['A', 'B', 'É'])}`
  lines.unshift(partyLine)
  const made = entry(books, day, isPurchase ? 'AC' : 'VT', source, lines)
  made.dueDate = random.chance(0.5) ? dueDate : null
  made.opens = opens
  if (fate === 'draft') made.validatedAt = null
  if (party.currency !== 'EUR') {
    made.currency = party.currency
    made.rate = `${random.integer(0, 1)}.${random.integer(850_000, 999_999)}`
  }
  attach(random, made, `${invoiceNumber || 'sans numéro'}.pdf`)
  return made
}

type OpenInvoice = Pick<OpenItem, 'kind' | 'party' | 'invoiceNumber'>

/** Marks the line as lettered and returns the item to be settled. One item in fifteen will be settled only in part. */
function letter({ random, codes }: Bookkeeping, line: Line, item: OpenInvoice): OpenItem {
  const amount = line.debit + line.credit
  const state = random.chance(1 / 15) ? 'partial' : 'complete'
  const given = codes.get(line.accountId) ?? 0
  codes.set(line.accountId, given + 1)
  line.letteringState = state
  line.letteringCode = letteringCode(given)
  const payable = state === 'complete' ? amount : (amount * BigInt(random.integer(10, 90))) / 100n
  return { ...item, payable, state, code: line.letteringCode }
}

/** Pays one item through the bank, in two movements. */
export function settlement(books: Bookkeeping, day: number, item: OpenItem): DraftedEntry {
  const { chart, random } = books
  const { kind, party, invoiceNumber, payable } = item
  const verb = { customer: 'RÈGLEMENT', employee: 'VIR SALAIRE', supplier: 'VIR' }[kind]
  const description = described(random, `${verb} ${party.name} ${invoiceNumber}`.trimEnd())
  const sources = {
    customer: ['RB_JDC', 'RB_QT', 'RB_MANUEL', 'PRLV_SEPA', 'L'],
    employee: undefined,
    supplier: ['RB_JDC', 'RB_SB', 'VIRT_SEPA', 'E', 'IB'],
  }[kind]
  const source = sources ? random.pick(sources) : 'VIRT_SEPA'
  const [account, journal] = random.chance(0.1) ? ['512100', 'BQ2'] : ['512000', 'BQ']
  const amount = kind === 'customer' ? payable : -payable
  const bankLine = newLine(chart.accountId(account!), description, invoiceNumber, amount)
  bankLine.paymentId = chart.paymentId(party.payment)
  return entry(books, day, journal!, source, [settlingLine(chart, item, description), bankLine])
}

/** Deposits the payments of several customers: one movement for each, and one at the bank for their sum. */
export function deposit(books: Bookkeeping, day: number, items: OpenItem[]): DraftedEntry {
  const { chart, random } = books
  const description = `REMISE DE CHÈQUES N° ${random.digits(7)}`
  const lines = items.map((item) => settlingLine(chart, item, `${description} ${item.party.name}`))
  const total = items.reduce((sum, item) => sum + item.payable, 0n)
  const bankLine = newLine(chart.accountId('512000'), description, '', total)
  bankLine.paymentId = chart.paymentId('CHQ')
  return entry(books, day, 'BQ', 'REM_BQ', [...lines, bankLine])
}

function settlingLine(chart: Chart, item: OpenItem, description: string): Line {
  const { kind, party, invoiceNumber, payable, state, code } = item
  const line = newLine(party.accountId, description, invoiceNumber, kind === 'customer' ? -payable : payable)
  const paymentId = chart.paymentId(party.payment)
  return { ...line, paymentId, letteringState: state, letteringCode: code }
}

export function cashSale(books: Bookkeeping, day: number): DraftedEntry {
  const { chart, random, days, axes } = books
  const gross = random.cents(2.5, 4.3)
  const vat = (gross * 2000n + 6000n) / 12_000n
  books.vatCollected += vat
  const description = described(random, `RECETTES DU ${days[day]}`)
  const lines = linesOf(chart, description, [
    ['530000', gross],
    ['707000', vat - gross],
    ['445710', -vat],
  ])
  lines[0]!.paymentId = chart.paymentId('ESP')
  lines[1]!.shares = splitShares(random, axes, gross - vat)
  return entry(books, day, 'CA', random.pick(['M', 'E', 'RTVR']), lines)
}

export function bankCharge(books: Bookkeeping, day: number): DraftedEntry {
  const { random } = books
  const lines = pair(books, '627000', '512000', random.cents(2, 3.7), 'FRAIS BANCAIRES / COMMISSIONS')
  return entry(books, day, 'BQ', random.pick(['RB_FTP', 'RB_JDC']), lines)
}

export function adjustment(books: Bookkeeping, day: number): DraftedEntry {
  const { debit, credit, text, source } = books.random.pick(words.adjustments)
  const lines = pair(books, debit, credit, books.random.cents(3, 5.7), text)
  return entry(books, day, source === 'ACD' ? 'NF' : 'OD', source, lines)
}

function pair({ chart, random }: Bookkeeping, debit: string, credit: string, amount: bigint, text: string) {
  return linesOf(chart, described(random, text), [
    [debit, amount],
    [credit, -amount],
  ])
}

/**
 * A pay slip: gross pay, contributions of both sides, tax at source, and the net pay, which the bank will pay later.
 */
export function paySlip(books: Bookkeeping, day: number, employee: ThirdParty): DraftedEntry {
  const { chart, random, days, axes } = books
  const gross = random.cents(5.26, 5.8)
  const ownShare = (gross * 22n) / 100n
  const employerShare = (gross * 42n) / 100n
  const pension = ((ownShare + employerShare) * 30n) / 100n
  const tax = (gross * BigInt(random.integer(1, 9))) / 100n
  const description = described(random, `PAIE ${days[day]!.slice(0, 7)} ${employee.name}`)
  const lines = linesOf(chart, description, [
    ['641100', gross],
    ['645100', employerShare],
    ['431000', -(ownShare + employerShare - pension)],
    ['437000', -pension],
    ['442100', -tax],
  ])
  lines[0]!.shares = splitShares(random, axes, gross)
  lines[1]!.shares = splitShares(random, axes, employerShare)
  const net = newLine(employee.accountId, description, '', -(gross - ownShare - tax))
  net.dueDate = days[day + 5]!
  const source = random.pick(['IB', 'EXCEL', 'ACD'])
  const made = entry(books, day, 'PAIE', source, [...lines, net])
  made.opens = letter(books, net, { kind: 'employee', party: employee, invoiceNumber: '' })
  return made
}

/** Declares the VAT that was collected and deducted since the last declaration; null if there is none. */
export function vatReturn(books: Bookkeeping, day: number): DraftedEntry | null {
  const { vatCollected: collected, vatDeductible: deductible } = books
  if (collected === 0n && deductible === 0n) return null
  Object.assign(books, { vatCollected: 0n, vatDeductible: 0n })
  const due = collected - deductible
  const lines = linesOf(books.chart, `DÉCLARATION DE TVA CA3 ${books.days[day]!.slice(0, 7)}`, [
    ['445710', collected],
    ['445660', -deductible],
    [due > 0n ? '445510' : '445670', -due],
  ])
  return entry(books, day, 'TVA', 'OD_TVA', lines)
}

/** The entry with the owners' capital when the company began: two movements. */
export function foundation(books: Bookkeeping, day: number): DraftedEntry {
  const lines = linesOf(books.chart, 'Apport en capital à la constitution', [
    ['512000', 5_000_000n],
    ['101300', -5_000_000n],
  ])
  return entry(books, day, 'RB', 'E', lines)
}

/** The entry of opening balances. @param balances by account id, positive for a debit; their sum is zero */
export function openingEntry(books: Bookkeeping, day: number, balances: Map<string, bigint>): DraftedEntry {
  const lines = [...balances].map(([accountId, balance]) => newLine(accountId, 'À NOUVEAU', '', balance))
  return entry(books, day, 'AN', 'AN', lines)
}

/**
 * An accrual with exactly this number of movements, at least two: one for each charge, and one for their sum as
 * payable.
 */
export function accrual(books: Bookkeeping, day: number, movements: number): DraftedEntry {
  assert(movements >= 2, 'one movement cannot balance')
  const { chart, random } = books
  const amounts: [account: string, amount: bigint][] = []
  let total = 0n
  for (let count = 1; count < movements; count++) {
    const amount = random.cents(3, 5)
    total += amount
    amounts.push([random.pick(tables.expenseAccounts), amount])
  }
  const lines = linesOf(chart, 'CHARGES À PAYER DE FIN DE PÉRIODE', [...amounts, ['468600', -total]])
  return entry(books, day, 'OD', 'O', lines)
}

/** @param amounts by account number, positive for a debit. An amount of zero gets no line */
function linesOf(chart: Chart, description: string, amounts: [account: string, amount: bigint][]): Line[] {
  return amounts
    .filter(([, amount]) => amount !== 0n)
    .map(([account, amount]) => newLine(chart.accountId(account), description, '', amount))
}

function entry(
  books: Bookkeeping,
  day: number,
  journal: string,
  source: string,
  lines: Line[],
): DraftedEntry {
  const { chart, random, days, thirdPartyId } = books
  const accountedDay = random.chance(0.3) ? day + random.integer(1, 20) : day
  // In Paris the next day has begun at 23:00 UTC, and in summer already at 22:00 UTC.
  const hour = random.chance(0.06)
    ? random.pick(['21', '22', '23'])
    : String(random.integer(6, 19)).padStart(2, '0')
  const time = `${hour}:${random.integer(10, 59)}:${random.integer(10, 59)}`
  return {
    journalId: chart.journalId(journal),
    date: days[day]!,
    dueDate: null,
    accountedAt: days[accountedDay]!,
    createdAt: `${days[day + random.integer(0, 3)]}T${time}Z`,
    validatedAt: days[accountedDay + random.integer(0, 10)]!,
    source,
    thirdPartyId: source === 'API' ? thirdPartyId : null,
    ...{ currency: 'EUR', rate: null },
    comment: random.chance(0.02) ? random.pick(words.comments) : null,
    partnerMetadata:
      source === 'API' && random.chance(0.7)
        ? {
            partnerId: `doc-${random.digits(9)}`,
            json: { lot: random.integer(1, 99), tag: random.pick(words.hostileTexts) },
          }
        : null,
    ...{ attachments: null, lines, opens: null },
  }
}

/** Attaches files to about one invoice in 25, which is one entry in 50 of the ledger, and to a few movements. */
function attach(random: Random, made: DraftedEntry, fileName: string): void {
  const address = () =>
    `https://documents.example.com/${random.digits(12)}?page=1&name=${encodeURIComponent(fileName)}`
  if (random.chance(0.04)) {
    made.attachments = { [fileName]: address() }
    if (random.chance(0.3)) made.attachments[`Reçu "${random.digits(3)}" été.jpg`] = address()
  }
  if (random.chance(0.01))
    made.lines[0]!.attachments = { [`bon de commande ${random.digits(4)}.pdf`]: address() }
}

function described(random: Random, text: string): string {
  return random.chance(0.01) ? `${text} ${random.pick(words.hostileTexts)}` : text
}
