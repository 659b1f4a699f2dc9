/** A small valid TRA file, line by line, in which tests plant problems. */
import type { JournalType } from '../../../src/formats/items/journal.ts'
import { bareLine, LineWriter, layouts } from '../../../src/formats/tra/layouts.ts'
import * as records from '../../../src/formats/tra/records.ts'
import { collectiveAccounts } from '../../../src/formats/tra/third-parties.ts'

const address = {
  number: '12',
  locatingIndex: 'bis',
  streetType: 'RUE',
  streetName: 'DES ÉRABLES',
  complement: 'Bâtiment B',
  postalCode: '75011',
  city: 'PARIS',
  country: 'FRANCE',
}

export const folder = {
  name: 'Société Bérénice',
  reference: null,
  address,
  contactFirstName: 'Anaïs',
  contactLastName: 'Lefèvre',
  contactPhoneNumber: '+33142000000',
  contactMobilePhoneNumber: null,
  contactMail: 'compta@example.com',
  rcsProducerId: '7501',
  rcsName: 'Paris',
  siret: '12345678200018',
  capital: '5000000',
}

const account = (number: string, name: string) => ({
  id: number,
  number,
  name,
  closed: false,
  counterpartAccount: null,
  correspondanceAccount: null,
  company: null,
  employee: null,
})

const corresponding = { producerId: '1', number: '281830', name: 'Amortissements' }
const supplier = {
  ...account('401DUPONT', 'Dupont & Fils'),
  company: {
    name: 'Dupont',
    siren: '123456782',
    ceo: null,
    payment: { id: '1', code: 'PRLV' },
    address,
    ...{ apeProducerId: null, apeCode: '4690Z', apeName: null },
    vat: null,
    ibans: [],
    contacts: [{ firstname: 'Chloé', phoneNumber: '+33100000000' }],
    miscellaneous: null,
  },
}

const exercice = {
  id: '1',
  start: '2024-01-01',
  end: '2024-12-31',
  lettering: 'MONO' as const,
  closedOn: null,
  closedById: null,
  closedByFirstName: null,
  closedByLastName: null,
}

const collectives = collectiveAccounts([supplier])

const bank = {
  id: '1',
  rib: '30004 00512 0001012345X 78',
  iban: 'FR7630004005120001012345X78',
  bic: 'BNPAFRPPXXX',
  account: { producerId: '1', number: '512000', name: 'Banque' },
  journalId: '1',
  journalName: 'Banque',
  journalCode: 'BQ',
  isDefault: true,
}

const journal = (name: string, code: string, type: JournalType, counterpart?: string) =>
  records.jalLine(
    {
      id: code,
      name,
      code,
      type,
      counterpartAccount: counterpart ? { producerId: '1', number: counterpart, name: 'N' } : null,
      locked: false,
    },
    code,
  )

export interface SmallEntryLine {
  number?: string
  journal?: string
  pieceType?: string
  account: string
  thirdParty?: string
  debit?: bigint
  credit?: bigint
}

/** An entry line of 2024-03-15, validated at the end of the month. */
export function entryWriter(line: SmallEntryLine): LineWriter {
  const { number = '1', debit, credit = 0n } = line
  return new LineWriter(layouts.ENTRY)
    .key('JOURNAL', line.journal ?? 'AC')
    .date('DATECOMPTABLE', '2024-03-15')
    .text('TYPE PIECE', line.pieceType ?? 'FF')
    .key('GENERAL', line.account)
    .text('TYPE CPTE', line.thirdParty && 'X')
    .key('AUXILIAIRE OU SECTION', line.thirdParty)
    .text('LIBELLE', 'Café “Érable”')
    .text('SENS', debit === undefined ? 'C' : 'D')
    .amount('MONTANT1', debit ?? credit)
    .text('TYPE ECRITURE', 'N')
    .number('NUMEROPIECE', number)
    .key('DEVISE', 'EUR')
    .number('TAUXDEV', '1')
    .text('CODEMONTANT', 'E--')
    .text('REFEXTERNE', '77')
    .date('DATECREATION', '2024-03-16')
    .text('ECRANOUVEAU', 'N')
    .text('ETATLETTRAGE', line.thirdParty ? 'AL' : 'RI')
    .text('VALIDE', 'X')
    .date('VALIDDATE', '2024-03-31')
}

export function shareLine(of: SmallEntryLine, axis: string, section: string, amount: bigint): Buffer {
  return new LineWriter(layouts.ANALYTIC)
    .key('JOURNAL', of.journal ?? 'AC')
    .date('DATECOMPTABLE', '2024-03-15')
    .text('TYPE PIECE', of.pieceType ?? 'FF')
    .key('GENERAL', of.account)
    .text('TYPE CPTE', 'A')
    .key('AUXILIAIRE OU SECTION', section)
    .text('SENS', of.debit === undefined ? 'C' : 'D')
    .amount('MONTANT1', amount)
    .text('TYPE ECRITURE', 'N')
    .number('NUMEROPIECE', of.number ?? '1')
    .key('DEVISE', 'EUR')
    .number('TAUXDEV', '1')
    .text('CODEMONTANT', 'E--')
    .text('AXE', axis)
    .date('DATECREATION', '2024-03-16')
    .text('ECRANOUVEAU', 'N')
    .line()
}

export const purchase: SmallEntryLine = { account: '607000', debit: 100_000n }

export function smallParameters(): Buffer[] {
  const axis = { codeLength: 6, defaultSectionCode: 'SIEGE' }
  return [
    records.headerLine('DOS', '2024-04-02T09:05', 'Cabinet Lefèvre'),
    records.ps1Line(folder),
    records.ps2Line({ general: 6, thirdParty: 9 }, [axis], '471000'),
    records.ps3Line('AN', collectives),
    records.ps5Line(null, null, true),
    records.exoLine(exercice, 1),
    bareLine(layouts.SSA),
    records.etbLine(folder),
    ...['CB', 'PRLV'].map(records.mdpLine),
    ...['CB', 'PRLV'].map(records.mdrLine),
    ...records.devLines(new Map([['USD', '0.923400']])),
    new LineWriter(layouts.REG).line(),
    records.tvaLine('TN', 2000),
    records.satLine('SIEGE', 'Siège', 1),
    records.satLine('ATELIER', 'Atelier', 1),
    bareLine(layouts.NSA),
    bareLine(layouts.SPA),
    bareLine(layouts.SOU),
    records.crrLine(corresponding),
    records.createdCgnLine(collectives.get('supplier')!),
    records.cgnLine({ ...account('218300', 'Matériel'), correspondanceAccount: corresponding }, false, 1),
    ...['281830', '445660', '471000', '512000', '607000'].map((number) =>
      records.cgnLine(account(number, `Compte ${number}`), false, 1),
    ),
    records.caeLine(supplier, { code: supplier.number, collective: collectives.get('supplier')!.number }),
    journal('Achats', 'AC', 'ACH'),
    journal('À nouveaux', 'AN', 'AN'),
    journal('Banque', 'BQ', 'BQ', '512000'),
    records.ribLine(bank, 1),
  ]
}

export function smallEntries(): Buffer[] {
  const settled: SmallEntryLine = { number: '2', journal: 'BQ', pieceType: 'RF', account: '401000' }
  return [
    entryWriter(purchase).line(),
    shareLine(purchase, 'A1', 'SIEGE', 60_000n),
    shareLine(purchase, 'A1', 'ATELIER', 40_000n),
    entryWriter({ account: '445660', debit: 20_000n }).line(),
    entryWriter({ account: '401000', thirdParty: '401DUPONT', credit: 120_000n })
      .text('LETTRAGE', 'AAAA')
      .text('ETATLETTRAGE', 'TL')
      .line(),
    entryWriter({ ...settled, thirdParty: '401DUPONT', debit: 120_000n })
      .key('MODEPAIE', 'PRE', 'right')
      .text('LETTRAGE', 'AAAA')
      .text('ETATLETTRAGE', 'TL')
      .line(),
    entryWriter({ ...settled, account: '512000', credit: 120_000n }).line(),
  ]
}

/** Index of the first line of a record among the parameters. */
export function recordAt(record: string): number {
  return smallParameters().findIndex((line) => line.toString('latin1').startsWith(`***${record}`))
}

/** The file with further parameters before the first line of a record. */
export function withBefore(record: string, ...further: Buffer[]): Buffer {
  return Buffer.concat([...smallParameters().toSpliced(recordAt(record), 0, ...further), ...smallEntries()])
}
