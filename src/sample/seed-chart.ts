/**
 * The standing parts of a seeded folder: payment modes, VAT codes, the chart of accounts (plan comptable général)
 * with companies and employees, journals, banks and analytic axes.
 */
import { strict as assert } from 'node:assert'
import type {
  AccountRow,
  AxisRow,
  BankRow,
  CompanyRow,
  EmployeeRow,
  FolderKey,
  JournalRow,
  JournalType,
  PaymentRow,
  SectionRow,
  VatCodeRow,
} from '../formats/rows.ts'
import type { Random } from './random.ts'
import { bankDetails } from './seed-identifiers.ts'
import { companyOf, employeeOf, thirdPartyName } from './seed-parties.ts'

export const paymentCodes = ['CB', 'VIRT', 'ESP', 'CHQ', 'PRLV', 'LCR'] as const
export type PaymentCode = (typeof paymentCodes)[number]

const vatRates = { TN: 2000, TI: 1000, TR: 550, TS: 210, EXO: 0 } as const
export type VatCode = keyof typeof vatRates

/** Somebody whose account is lettered: a supplier (401), a customer (411) or an employee (421). */
export interface ThirdParty {
  accountId: string
  name: string
  payment: PaymentCode
  /** Hundredths of a percent. */
  vatRate: number
  /** EUR, or what this supplier or customer invoices in. */
  currency: 'EUR' | 'USD' | 'CHF'
}

export interface Chart {
  payments: PaymentRow[]
  vatCodes: VatCodeRow[]
  accounts: AccountRow[]
  companies: CompanyRow[]
  employees: EmployeeRow[]
  journals: JournalRow[]
  banks: BankRow[]
  axes: AxisRow[]
  sections: SectionRow[]
  suppliers: ThirdParty[]
  customers: ThirdParty[]
  staff: ThirdParty[]
  /** Account numbers of classes 1 to 5 that opening balances carry over, by id. */
  carriedOver: Set<string>
  accountId(number: string): string
  journalId(code: string): string
  paymentId(code: PaymentCode): string
}

export interface ChartSize {
  suppliers: number
  customers: number
  employees: number
}

/** Number, name, and the correspondance or counterpart account where one is kept. */
const generalAccounts: [string, string, { correspondance?: string; counterpart?: string }?][] = [
  ['101300', 'Capital souscrit - appelé, versé'],
  ['106100', 'Réserve légale'],
  ['110000', 'Report à nouveau (solde créditeur)'],
  ['119000', 'Report à nouveau (solde débiteur)'],
  ['120000', 'Résultat de l’exercice (bénéfice)'],
  ['129000', 'Résultat de l’exercice (perte)'],
  ['164000', 'Emprunts auprès des établissements de crédit', { counterpart: '661100' }],
  ['205000', 'Logiciels, licences', { correspondance: '280500' }],
  ['215400', 'Matériel industriel', { correspondance: '281540' }],
  ['218300', 'Matériel de bureau et informatique', { correspondance: '281830' }],
  ['280500', 'Amortissements des logiciels'],
  ['281540', 'Amortissements du matériel industriel'],
  ['281830', 'Amortissements du matériel de bureau'],
  ['370000', 'Stocks de marchandises'],
  ['408100', 'Fournisseurs - Factures non parvenues', { correspondance: '486000' }],
  ['416000', 'Clients douteux ou litigieux', { correspondance: '491000' }],
  ['431000', 'Sécurité sociale (URSSAF)'],
  ['437000', 'Caisses de retraite et prévoyance'],
  ['442100', 'Prélèvement à la source'],
  ['445510', 'TVA à décaisser'],
  ['445660', 'TVA déductible sur autres biens et services', { counterpart: '445710' }],
  ['445670', 'Crédit de TVA à reporter'],
  ['445710', 'TVA collectée', { counterpart: '445660' }],
  ['455000', 'Associés - Comptes courants'],
  ['468600', 'Divers - Charges à payer'],
  ['471000', 'Comptes d’attente'],
  ['486000', 'Charges constatées d’avance'],
  ['491000', 'Dépréciations des comptes clients'],
  ['512000', 'Banque principale'],
  ['512100', 'Banque secondaire "réserve"'],
  ['530000', 'Caisse'],
  ['580000', 'Virements internes'],
  ['601000', 'Achats de matières premières'],
  ['606100', 'Fournitures non stockables (eau, énergie)'],
  ['606400', 'Fournitures administratives'],
  ['607000', 'Achats de marchandises', { counterpart: '445660' }],
  ['611000', 'Sous-traitance générale'],
  ['613200', 'Locations immobilières', { counterpart: '445660' }],
  ['615500', 'Entretien et réparations sur biens mobiliers'],
  ['616000', 'Primes d’assurances'],
  ['622600', 'Honoraires'],
  ['623100', 'Annonces et insertions'],
  ['625100', 'Voyages et déplacements'],
  ['625700', 'Réceptions'],
  ['626000', 'Frais postaux et de télécommunications'],
  ['627000', 'Services bancaires et assimilés'],
  ['635110', 'Contribution économique territoriale'],
  ['641100', 'Salaires, appointements'],
  ['645100', 'Cotisations à l’URSSAF'],
  ['658000', 'Charges diverses de gestion courante'],
  ['661100', 'Intérêts des emprunts et dettes'],
  ['681120', 'Dotations aux amortissements'],
  ['695000', 'Impôts sur les bénéfices'],
  ['701000', 'Ventes de produits finis', { counterpart: '445710' }],
  ['706000', 'Prestations de services', { counterpart: '445710' }],
  ['707000', 'Ventes de marchandises', { counterpart: '445710' }],
  ['708500', 'Ports et frais accessoires facturés'],
  ['758000', 'Produits divers de gestion courante'],
  ['791000', 'Transferts de charges (ancien compte)'],
]

/** Kept for old years: no entry may use them. */
const closedAccounts = new Set(['791000'])

const journalList: [string, string, JournalType, string?][] = [
  ['AC', 'Achats', 'ACH'],
  ['VT', 'Ventes', 'VTE'],
  ['BQ', 'Banque principale', 'BQ', '512000'],
  ['BQ2', 'Banque secondaire "réserve"', 'BQ', '512100'],
  ['CA', 'Caisse', 'CAISSE', '530000'],
  ['OD', 'Opérations diverses', 'OD'],
  ['AN', 'À nouveaux', 'AN'],
  ['PAIE', 'Journal de paie', 'OD_PAIE'],
  ['TVA', 'Déclarations de TVA', 'OD_DECL_FISCALE'],
  ['NF', 'Notes de frais', 'NFD'],
  ['RB', 'Reprise de balance', 'RBAL'],
]

const lockedJournals = new Set(['RB'])

const axisList: [string, string, [string, string, string[]][]][] = [
  [
    'ACT',
    'Activités',
    [
      ['NEGOCE', 'Négoce', ['607', '707']],
      ['SERVICE', 'Prestations de services', ['706']],
      ['ATELIER', 'Atelier « Nord »', ['601', '701']],
      ['SIEGE', 'Siège', []],
    ],
  ],
  [
    'CHANTIER',
    'Chantiers',
    [
      ['CH001', 'Résidence "Les Érables"', []],
      ['CH002', 'Lycée d’Évreux', []],
      ['CH003', 'Pont de l’Île', []],
      ['CH004', 'Entrepôt C:\\Sud', []],
      ['CH005', 'Halles 🏗️', []],
    ],
  ],
]

/** @param nextId gives ids, ascending; those of the chart are the folder's lowest */
export function buildChart(key: FolderKey, size: ChartSize, random: Random, nextId: () => string): Chart {
  const payments = paymentCodes.map((code) => ({ ...key, id: nextId(), code }))
  const vatCodes = Object.entries(vatRates).map(([code, rate]) => ({ ...key, id: nextId(), code, rate }))
  const accounts = buildGeneralAccounts(key, nextId)
  const accountIds = new Map(accounts.map((account) => [account.number, account.id]))
  const accountId = (number: string) => lookUp(accountIds, number)
  const paymentIds = new Map(payments.map((payment) => [payment.code, payment.id]))
  const journals = journalList.map(([code, name, type, counterpart]) => ({
    ...key,
    id: nextId(),
    code,
    name,
    type,
    counterpartAccountId: counterpart === undefined ? null : accountId(counterpart),
    locked: lockedJournals.has(code),
  }))
  const journalIds = new Map(journals.map((journal) => [journal.code, journal.id]))
  const journalId = (code: string) => lookUp(journalIds, code)
  const chart: Chart = {
    payments,
    vatCodes,
    accounts,
    companies: [],
    employees: [],
    journals,
    banks: buildBanks(key, random, nextId, accountId, journalId),
    ...buildAxes(key, nextId),
    suppliers: [],
    customers: [],
    staff: [],
    carriedOver: new Set(),
    accountId,
    journalId,
    paymentId: (code) => lookUp(paymentIds, code),
  }
  for (let index = 1; index <= size.suppliers; index++)
    addCompany(chart, key, { root: '401', index, id: nextId() }, random)
  for (let index = 1; index <= size.customers; index++)
    addCompany(chart, key, { root: '411', index, id: nextId() }, random)
  for (let index = 1; index <= size.employees; index++)
    chart.staff.push(addEmployee(chart, key, index, random, nextId()))
  for (const account of accounts) if (account.number < '6') chart.carriedOver.add(account.id)
  return chart
}

function lookUp(ids: Map<string, string>, name: string): string {
  const id = ids.get(name)
  assert(id !== undefined, `the seeded chart has ${name}`)
  return id
}

function buildGeneralAccounts(key: FolderKey, nextId: () => string): AccountRow[] {
  const ids = new Map(generalAccounts.map(([number]) => [number, nextId()]))
  return generalAccounts.map(([number, name, { correspondance, counterpart } = {}]) => ({
    ...key,
    id: lookUp(ids, number),
    number,
    name,
    closed: closedAccounts.has(number),
    counterpartAccountId: counterpart === undefined ? null : lookUp(ids, counterpart),
    correspondanceAccountId: correspondance === undefined ? null : lookUp(ids, correspondance),
  }))
}

function buildBanks(
  key: FolderKey,
  random: Random,
  nextId: () => string,
  accountId: (number: string) => string,
  journalId: (code: string) => string,
): BankRow[] {
  const main = bankDetails(random)
  const reserve = bankDetails(random)
  const bank = { ...key, bic: 'BNPAFRPPXXX' }
  return [
    {
      ...bank,
      id: nextId(),
      ...main,
      accountId: accountId('512000'),
      journalId: journalId('BQ'),
      isDefault: true,
    },
    {
      ...bank,
      id: nextId(),
      rib: null,
      iban: reserve.iban,
      bic: 'CMCIFR2A',
      accountId: accountId('512100'),
      journalId: journalId('BQ2'),
      isDefault: false,
    },
  ]
}

function buildAxes(key: FolderKey, nextId: () => string): { axes: AxisRow[]; sections: SectionRow[] } {
  const axes: AxisRow[] = []
  const sections: SectionRow[] = []
  for (const [code, name, sectionList] of axisList) {
    const axisId = nextId()
    const first = sections.length
    for (const [sectionCode, sectionName, accountRoots] of sectionList)
      sections.push({
        ...key,
        id: nextId(),
        axisId,
        code: sectionCode,
        name: sectionName,
        accountRoots,
        closed: false,
      })
    axes.push({ ...key, id: axisId, code, name, defaultSectionId: sections[first]!.id })
  }
  return { axes, sections }
}

function addCompany(
  chart: Chart,
  key: FolderKey,
  { root, index, id }: { root: '401' | '411'; index: number; id: string },
  random: Random,
): void {
  const name = thirdPartyName(random)
  // Some firms number third parties, others spell them: both are in real charts.
  const letters = name
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
  const number =
    index % 5 === 0 ? `${root}${letters.slice(0, 8)}${index}` : `${root}${String(index).padStart(5, '0')}`
  const counterpart = root === '401' ? random.pick(['607000', '622600', '606400', null]) : '706000'
  const closed = index % 40 === 39
  chart.accounts.push({
    ...key,
    id,
    number,
    name,
    closed,
    counterpartAccountId: counterpart === null ? null : chart.accountId(counterpart),
    correspondanceAccountId: null,
  })
  const payment = random.pick(paymentCodes)
  const vat = random.pick(['TN', 'TN', 'TN', 'TI', 'TR', 'EXO'] as const)
  const vatId = chart.vatCodes.find((row) => row.code === vat)!.id
  chart.companies.push(companyOf(key, id, name, chart.paymentId(payment), vatId, random))
  if (closed) return
  // One in 25 invoices in another currency; the first never does, so that tiny folders stay plain.
  const currency = index % 25 === 2 ? random.pick(['USD', 'CHF'] as const) : 'EUR'
  const parties = root === '401' ? chart.suppliers : chart.customers
  parties.push({ accountId: id, name, payment, vatRate: currency === 'EUR' ? vatRates[vat] : 0, currency })
}

function addEmployee(chart: Chart, key: FolderKey, index: number, random: Random, id: string): ThirdParty {
  const employee = employeeOf(key, id, chart.paymentId('VIRT'), random)
  // An amount an employee owes back and may not pay stands on a doubtful account; few have one.
  employee.doubtfulAccountId = index % 7 === 1 ? chart.accountId('416000') : null
  chart.employees.push(employee)
  const name = `${employee.lastName} ${employee.firstName}`
  chart.accounts.push({
    ...key,
    id,
    number: `421${String(index).padStart(5, '0')}`,
    name,
    closed: false,
    counterpartAccountId: null,
    correspondanceAccountId: null,
  })
  return { accountId: id, name, payment: 'VIRT', vatRate: 0, currency: 'EUR' }
}
