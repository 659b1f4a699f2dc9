/**
 * The kinds of entries of a seeded ledger, each a function of the day and of random numbers. All balance to the cent by
 * construction: one amount is always the remainder of the others.
 */
import { strict as assert } from 'node:assert'
import tables from './chart.json' with { type: 'json' }
import type { Chart, ThirdParty } from './chart.ts'
import { type DraftedEntry, type Line, letteringCode, newLine, type OpenItem, splitShares } from './lines.ts'
import type { Random } from './random.ts'
import words from './words.json' with { type: 'json' }

/** Whether an invoice will be lettered later, stays open, or awaits validation. */
type InvoiceFate = 'settled' | 'open' | 'draft'

export class Bookkeeper {
  readonly #chart: Chart
  readonly #random: Random
  /** The third party that sent the entries of source API. */
  readonly #thirdPartyId: string
  /** 'YYYY-MM-DD' by day of the fiscal year, and beyond it for validations and due dates. */
  readonly #days: string[]
  /** Number of codes used so far, by account: each code is used once per account and year. */
  readonly #codes = new Map<string, number>()
  readonly #axes: bigint[][]
  #invoices = 0
  #vatCollected = 0n
  #vatDeductible = 0n

  constructor(chart: Chart, random: Random, thirdPartyId: string, days: string[]) {
    this.#chart = chart
    this.#random = random
    this.#thirdPartyId = thirdPartyId
    this.#days = days
    this.#axes = chart.axes.map((axis) =>
      chart.sections.filter((section) => section.axisId === axis.id).map((section) => BigInt(section.id)),
    )
  }

  purchase(day: number, fate: InvoiceFate): DraftedEntry {
    const random = this.#random
    const source = random.pick(['E', 'E', 'E', 'IB', 'IB', 'API', 'ABO', 'FEC', 'QUADRA', 'EXT'])
    const supplier = random.pick(this.#chart.suppliers)
    const invoiceNumber = `${random.pick(['FA', 'F', 'INV-', ''])}${random.digits(random.integer(4, 8))}`
    const description = this.#description(`FACTURE ${supplier.name} ${invoiceNumber}`)
    const expenses = source === 'ABO' ? ['613200', '626000', '616000'] : tables.expenseAccounts
    return this.#invoice(
      day,
      fate,
      { kind: 'supplier', source, party: supplier, invoiceNumber, description },
      expenses,
    )
  }

  sale(day: number, fate: InvoiceFate): DraftedEntry {
    const random = this.#random
    const source = random.pick(['E', 'E', 'M', 'API', 'EXCEL', 'CEGID', 'QUICK', 'P'])
    const customer = random.pick(this.#chart.customers)
    const invoiceNumber = `F${this.#days[day]!.slice(0, 4)}-${String(++this.#invoices).padStart(6, '0')}`
    const description = this.#description(`FACT ${invoiceNumber} ${customer.name}`)
    return this.#invoice(
      day,
      fate,
      { kind: 'customer', source, party: customer, invoiceNumber, description },
      ['701000', '706000', '707000', '708500'],
    )
  }

  /** One line for the third party, one to three for purchases or sales, one for VAT if there is any. */
  #invoice(
    day: number,
    fate: InvoiceFate,
    invoice: Pick<OpenItem, 'party' | 'invoiceNumber'> & {
      kind: 'supplier' | 'customer'
      source: string
      description: string
    },
    accounts: readonly string[],
  ): DraftedEntry {
    const { kind, party, invoiceNumber, description } = invoice
    const random = this.#random
    const side = kind === 'supplier' ? 'debit' : 'credit'
    const line = (accountId: string, amount: bigint, ownSide: boolean) =>
      newLine(accountId, description, invoiceNumber, ownSide === (side === 'debit') ? amount : -amount)
    const lines: Line[] = []
    let net = 0n
    for (let count = random.pick([1, 1, 1, 2, 2, 3]); count > 0; count--) {
      const amount = random.cents(3, 6.3)
      net += amount
      const netLine = line(this.#chart.accountId(random.pick(accounts)), amount, true)
      netLine.shares = splitShares(this.#random, this.#axes, amount)
      lines.push(netLine)
    }
    const vat = (net * BigInt(party.vatRate) + 5000n) / 10_000n
    if (vat > 0n)
      lines.push(line(this.#chart.accountId(kind === 'supplier' ? '445660' : '445710'), vat, true))
    if (kind === 'supplier') this.#vatDeductible += vat
    else this.#vatCollected += vat
    const dueDate = random.chance(0.8) ? this.#days[day + random.pick([0, 15, 30, 30, 45, 60])]! : null
    const partyLine = line(party.accountId, net + vat, false)
    partyLine.dueDate = dueDate
    partyLine.paymentId = random.chance(0.7) ? this.#chart.paymentId(party.payment) : null
    const opens = fate === 'settled' ? this.#letter(partyLine, { kind, party, invoiceNumber }) : null
    if (random.chance(0.06)) partyLine.freeNumber = `BL ${random.digits(5)}/${random.pick(['A', 'B', 'É'])}`
    lines.unshift(partyLine)
    const entry = this.#entry(day, kind === 'supplier' ? 'AC' : 'VT', invoice.source, lines)
    entry.dueDate = random.chance(0.5) ? dueDate : null
    entry.opens = opens
    if (fate === 'draft') entry.validatedAt = null
    if (party.currency !== 'EUR') {
      entry.currency = party.currency
      entry.rate = `${random.integer(0, 1)}.${random.integer(850_000, 999_999)}`
    }
    this.#attach(entry, `${invoiceNumber || 'sans numéro'}.pdf`)
    return entry
  }

  /** Marks the line as lettered and returns the item that settles it; one in fifteen is settled in part. */
  #letter(line: Line, item: Pick<OpenItem, 'kind' | 'party' | 'invoiceNumber'>): OpenItem {
    const amount = line.debit + line.credit
    const state = this.#random.chance(1 / 15) ? 'partial' : 'complete'
    const given = this.#codes.get(line.accountId) ?? 0
    this.#codes.set(line.accountId, given + 1)
    line.letteringState = state
    line.letteringCode = letteringCode(given)
    const payable = state === 'complete' ? amount : (amount * BigInt(this.#random.integer(10, 90))) / 100n
    return { ...item, payable, state, code: line.letteringCode }
  }

  /** Pays one item through the bank: two movements. */
  settlement(day: number, item: OpenItem): DraftedEntry {
    const random = this.#random
    const isReceipt = item.kind === 'customer'
    const verb = isReceipt ? 'RÈGLEMENT' : item.kind === 'employee' ? 'VIR SALAIRE' : 'VIR'
    const description = this.#description(`${verb} ${item.party.name} ${item.invoiceNumber}`.trimEnd())
    const source =
      item.kind === 'employee'
        ? 'VIRT_SEPA'
        : isReceipt
          ? random.pick(['RB_JDC', 'RB_QT', 'RB_MANUEL', 'PRLV_SEPA', 'L'])
          : random.pick(['RB_JDC', 'RB_SB', 'VIRT_SEPA', 'E', 'IB'])
    const usesReserve = random.chance(0.1)
    const bankAccountId = this.#chart.accountId(usesReserve ? '512100' : '512000')
    const bankLine = newLine(
      bankAccountId,
      description,
      item.invoiceNumber,
      isReceipt ? item.payable : -item.payable,
    )
    bankLine.paymentId = this.#chart.paymentId(item.party.payment)
    return this.#entry(day, usesReserve ? 'BQ2' : 'BQ', source, [
      this.#settlingLine(item, description),
      bankLine,
    ])
  }

  /** A deposit of several customers' payments: one movement each, and one at the bank for their sum. */
  deposit(day: number, items: OpenItem[]): DraftedEntry {
    const description = `REMISE DE CHÈQUES N° ${this.#random.digits(7)}`
    const lines = items.map((item) => this.#settlingLine(item, `${description} ${item.party.name}`))
    const total = items.reduce((sum, item) => sum + item.payable, 0n)
    const bankLine = newLine(this.#chart.accountId('512000'), description, '', total)
    bankLine.paymentId = this.#chart.paymentId('CHQ')
    return this.#entry(day, 'BQ', 'REM_BQ', [...lines, bankLine])
  }

  #settlingLine(item: OpenItem, description: string): Line {
    const amount = item.kind === 'customer' ? -item.payable : item.payable
    const line = newLine(item.party.accountId, description, item.invoiceNumber, amount)
    line.paymentId = this.#chart.paymentId(item.party.payment)
    line.letteringState = item.state
    line.letteringCode = item.code
    return line
  }

  cashSale(day: number): DraftedEntry {
    const gross = this.#random.cents(2.5, 4.3)
    const vat = (gross * 2000n + 6000n) / 12_000n
    this.#vatCollected += vat
    const description = this.#description(`RECETTES DU ${this.#days[day]}`)
    const cash = newLine(this.#chart.accountId('530000'), description, '', gross)
    cash.paymentId = this.#chart.paymentId('ESP')
    const sales = newLine(this.#chart.accountId('707000'), description, '', vat - gross)
    sales.shares = splitShares(this.#random, this.#axes, gross - vat)
    const lines = [cash, sales]
    if (vat > 0n) lines.push(newLine(this.#chart.accountId('445710'), description, '', -vat))
    return this.#entry(day, 'CA', this.#random.pick(['M', 'E', 'RTVR']), lines)
  }

  bankCharge(day: number): DraftedEntry {
    const amount = this.#random.cents(2, 3.7)
    const lines = this.#pair('627000', '512000', amount, this.#description('FRAIS BANCAIRES / COMMISSIONS'))
    return this.#entry(day, 'BQ', this.#random.pick(['RB_FTP', 'RB_JDC']), lines)
  }

  adjustment(day: number): DraftedEntry {
    const { debit, credit, text, source } = this.#random.pick(words.adjustments)
    const lines = this.#pair(debit, credit, this.#random.cents(3, 5.7), this.#description(text))
    return this.#entry(day, source === 'ACD' ? 'NF' : 'OD', source, lines)
  }

  #pair(debit: string, credit: string, amount: bigint, description: string): Line[] {
    return [
      newLine(this.#chart.accountId(debit), description, '', amount),
      newLine(this.#chart.accountId(credit), description, '', -amount),
    ]
  }

  /** One pay slip: gross pay, contributions of both sides, tax at source, and the net pay, which the bank will pay. */
  paySlip(day: number, employee: ThirdParty): DraftedEntry {
    const gross = this.#random.cents(5.26, 5.8)
    const ownShare = (gross * 22n) / 100n
    const employerShare = (gross * 42n) / 100n
    const pension = ((ownShare + employerShare) * 30n) / 100n
    const tax = (gross * BigInt(this.#random.integer(1, 9))) / 100n
    const description = this.#description(`PAIE ${this.#days[day]!.slice(0, 7)} ${employee.name}`)
    const line = (number: string, amount: bigint) =>
      newLine(this.#chart.accountId(number), description, '', amount)
    const wages = line('641100', gross)
    wages.shares = splitShares(this.#random, this.#axes, gross)
    const contributions = line('645100', employerShare)
    contributions.shares = splitShares(this.#random, this.#axes, employerShare)
    const net = newLine(employee.accountId, description, '', -(gross - ownShare - tax))
    net.dueDate = this.#days[day + 5]!
    const entry = this.#entry(day, 'PAIE', this.#random.pick(['IB', 'EXCEL', 'ACD']), [
      wages,
      contributions,
      line('431000', -(ownShare + employerShare - pension)),
      line('437000', -pension),
      line('442100', -tax),
      net,
    ])
    entry.opens = this.#letter(net, { kind: 'employee', party: employee, invoiceNumber: '' })
    return entry
  }

  /** Declares the VAT collected and deducted since the last declaration; null if there is none. */
  vatReturn(day: number): DraftedEntry | null {
    const collected = this.#vatCollected
    const deductible = this.#vatDeductible
    if (collected === 0n && deductible === 0n) return null
    this.#vatCollected = 0n
    this.#vatDeductible = 0n
    const description = `DÉCLARATION DE TVA CA3 ${this.#days[day]!.slice(0, 7)}`
    const due = collected - deductible
    const lines = (
      [
        ['445710', collected],
        ['445660', -deductible],
        [due > 0n ? '445510' : '445670', -due],
      ] as const
    )
      .filter(([, amount]) => amount !== 0n)
      .map(([number, amount]) => newLine(this.#chart.accountId(number), description, '', amount))
    return this.#entry(day, 'TVA', 'OD_TVA', lines)
  }

  /** Two movements: the owners' capital when the company began. */
  foundation(day: number): DraftedEntry {
    const lines = this.#pair('512000', '101300', 5_000_000n, 'Apport en capital à la constitution')
    return this.#entry(day, 'RB', 'E', lines)
  }

  /** Opening balances by account id, debit positive; their sum is zero. */
  opening(day: number, balances: Map<string, bigint>): DraftedEntry {
    const lines = [...balances].map(([accountId, balance]) => newLine(accountId, 'À NOUVEAU', '', balance))
    return this.#entry(day, 'AN', 'AN', lines)
  }

  /** An accrual of exactly this number of movements, at least two: one per charge, and their sum as payable. */
  accrual(day: number, movements: number): DraftedEntry {
    assert(movements >= 2, 'one movement cannot balance')
    const description = 'CHARGES À PAYER DE FIN DE PÉRIODE'
    const lines: Line[] = []
    let total = 0n
    for (let count = 1; count < movements; count++) {
      const amount = this.#random.cents(3, 5)
      total += amount
      const accountId = this.#chart.accountId(this.#random.pick(tables.expenseAccounts))
      lines.push(newLine(accountId, description, '', amount))
    }
    lines.push(newLine(this.#chart.accountId('468600'), description, '', -total))
    return this.#entry(day, 'OD', 'O', lines)
  }

  #entry(day: number, journal: string, source: string, lines: Line[]): DraftedEntry {
    const random = this.#random
    const accountedDay = random.chance(0.3) ? day + random.integer(1, 20) : day
    // In Paris 22:00 and 23:00 UTC are the next day, for half or all of the year.
    const hour = random.chance(0.06)
      ? random.pick(['21', '22', '23'])
      : String(random.integer(6, 19)).padStart(2, '0')
    const time = `${hour}:${random.integer(10, 59)}:${random.integer(10, 59)}`
    return {
      journalId: this.#chart.journalId(journal),
      date: this.#days[day]!,
      dueDate: null,
      accountedAt: this.#days[accountedDay]!,
      createdAt: `${this.#days[day + random.integer(0, 3)]}T${time}Z`,
      validatedAt: this.#days[accountedDay + random.integer(0, 10)]!,
      source,
      thirdPartyId: source === 'API' ? this.#thirdPartyId : null,
      currency: 'EUR',
      rate: null,
      comment: random.chance(0.02) ? random.pick(words.comments) : null,
      partnerMetadata:
        source === 'API' && random.chance(0.7)
          ? {
              partnerId: `doc-${random.digits(9)}`,
              json: { lot: random.integer(1, 99), tag: random.pick(words.hostileTexts) },
            }
          : null,
      attachments: null,
      lines,
      opens: null,
    }
  }

  /** Attaches files to about one invoice in 25 (one entry in 50 of the ledger), and to a few movements. */
  #attach(entry: DraftedEntry, fileName: string): void {
    const random = this.#random
    const address = () =>
      `https://documents.example.com/${random.digits(12)}?page=1&name=${encodeURIComponent(fileName)}`
    if (random.chance(0.04)) {
      entry.attachments = { [fileName]: address() }
      if (random.chance(0.3)) entry.attachments[`Reçu "${random.digits(3)}" été.jpg`] = address()
    }
    if (random.chance(0.01))
      entry.lines[0]!.attachments = { [`bon de commande ${random.digits(4)}.pdf`]: address() }
  }

  #description(text: string): string {
    return this.#random.chance(0.01) ? `${text} ${this.#random.pick(words.hostileTexts)}` : text
  }
}
