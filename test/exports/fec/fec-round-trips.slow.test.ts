/**
 * FEC in, FEC out: an imported file comes out with the same fields line by line, and an exported file, imported into an
 * empty folder, comes out byte for byte.
 */
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import iconv from 'iconv-lite'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { seed } from '../../../packages/sample/src/seed.ts'
import { fecFileStem } from '../../../src/formats/fec/columns.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { type FecImportOptions, importFec } from '../../../src/ledger/fec/import-fec.ts'
import { createFirm, createFolder, createSchema } from '../../../src/ledger/tenants.sql.ts'
import { shrinking, tries } from '../../support/changes/properties.ts'
import { fixturePath, readFixture } from '../../support/fixtures/fixture-files.ts'
import { renderFec } from '../../support/fixtures/rendered-file.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import { columns, fecFile, forms, ledger } from '../../support/ledgers/fec-file.ts'
import { addEntry, insertDimensions } from '../../support/ledgers/ledger.ts'
import { haveRealLedgers, realLedgers } from '../../support/ledgers/real-ledgers.ts'
import { checkFecForm } from '../../support/plain/fec-form.ts'
import { plainFec } from '../../support/plain/plain-fec.ts'

const stage = forEachTest(setImportStage)

const encodings = [undefined, 'utf-8'] as const
/** Files of `fixtures/fec/`, each beside its lines in the standard's form. */
const dialects = readdirSync(fixturePath('fec')).flatMap(
  (name) => /^(.*)\.expected\.txt$/.exec(name)?.[1] ?? [],
)
const textOf = (bytes: Buffer, encoding: 'utf-8' | undefined) =>
  bytes.toString(encoding === undefined ? 'latin1' : 'utf8').split('\r\n')

let files = 0

/** Imports the FEC of an exercice under a new name, and compares the FEC that comes out. */
async function expectSameAfterImport(
  folder: FolderKey,
  exercice: { id: string; end: string },
  options: (encoding: 'utf-8' | undefined) => Partial<FecImportOptions> = () => ({}),
): Promise<void> {
  for (const encoding of encodings) {
    const out = await renderFec(stage.owner, folder, exercice.id, { encoding })
    expect(out.totals.rows).toBe(out.rowsTotal)
    const siret = String(123_456_789 + files++)
    const file = `${fecFileStem({ siret, reference: null, exerciceEnd: exercice.end })}.txt`
    const imported = await stage.importFile(out.bytes, { file, ...options(encoding) })
    const again = await renderFec(stage.owner, imported, imported.exerciceId, { encoding })
    expect(textOf(again.bytes, encoding)).toEqual(textOf(out.bytes, encoding))
    expect(again.bytes.equals(out.bytes)).toBe(true)
    // The second file leaves out and alters nothing.
    expect({ ...again.notes, blankFields: out.notes['blankFields'] }).toEqual({
      ...Object.fromEntries(Object.keys(out.notes).map((note) => [note, 0])),
      blankFields: out.notes['blankFields'],
    })
    expect(imported.encoding).toBe(encoding ?? 'iso-8859-15')
  }
}

describe('an exported file', () => {
  test('of the demo data has the legal form, and is identical after an import', async () => {
    const { exercices, ...folder } = await seed(stage.database.ownerUrl, { movements: 4_000, year: 2025 })
    for (const { id, end } of exercices) {
      for (const encoding of encodings) {
        const { bytes, notes } = await renderFec(stage.owner, folder, id, { encoding })
        const name = `${fecFileStem({ siret: '123456789', reference: null, exerciceEnd: end })}.txt`
        const { findings, blanks } = checkFecForm(name, bytes, encoding ?? 'iso-8859-15')
        expect(findings).toEqual([])
        // Opening balances and some others have no document.
        expect(Object.keys(blanks)).toEqual(['PieceRef'])
        expect(notes).toMatchObject({
          blankFields: blanks['PieceRef'],
          blankValidDates: 0,
          outsideBooks: 0,
        })
      }
    }
    await expectSameAfterImport(folder, exercices[1]!)
  })

  test('of random entries has the legal form, and is identical after an import', async () => {
    const client = await stage.owner.connect()
    const schemaId = '100'
    await createSchema(client, { id: schemaId, name: 'x' })
    await createFirm(client, { schemaId, id: '110', name: 'x' })
    let folders = 0
    const sameAfterImport = async (entries: RandomEntry[]) => {
      const folder = { schemaId, folderId: String(111 + folders++) }
      await addLedger(client, folder, entries)
      const { bytes } = await renderFec(stage.owner, folder, '12')
      expect(checkFecForm('123456789FEC20250630.txt', bytes).findings).toEqual([])
      // A ledger of a few words does not tell its encoding.
      await expectSameAfterImport(folder, { id: '12', end: '2025-06-30' }, (encoding) => ({
        encoding: encoding ?? 'iso-8859-15',
      }))
    }
    const ledgers = fc.array(randomEntry, { minLength: 1, maxLength: 60 })
    const property = fc.asyncProperty(ledgers, shrinking(sameAfterImport))
    await fc.assert(property, tries(5)).finally(() => client.release())
  }, 300_000)
})

// biome-ignore format: a table
const pieces = [
  'Facture', 'n°', 'Été à Nîmes', 'cœur', '12 €', '"x"', "l'an", 'l’an', '\\', '\\N', '|', ';', '\t', '\r\n', '  ', 'Łódź',
  '😀', 'e\u0301', '\u00a0', '\u2028', 'Ÿ', '1/2', '½', '', '0', '-', 'x'.repeat(90),
]
const text = fc
  .tuple(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 4 }), fc.constantFrom('', ' '))
  .map(([parts, between]) => parts.join(between))
const day = fc
  .nat({ max: 180 })
  .map((days) => new Date(Date.UTC(2024, 6, 1 + days)).toISOString().slice(0, 10))
const idFrom = (min: number, max: number) => fc.integer({ min, max }).map(String)

/** An entry in a journal of any kind, with texts as users type them. The first movement balances the others. */
const randomEntry = fc.record({
  date: day,
  validatedAt: fc.option(day, { freq: 9 }),
  journalId: idFrom(31, 40),
  movements: fc.array(
    fc.record({
      accountId: idFrom(101, 110),
      description: text,
      invoiceNumber: fc.oneof(text, fc.constant('')),
      amount: fc.bigInt(-(10n ** 4n), 10n ** 9n),
      letteringCode: fc.constantFrom(null, 'A', 'aé', '*'),
    }),
    { minLength: 2, maxLength: 6 },
  ),
})
type RandomEntry = typeof randomEntry extends fc.Arbitrary<infer Drawn> ? Drawn : never

/** Writes the entries to a new folder. The first is validated, as a FEC has at least one line. */
async function addLedger(client: pg.ClientBase, folder: FolderKey, entries: readonly RandomEntry[]) {
  await createFolder(client, { schemaId: folder.schemaId, id: folder.folderId, firmId: '110', name: 'x' })
  await insertDimensions(client, folder, 'é')
  for (const [i, { movements, date, ...entry }] of entries.entries()) {
    const [, ...others] = movements
    const credit = others.reduce((sum, { amount }) => sum + amount, 0n)
    const rows = movements.map(({ amount, ...row }, k) => ({
      ...row,
      ...(k === 0 ? { credit } : { debit: amount }),
      letteringState: row.letteringCode === null ? ('none' as const) : ('partial' as const),
      id: String(10_000 + 10 * i + k),
    }))
    const validatedAt = i === 0 ? date : entry.validatedAt
    await addEntry(client, folder, { id: String(5_000 + i), ...entry, date, validatedAt }, rows)
  }
}

/** Lines and fields of an exported file. */
const linesOf = (bytes: Buffer, encoding: 'utf-8' | undefined) =>
  plainFec(encoding === undefined ? Buffer.from(iconv.decode(bytes, 'iso-8859-15')) : bytes)

describe('an imported file', () => {
  test.each(dialects)('in the dialect %s is exported in the standard form, byte for byte', async (name) => {
    const options = { name, start: '2023-01-01', end: '2023-12-31' }
    const imported = await importFec(stage.owner, { ...options, file: fixturePath(`fec/${name}.txt`) })
    const all = { encoding: 'utf-8', columns: 'extended' } as const
    const { bytes } = await renderFec(stage.owner, imported, imported.exerciceId, all)
    const expected = readFixture(`fec/${name}.expected.txt`)
    expect(textOf(bytes, 'utf-8')).toEqual(textOf(expected, 'utf-8'))
    expect(bytes.equals(expected)).toBe(true)
  })

  test.each(Object.entries(forms))('with %s is exported in the standard form', async (_, form) => {
    const imported = await stage.importFile(fecFile(ledger, form))
    const names = (form.columns ?? columns).filter((name) => !['Montant', 'Sens'].includes(name))
    const further = names.filter((name) => !columns.includes(name))
    const expected = plainFec(fecFile(ledger, { columns: [...columns, ...further] }))
    const blankValidDates = expected.filter((fields) => fields[15] === '').length
    expect(blankValidDates).toBeGreaterThan(0)
    for (const encoding of encodings) {
      const all = await renderFec(stage.owner, imported, imported.exerciceId, {
        encoding,
        columns: 'extended',
      })
      expect(linesOf(all.bytes, encoding)).toEqual(expected)
      expect(all.notes).toMatchObject({
        drafts: 0,
        outsideBooks: 0,
        blankValidDates,
        replacedCharacters: 0,
        columnsLeftOut: 0,
      })
      const { bytes, notes } = await renderFec(stage.owner, imported, imported.exerciceId, { encoding })
      expect(linesOf(bytes, encoding)).toEqual(expected.map((fields) => fields.slice(0, columns.length)))
      expect(notes['columnsLeftOut']).toBe(further.length)
    }
  })

  test('is exported without its drafts until they are validated, and ends with the entries that were booked later', async () => {
    const imported = await stage.importFile(fecFile(ledger), { drafts: true })
    const filed = plainFec(fecFile(ledger))
    const out = async () => {
      const { bytes, notes } = await renderFec(stage.owner, imported, imported.exerciceId)
      return { lines: linesOf(bytes, undefined), notes }
    }
    expect(await out()).toEqual({
      lines: filed.filter((fields) => fields[15] !== ''),
      notes: expect.objectContaining({ drafts: imported.drafts, blankValidDates: 0 }),
    })
    expect(imported.drafts).toBeGreaterThan(1)
    await stage.owner.query(
      `update grandlivre.entries set validated_at = '2024-03-31' where validated_at is null`,
    )
    const { rows } = await stage.owner.query(
      `with added as (
         insert into grandlivre.entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at,
             created_at, validated_at, source, currency)
           select schema_id, folder_id, 9000000, exercice_id, journal_id, date, date, now(), date, 'E', 'EUR'
           from grandlivre.entries where number = '9' returning *)
       insert into grandlivre.movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description,
           invoice_number, debit, credit)
         select e.schema_id, e.folder_id, e.exercice_id, e.id, 9000001, a.id, 'Later', '', 0, 0
         from added e join grandlivre.accounts a on a.folder_id = e.folder_id and a.number = '512000' returning id`,
    )
    expect(rows).toHaveLength(1)
    const { lines, notes } = await out()
    expect(lines.slice(0, -1)).toEqual(filed.map((fields) => fields.with(15, fields[15] || '20240331')))
    expect(lines.at(-1)!.slice(0, 11)).toEqual([
      'HA',
      'Achats',
      '10',
      '20230202',
      '512000',
      'Banque',
      '',
      '',
      '',
      '20230202',
      'Later',
    ])
    expect(notes).toMatchObject({ drafts: 0, blankValidDates: 0, earlierImports: 0 })
  })

  test.runIf(haveRealLedgers)('that a company filed is exported with every field', async () => {
    for (const { file, lines } of realLedgers) {
      const filed = plainFec(await readFile(file))
      expect(filed.length).toBe(lines + 1)
      const imported = await importFec(stage.owner, { file })
      const all = { encoding: 'utf-8', columns: 'extended' } as const
      const { bytes, notes, totals } = await renderFec(stage.owner, imported, imported.exerciceId, all)
      expect(linesOf(bytes, 'utf-8')).toEqual(filed)
      const blanks = filed.filter((fields) => fields[15] === '').length
      expect(notes).toMatchObject({ drafts: 0, outsideBooks: 0, blankValidDates: blanks })
      expect([totals.debit, totals.credit]).toEqual([sumsBy(filed, 11).get(''), sumsBy(filed, 12).get('')])
      // The ledger itself has the sums of the file for each account and each journal.
      for (const [column, name] of [
        [0, 'j.code'],
        [4, 'a.filed_number'],
      ] as const) {
        const { rows } = await stage.owner.query(
          `select ${name} as key, sum(m.debit) as debit, sum(m.credit) as credit from grandlivre.movements m
           join grandlivre.entries e on e.id = m.entry_id join grandlivre.journals j on j.id = e.journal_id
           join grandlivre.accounts a on a.id = m.account_id where m.exercice_id = $1 group by 1`,
          [imported.exerciceId],
        )
        for (const [side, amounts] of [
          ['debit', 11],
          ['credit', 12],
        ] as const)
          expect(new Map(rows.map((row) => [row.key, BigInt(row[side])]))).toEqual(
            sumsBy(filed, amounts, column),
          )
      }
    }
  })
})

/** The sums of a column of amounts, in cents, by the values of another column; or one sum under ''. */
function sumsBy([, ...lines]: string[][], amount: number, by?: number): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  for (const fields of lines) {
    const key = by === undefined ? '' : fields[by]!
    sums.set(key, (sums.get(key) ?? 0n) + BigInt(fields[amount]!.replace(',', '')))
  }
  return sums
}
