/** Imports of valid TRA files: the ledger that they make, and what they report. */
import { expect, test } from 'vitest'
import { LineWriter, layouts } from '../../../src/formats/tra/layouts.ts'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { traBytes } from '../../support/fixtures/rendered-file.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import {
  entryWriter,
  purchase,
  recordAt,
  type SmallEntryLine,
  smallEntries,
  smallParameters,
  withBefore,
} from '../../support/imports/small-tra.ts'

const small = () => [...smallParameters(), ...smallEntries()]
const bytesOf = (lines: readonly Buffer[]) => Buffer.concat(lines)

const stage = forEachTest(setImportStage)

/** @param sql about the folder $1 */
const rowsOf = async (folderId: string, sql: string) => (await stage.owner.query(sql, [folderId])).rows

const general = (number: string, nature: string) =>
  new LineWriter(layouts.CGN)
    .key('CODE', number)
    .text('LIBELLE', 'N')
    .text('NATURE', nature)
    .text('COLLECTIF', 'X')
    .line()
const party = (code: string, nature: string, collective: string) =>
  new LineWriter(layouts.CAE)
    .key('CODE', code)
    .text('LIBELLE', code)
    .text('NATURE', nature)
    .key('COLLECTIF', collective)
    .line()

test('the imported rows match the file', async () => {
  const { folderId, ...imported } = await stage.importTra(bytesOf(small()))
  expect(imported).toMatchObject({
    entries: 2,
    movements: 5,
    debit: 240_000n,
    credit: 240_000n,
    drafts: 0,
    wrongSums: 0,
  })
  const rows = await rowsOf(
    folderId,
    `select e.source, e.created_at::text as created, e.validated_at::text as validated, a.number, c.siren, c.ape_code,
       (c.address).city, c.contacts, p.code as payment, m.debit, m.lettering_state as state, m.lettering_code as code
     from grandlivre.movements m
     join grandlivre.entries e on (e.folder_id, e.id) = (m.folder_id, m.entry_id)
     join grandlivre.accounts a on (a.folder_id, a.id) = (m.folder_id, m.account_id)
     join grandlivre.companies c on (c.folder_id, c.account_id) = (a.folder_id, a.id)
     left join grandlivre.payments p on (p.folder_id, p.id) = (m.folder_id, m.payment_id)
     where m.folder_id = $1 and m.debit > 0`,
  )
  expect(rows).toEqual([
    {
      source: 'CEGID',
      created: expect.stringMatching(/^2024-03-16 /),
      validated: '2024-03-31',
      number: '401DUPONT',
      siren: '123456782',
      ape_code: '4690Z',
      city: 'PARIS',
      contacts: [
        { firstname: 'Chloé', lastname: null, phoneNumber: '+33100000000', role: null, email: null },
      ],
      payment: 'PRLV',
      debit: '120000',
      state: 'complete',
      code: 'AAAA',
    },
  ])
  const folder = await stage.owner.query(
    `select f.address, firm.name as firm, f.capital from grandlivre.folders f
     join grandlivre.firms firm on firm.id = f.firm_id where f.id = $1`,
    [folderId],
  )
  expect(folder.rows).toEqual([
    {
      address: '(12,bis,RUE,"DES ÉRABLES","Bâtiment B",75011,PARIS,FRA)',
      firm: 'Cabinet Lefèvre',
      capital: '5000000',
    },
  ])
})

test('leading blanks belong to a text, and so does a trailing no-break space', async () => {
  const line = entryWriter({ ...purchase, number: '3', debit: 0n })
    .text('LIBELLE', '  deux blancs\u00a0')
    .line()
  const { folderId } = await stage.importTra(bytesOf([...small(), line]))
  const rows = await rowsOf(
    folderId,
    'select description from grandlivre.movements where folder_id = $1 order by id desc limit 1',
  )
  expect(rows).toEqual([{ description: '  deux blancs\u00a0' }])
})

test('codes are found even if they are aligned differently from their definitions', async () => {
  const lines = small().map((line) => {
    const changed = Buffer.from(line)
    const shift = (at: number, length: number) => {
      const code = changed.toString('latin1', at - 1, at - 1 + length).trim()
      changed.write(code.padStart(length), at - 1, 'latin1')
    }
    if (changed.toString('latin1', 0, 3) !== '***') {
      shift(1, 3)
      shift(14, 17)
      shift(32, 17)
    }
    return changed
  })
  expect(lines).not.toEqual(small())
  expect((await stage.importTra(bytesOf(lines))).movements).toBe(5)
})

test('the report names accounts that could not get the number in the file', async () => {
  const { renumberedAccounts } = await stage.importTra(withBefore('CAE', general('51-2.9', 'BQE')))
  expect(renumberedAccounts).toEqual([{ filed: '51-2.9', number: '5129' }])
})

test('third parties keep the IBANs of their banks, and other bank data is counted', async () => {
  const bank = (account: string, iban: string, bic: string) =>
    new LineWriter(layouts.RIB)
      .key('AUXILIAIRE', account)
      .number('NUMERORIB', '1')
      .text('CODEIBAN', iban)
      .text('CODEBIC', bic)
      .line()
  // Inserts from the end, so that the lines before keep their numbers.
  const lines = small()
    .toSpliced(recordAt('RIB'), 0, bank('MARTIN', 'FR1', 'B'), bank('DURAND', 'FR2', ''))
    .toSpliced(recordAt('RIB'), 0, bank('DIVERS', 'FR3', ''))
    .toSpliced(recordAt('JAL'), 0, party('MARTIN', 'FOU', '401000'), party('DURAND', 'SAL', '421000'))
    .toSpliced(recordAt('JAL'), 0, party('DIVERS', 'DIV', '467000'))
    .toSpliced(recordAt('CAE'), 0, general('421000', 'COS'), general('467000', 'COD'))
  const { folderId, unread } = await stage.importTra(bytesOf(lines))
  const rows = await rowsOf(
    folderId,
    `select a.number, coalesce(c.ibans, e.ibans) as ibans from grandlivre.accounts a
     left join grandlivre.companies c on (c.folder_id, c.account_id) = (a.folder_id, a.id)
     left join grandlivre.employees e on (e.folder_id, e.account_id) = (a.folder_id, a.id)
     where a.folder_id = $1 and coalesce(c.ibans, e.ibans) <> '{}' order by a.number`,
  )
  expect(rows).toEqual([
    { number: '401MARTIN', ibans: ['FR1'] },
    { number: '421DURAND', ibans: ['FR2'] },
  ])
  const banks = await stage.owner.query('select iban from grandlivre.banks where folder_id = $1', [folderId])
  expect(banks.rows).toEqual([{ iban: 'FR7630004005120001012345X78' }])
  expect(Object.fromEntries(unread)).toEqual({ 'RIB.CODEBIC': 1, 'RIB.CODEIBAN': 1 })
})

test('banks of a file without a bank journal are left out, and counted', async () => {
  const parameters = smallParameters().filter((line) => !line.toString('latin1').startsWith('***JALBQ'))
  const { folderId, banksLeftOut } = await stage.importTra(
    bytesOf([...parameters, ...smallEntries().slice(0, 5)]),
  )
  expect(banksLeftOut).toBe(1)
  const rows = await rowsOf(folderId, 'select from grandlivre.banks where folder_id = $1')
  expect(rows).toEqual([])
})

test('AEXTOURNER gives a journal of NATURE OD the type A_EXT, and is counted for any other NATURE', async () => {
  const journal = (code: string, nature: string) =>
    new LineWriter(layouts.JAL)
      .key('CODE', code)
      .text('LIBELLE', 'J')
      .text('NATURE', nature)
      .text('MODESAISIE', '-')
      .text('AEXTOURNER', 'X')
      .line()
  const { folderId, unread } = await stage.importTra(
    withBefore('JAL', journal('EX', 'OD'), journal('VX', 'VTE'), journal('WX', 'ACH')),
  )
  const rows = await rowsOf(
    folderId,
    `select code, type from grandlivre.journals where folder_id = $1 and code like '_X' order by code`,
  )
  expect(rows).toEqual([
    { code: 'EX', type: 'A_EXT' },
    { code: 'VX', type: 'VTE' },
    { code: 'WX', type: 'ACH' },
  ])
  expect(unread).toEqual(new Map([['JAL.AEXTOURNER', 2]]))
})

test('additional establishments, and correspondences that are not accounts, are counted', async () => {
  const ofSection = new LineWriter(layouts.CRR)
    .key('CODE', 'SECTION')
    .text('LIBELLE', 'S')
    .text('TYPE', 'A11')
    .line()
  const second = new LineWriter(layouts.ETB).key('CODE', '002').text('ADRESSE1', 'AVENUE FOCH').line()
  const plain = await stage.importTra(bytesOf(small()))
  expect((await stage.importTra(withBefore('CRR', ofSection))).accounts).toBe(plain.accounts)
  expect((await stage.importTra(withBefore('CRR', ofSection))).unread).toEqual(new Map([['CRR.TYPE', 1]]))
  const { folderId, unread } = await stage.importTra(withBefore('MDP', second))
  expect(unread).toEqual(new Map([['ETB.CODE', 1]]))
  const rows = await rowsOf(folderId, 'select (address).number from grandlivre.folders where id = $1')
  expect(rows).toEqual([{ number: '12' }])
})

test('a rate may end in zeros, and lettering codes may be aligned differently', async () => {
  const lines = small()
  const aligned = lines.map((line) => {
    const changed = Buffer.from(line)
    if (!changed.toString('latin1').startsWith('***') && changed.toString('latin1', 1013, 1017) === 'AAAA')
      changed.write(' AAAA', 1013, 'latin1')
    return changed
  })
  const foreign = entryWriter({ ...purchase, number: '3', debit: 0n })
    .key('DEVISE', 'USD')
    .number('TAUXDEV', '0,92340000')
    .text('CODEMONTANT', 'DE-')
    .amount('MONTANT2', 0n)
    .line()
  const { folderId } = await stage.importTra(bytesOf([...lines, foreign]))
  const rows = await rowsOf(
    folderId,
    'select rate from grandlivre.entries where folder_id = $1 and rate is not null',
  )
  expect(rows).toEqual([{ rate: '0.923400' }])
  const other = await stage.importTra(bytesOf(aligned))
  const codes = await stage.owner.query(
    'select distinct lettering_code as code from grandlivre.movements where folder_id = $1 and lettering_code is not null',
    [other.folderId],
  )
  expect(aligned).not.toEqual(lines)
  expect(codes.rows).toEqual([{ code: 'AAAA' }])
})

test('a third party keeps its collective account and its own number, as filed', async () => {
  const { folderId } = await stage.importTra(bytesOf(small()))
  const rows = await rowsOf(
    folderId,
    `select filed_number, filed_name, auxiliary_number, auxiliary_name from grandlivre.accounts
     where folder_id = $1 and number = '401DUPONT'`,
  )
  expect(rows).toEqual([
    {
      filed_number: '401000',
      filed_name: 'Fournisseurs',
      auxiliary_number: '401DUPONT',
      auxiliary_name: 'Dupont & Fils',
    },
  ])
})

test('drafts, entries without a validation date, and sums that do not add up are loaded and counted', async () => {
  const line = (number: string) => entryWriter({ ...purchase, number })
  const extra = [
    line('3').text('TYPE ECRITURE', 'S').text('VALIDE', '-').date('VALIDDATE', null).line(),
    line('4').text('VALIDE', '-').date('VALIDDATE', null).line(),
  ]
  const { folderId, ...imported } = await stage.importTra(bytesOf([...small(), ...extra]))
  expect(imported).toMatchObject({ entries: 4, drafts: 1, blankValidDates: 1, wrongSums: 2 })
  const rows = await rowsOf(
    folderId,
    'select validated_at::text as day from grandlivre.entries where folder_id = $1 order by id',
  )
  expect(rows.map(({ day }) => day)).toEqual(['2024-03-31', '2024-03-31', null, '2024-03-15'])
})

test('fields that our exports leave blank are not imported, but counted if a file fills them', async () => {
  const other = entryWriter({ ...purchase, number: '3', debit: 0n })
    .text('AFFAIRE', 'X1')
    .line()
  const mode = new LineWriter(layouts.MDP).key('CODE', 'TRT', 'right').text('LIBELLE', 'Traite').line()
  const { unread } = await stage.importTra(bytesOf([withBefore('MDP', mode), other]))
  expect(Object.fromEntries(unread)).toEqual({ 'MDP.CODE': 1, 'ENTRY.AFFAIRE': 1 })
})

test('lines of a third party below another root are booked on its collective account, and counted', async () => {
  const line: SmallEntryLine = { account: '467000', thirdParty: 'DIVERS1', debit: 5n, number: '3' }
  const entry = [line, { account: '512000', credit: 5n, number: '3' }].map((each) => entryWriter(each).line())
  const file = bytesOf([
    withBefore('CAE', general('467000', 'COD'), party('DIVERS1', 'DIV', '467000')),
    ...entry,
  ])
  const { folderId, thirdPartyLines } = await stage.importTra(file)
  expect(thirdPartyLines).toBe(1)
  const rows = await rowsOf(
    folderId,
    `select a.number from grandlivre.movements m join grandlivre.accounts a on (a.folder_id, a.id) = (m.folder_id, m.account_id)
     where m.folder_id = $1 and m.debit = 5`,
  )
  expect(rows).toEqual([{ number: '467000' }])
})

test('the golden file is exported as it was imported', async () => {
  const file = readFixture('ledger.tra')
  const imported = await stage.importTra(file)
  expect(imported.unread).toEqual(new Map())
  const again = await traBytes(stage.service, imported)
  // The generation, and the entry's id.
  const comparable = (bytes: Buffer) =>
    bytes
      .toString('latin1')
      .split('\r\n')
      .slice(1)
      .map((line) => (line.startsWith('***') ? line : line.slice(0, 222) + line.slice(257)))
  expect(comparable(again)).toEqual(comparable(file))
})
