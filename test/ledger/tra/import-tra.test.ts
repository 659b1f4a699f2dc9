/** What an import of a TRA file takes, tells and refuses. */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LineWriter } from '../../../src/formats/tra/layouts/fixed-width.ts'
import { layouts } from '../../../src/formats/tra/layouts/layouts.ts'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { traBytes } from '../../support/fixtures/tra-bytes.ts'
import { type ImportStage, setImportStage } from '../../support/imports/import-stage.ts'
import { rowCounts } from '../../support/ledgers/ledger-content.ts'
import {
  entryWriter,
  purchase,
  type SmallEntryLine,
  smallEntries,
  smallParameters,
} from '../../support/ledgers/small-tra.ts'

const small = () => [...smallParameters(), ...smallEntries()]
const bytesOf = (lines: readonly Buffer[]) => Buffer.concat(lines)

let stage: ImportStage

beforeEach(async () => {
  stage = await setImportStage()
})

afterEach(() => stage.close())

/** The small file with columns of one line overwritten. @param line from 1 @param at from 1 */
function written(line: number, at: number, text: string): Buffer {
  const lines = small()
  const changed = Buffer.from(lines[line - 1]!)
  changed.write(text, at - 1, 'latin1')
  return bytesOf(lines.with(line - 1, changed))
}

const firstEntry = smallParameters().length + 1

const refusals: Record<string, [file: () => Uint8Array, message: string]> = {
  'an empty file': [() => Buffer.alloc(0), 'line 1, column 1: the file is empty'],
  'a FEC': [() => readFixture('ledger.fec.txt'), 'line 1, column 1 "JournalCode|'],
  'a MAD file': [() => readFixture('ledger.mad.json'), 'line 1, column 1 "{"metadata"'],
  'a file cut within a line': [() => bytesOf(small()).subarray(0, -300), `line ${firstEntry + 6}, column `],
  'a compressed file, cut': [() => gzipSync(bytesOf(small())).subarray(0, -20), 'is not a whole gzip file'],
  'a file of two zstd frames, the second damaged': [
    () => {
      const [parameters, lines] = [smallParameters(), smallEntries()].map((part) =>
        zstdCompressSync(bytesOf(part)),
      )
      return Buffer.concat([parameters!, lines!.fill(0, 0, 1)])
    },
    'is not a whole zstd file: its last ',
  ],
  'an unknown record': [
    () => bytesOf([...smallParameters(), Buffer.from('***XYZ\r\n')]),
    `line ${firstEntry}, column 4 "XYZ": not a record of TRA files of version 011`,
  ],
  'a bad amount': [
    () => written(firstEntry, 131, '            100O,00 '),
    `line ${firstEntry}, column 131, ENTRY.MONTANT1 "100O,00": a right-aligned number is expected`,
  ],
  'an amount beyond the database': [
    () => written(firstEntry, 131, '99999999999999999,99'),
    `line ${firstEntry}, column 131, ENTRY.MONTANT1 "99999999999999999,99": an amount up to`,
  ],
  'an amount without euro': [
    () => written(firstEntry, 173, 'D--'),
    `line ${firstEntry}, column 173, ENTRY.CODEMONTANT "D--": an amount in euro is expected`,
  ],
  'a bad day': [
    () => written(firstEntry, 4, '30022024'),
    `line ${firstEntry}, column 4, ENTRY.DATECOMPTABLE "30022024": a day written DDMMYYYY is expected`,
  ],
  'a day outside all exercices': [
    () => written(firstEntry, 4, '15032019'),
    `line ${firstEntry}, column 4, ENTRY.DATECOMPTABLE "15032019": no EXO record of the file contains this day`,
  ],
  'an account that no record defines': [
    () => written(firstEntry, 14, '999999'),
    `line ${firstEntry}, column 14, ENTRY.GENERAL "999999": `,
  ],
  'lines of one entry, one of them a draft': [
    () => written(firstEntry + 3, 151, 'S'),
    `line ${firstEntry + 3}, column 151, ENTRY.TYPE ECRITURE "S": the first line of the entry has "N"`,
  ],
  'a file of balances': [
    () => written(1, 9, 'BAL'),
    'line 1, column 9, HEADER.TYPE FICHIER "BAL": DOS or JRL',
  ],
  'another currency of the books': [
    () => written(5, 7, 'USD'),
    'line 5, column 7, PS5.DEVISE "USD": EUR is expected',
  ],
  'an account code without a digit or letter': [
    () => {
      const lines = small()
      const at = lines.findIndex((line) => line.toString('latin1').startsWith('***CGN'))
      return written(at + 1, 7, '--------')
    },
    'CGN.CODE "--------": a code with a digit or letter is expected',
  ],
  'a SIRET of letters': [() => written(2, 391, 'SIRET'), 'line 2, column 391, PS1.SIRET'],
}

describe('refused', () => {
  test.each(Object.entries(refusals))('%s', async (_, [file, message]) => {
    const before = await rowCounts(stage.owner)
    const outcome = await stage.importTra(file()).then(
      () => 'imported',
      (error: Error) => error.message,
    )
    expect(outcome).toContain(message)
    expect(await rowCounts(stage.owner)).toEqual(before)
  })

  test('with the first twenty problems and their number', async () => {
    const bad = smallEntries().map((line) => {
      const changed = Buffer.from(line)
      changed.write('x', 139, 'latin1')
      return changed
    })
    const error: Error = await stage
      .importTra(bytesOf([...smallParameters(), ...bad, ...bad, ...bad, ...bad]))
      .catch((reason) => reason)
    expect(error.message).toMatch(/^The file was not imported: \d\d problems, the first 20\n {2}line /)
    expect(error.message.split('\n').length).toBe(21)
  })
})

test.each<[string, (bytes: Buffer) => Uint8Array]>([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
])('a file compressed by %s is read', async (_, compress) => {
  expect((await stage.importTra(compress(bytesOf(small())))).movements).toBe(5)
})

test('rows have what the file says', async () => {
  const { folderId, ...imported } = await stage.importTra(bytesOf(small()))
  expect(imported).toMatchObject({
    entries: 2,
    movements: 5,
    debit: 240_000n,
    credit: 240_000n,
    drafts: 0,
    wrongSums: 0,
  })
  const { rows } = await stage.owner.query(
    `select e.source, e.created_at::text as created, e.validated_at::text as validated, a.number, c.siren, c.ape_code,
       (c.address).city, c.contacts, p.code as payment, m.debit, m.lettering_state as state, m.lettering_code as code
     from grandlivre.movements m
     join grandlivre.entries e on (e.folder_id, e.id) = (m.folder_id, m.entry_id)
     join grandlivre.accounts a on (a.folder_id, a.id) = (m.folder_id, m.account_id)
     join grandlivre.companies c on (c.folder_id, c.account_id) = (a.folder_id, a.id)
     left join grandlivre.payments p on (p.folder_id, p.id) = (m.folder_id, m.payment_id)
     where m.folder_id = $1 and m.debit > 0`,
    [folderId],
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

test('blanks before a text belong to it, and so does a hard blank after it', async () => {
  const line = entryWriter({ ...purchase, number: '3', debit: 0n })
    .text('LIBELLE', '  deux blancs\u00a0')
    .line()
  const { folderId } = await stage.importTra(bytesOf([...small(), line]))
  const { rows } = await stage.owner.query(
    'select description from grandlivre.movements where folder_id = $1 order by id desc limit 1',
    [folderId],
  )
  expect(rows).toEqual([{ description: '  deux blancs\u00a0' }])
})

test('codes may be aligned otherwise than in their definitions', async () => {
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

test('accounts that cannot get the number of the file are named', async () => {
  const cgn = new LineWriter(layouts.CGN)
    .key('CODE', '51-2.9')
    .text('LIBELLE', 'B')
    .text('NATURE', 'BQE')
    .line()
  const at = smallParameters().findLastIndex((line) => line.toString('latin1').startsWith('***CGN'))
  const { renumberedAccounts } = await stage.importTra(bytesOf(small().toSpliced(at + 1, 0, cgn)))
  expect(renumberedAccounts).toEqual([{ filed: '51-2.9', number: '5129' }])
})

test('a third party keeps its collective account and its own number, as filed', async () => {
  const { folderId } = await stage.importTra(bytesOf(small()))
  const { rows } = await stage.owner.query(
    `select filed_number, filed_name, auxiliary_number, auxiliary_name from grandlivre.accounts
     where folder_id = $1 and number = '401DUPONT'`,
    [folderId],
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

test('drafts, entries without a day of validation, and sums that do not add up are loaded and counted', async () => {
  const line = (number: string) => entryWriter({ ...purchase, number })
  const extra = [
    line('3').text('TYPE ECRITURE', 'S').text('VALIDE', '-').date('VALIDDATE', null).line(),
    line('4').text('VALIDE', '-').date('VALIDDATE', null).line(),
  ]
  const { folderId, ...imported } = await stage.importTra(bytesOf([...small(), ...extra]))
  expect(imported).toMatchObject({ entries: 4, drafts: 1, blankValidDates: 1, wrongSums: 2 })
  const { rows } = await stage.owner.query(
    'select validated_at::text as day from grandlivre.entries where folder_id = $1 order by id',
    [folderId],
  )
  expect(rows.map(({ day }) => day)).toEqual(['2024-03-31', '2024-03-31', null, '2024-03-15'])
})

test('fields that exports leave blank are not read, and counted where a file fills them', async () => {
  const other = entryWriter({ ...purchase, number: '3', debit: 0n })
    .text('AFFAIRE', 'X1')
    .line()
  const mode = new LineWriter(layouts.MDP).key('CODE', 'TRT', 'right').text('LIBELLE', 'Traite').line()
  const at = smallParameters().findIndex((line) => line.toString('latin1').startsWith('***MDP'))
  const { unread } = await stage.importTra(bytesOf([...small().toSpliced(at, 0, mode), other]))
  expect(unread).toEqual(
    new Map([
      ['MDP.CODE', 1],
      ['ENTRY.AFFAIRE', 1],
    ]),
  )
})

test('a third party below another root is on its collective account, and counted', async () => {
  const cae = new LineWriter(layouts.CAE)
    .key('CODE', 'DIVERS1')
    .text('LIBELLE', 'Divers')
    .text('NATURE', 'DIV')
    .key('COLLECTIF', '467000')
    .line()
  const cgn = new LineWriter(layouts.CGN)
    .key('CODE', '467000')
    .text('LIBELLE', 'Autres')
    .text('NATURE', 'COD')
    .text('COLLECTIF', 'X')
    .line()
  const parameters = smallParameters()
  const at = parameters.findIndex((line) => line.toString('latin1').startsWith('***CAE'))
  const party: SmallEntryLine = { account: '467000', thirdParty: 'DIVERS1', debit: 5n, number: '3' }
  const entry = [party, { account: '512000', credit: 5n, number: '3' }].map((line) =>
    entryWriter(line).line(),
  )
  const file = bytesOf([...parameters.toSpliced(at, 0, cgn, cae), ...smallEntries(), ...entry])
  const { folderId, thirdPartyLines } = await stage.importTra(file)
  expect(thirdPartyLines).toBe(1)
  const { rows } = await stage.owner.query(
    `select a.number from grandlivre.movements m join grandlivre.accounts a on (a.folder_id, a.id) = (m.folder_id, m.account_id)
     where m.folder_id = $1 and m.debit = 5`,
    [folderId],
  )
  expect(rows).toEqual([{ number: '467000' }])
})

test('the golden file comes out as it went in', async () => {
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
