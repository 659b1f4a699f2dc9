/**
 * Makes the master data of a seeded folder: payment modes, VAT codes, the chart of accounts (plan comptable général)
 * with companies and employees, journals, banks and analytic axes. General accounts, journals and axes come from
 * `chart.json`. Closed accounts belong to old years, so no entry may use them.
 */

import { strict as assert } from 'node:assert'
import type { JournalType } from '../../../../src/formats/items/journal.ts'
import type { MasterRows } from '../../../../src/ledger/import/master-data.ts'
import tables from './chart.json' with { type: 'json' }
import { bankDetails, companyOf, employeeOf, thirdPartyName } from './parties.ts'
import type { Random } from './random.ts'

const paymentCodes = ['CB', 'VIRT', 'ESP', 'CHQ', 'PRLV', 'LCR'] as const
type PaymentCode = (typeof paymentCodes)[number]

const vatRates = { TN: 2000, TI: 1000, TR: 550, TS: 210, EXO: 0 } as const

/** A supplier (401), customer (411) or employee (421), whose account is lettered. */
export interface ThirdParty {
  accountId: string
  name: string
  payment: PaymentCode
  /** The VAT rate in hundredths of a percent. */
  vatRate: number
  /** The currency of this supplier's or customer's invoices. Most have EUR. */
  currency: 'EUR' | 'USD' | 'CHF'
}

export interface Chart extends Omit<MasterRows, 'exercices'> {
  suppliers: ThirdParty[]
  customers: ThirdParty[]
  staff: ThirdParty[]
  accountId(number: string): string
  journalId(code: string): string
  paymentId(code: PaymentCode): string
}

/**
 * @param movements of the ledger. The more there are, the more third parties it has
 * @param nextId returns ascending ids; the chart gets the lowest ids of the folder
 */
export function buildChart(movements: number, random: Random, nextId: () => string): Chart {
  const payments = paymentCodes.map((code) => ({ id: nextId(), code }))
  const vat_codes = Object.entries(vatRates).map(([code, rate]) => ({ id: nextId(), code, rate }))
  const accounts = buildGeneralAccounts(nextId)
  const accountId = idsBy(accounts, 'number')
  const journals = tables.journals.map(({ code, name, type, counterpart, locked = false }) => ({
    id: nextId(),
    code,
    name,
    // The cast is safe, because a CHECK of the table refuses any other text.
    type: type as JournalType,
    counterpartAccountId: counterpart === undefined ? null : accountId(counterpart),
    locked,
  }))
  const journalId = idsBy(journals, 'code')
  const banks = tables.banks.map(({ bic, hasRib, account, journal, isDefault }) => {
    const { rib, iban } = bankDetails(random)
    return {
      ...{ id: nextId(), rib: hasRib ? rib : null, iban, bic, isDefault },
      ...{ accountId: accountId(account), journalId: journalId(journal) },
    }
  })
  const chart: Chart = {
    payments,
    vat_codes,
    accounts,
    companies: [],
    employees: [],
    journals,
    banks,
    ...buildAxes(nextId),
    suppliers: [],
    customers: [],
    staff: [],
    accountId,
    journalId,
    paymentId: idsBy(payments, 'code'),
  }
  for (const index of numbers(6, 300, movements / 3_000)) addCompany(chart, '401', index, nextId(), random)
  for (const index of numbers(8, 1_000, movements / 1_500)) addCompany(chart, '411', index, nextId(), random)
  for (const index of numbers(2, 40, movements / 15_000)) addEmployee(chart, index, nextId(), random)
  return chart
}

/** The numbers from 1 to a count, which is kept between two bounds. */
function numbers(least: number, most: number, count: number): number[] {
  const length = Math.min(most, Math.max(least, Math.floor(count)))
  return Array.from({ length }, (_, index) => index + 1)
}

/** Finds the id of a row by the row's name. */
function idsBy<Name extends string>(rows: readonly ({ id: string } & Record<Name, string>)[], name: Name) {
  const ids = new Map(rows.map((row) => [row[name] as string, row.id]))
  return (named: string): string => {
    const id = ids.get(named)
    assert(id !== undefined, `the seeded chart has ${named}`)
    return id
  }
}

function buildGeneralAccounts(nextId: () => string): MasterRows['accounts'] {
  const accounts = tables.generalAccounts.map((account) => ({ id: nextId(), ...account }))
  const idOf = idsBy(accounts, 'number')
  return accounts.map(({ id, number, name, closed = false, correspondance, counterpart }) => ({
    ...{ id, number, name, closed },
    counterpartAccountId: counterpart === undefined ? null : idOf(counterpart),
    correspondanceAccountId: correspondance === undefined ? null : idOf(correspondance),
  }))
}

function buildAxes(nextId: () => string): Pick<MasterRows, 'axes' | 'sections'> {
  const axes: MasterRows['axes'] = []
  const sections: MasterRows['sections'] = []
  for (const { code, name, sections: ofAxis } of tables.axes) {
    const axisId = nextId()
    const first = sections.length
    for (const section of ofAxis) sections.push({ id: nextId(), axisId, ...section, closed: false })
    axes.push({ id: axisId, code, name, defaultSectionId: sections[first]!.id })
  }
  return { axes, sections }
}

function addCompany(chart: Chart, root: '401' | '411', index: number, id: string, random: Random): void {
  const name = thirdPartyName(random)
  // Real charts have both kinds of numbers: some firms number their third parties, others use names.
  const letters = name
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
  const number =
    index % 5 === 0 ? `${root}${letters.slice(0, 8)}${index}` : `${root}${String(index).padStart(5, '0')}`
  const counterpart = root === '401' ? random.pick(['607000', '622600', '606400', null]) : '706000'
  const closed = index % 40 === 39
  const counterpartAccountId = counterpart && chart.accountId(counterpart)
  chart.accounts.push({ id, number, name, closed, counterpartAccountId })
  const payment = random.pick(paymentCodes)
  const vat = random.pick(['TN', 'TN', 'TN', 'TI', 'TR', 'EXO'] as const)
  const vatId = chart.vat_codes.find((row) => row.code === vat)!.id
  chart.companies.push(companyOf(id, name, chart.paymentId(payment), vatId, random))
  if (closed) return
  // One in 25 parties has invoices in another currency. The first party never does, so tiny folders have only euro.
  const currency = index % 25 === 2 ? random.pick(['USD', 'CHF'] as const) : 'EUR'
  const parties = root === '401' ? chart.suppliers : chart.customers
  parties.push({ accountId: id, name, payment, vatRate: currency === 'EUR' ? vatRates[vat] : 0, currency })
}

function addEmployee(chart: Chart, index: number, id: string, random: Random): void {
  const employee = employeeOf(id, chart.paymentId('VIRT'), random)
  // A doubtful account holds what an employee owes and perhaps will never repay. One employee in seven has one.
  employee.doubtfulAccountId = index % 7 === 1 ? chart.accountId('416000') : null
  chart.employees.push(employee)
  const name = `${employee.lastName} ${employee.firstName}`
  const number = `421${String(index).padStart(5, '0')}`
  chart.accounts.push({ id, number, name, closed: false })
  chart.staff.push({ accountId: id, name, payment: 'VIRT', vatRate: 0, currency: 'EUR' })
}
