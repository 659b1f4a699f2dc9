/** The command `import fec`: what it prints, on which stream, and its exit code. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CommandResult, cli, startCli } from '../support/cli.ts'
import { changed, columns, type FecRow, fecFile, forms, ledger } from '../support/ledgers/fec-file.ts'
import { createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { until } from '../support/until.ts'

let database: TestDatabase
let client: pg.Client
let folder: string

beforeEach(async () => {
  database = await createTestDatabase()
  client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-import-'))
})

afterEach(async () => {
  await client.end()
  await database.drop()
  await rm(folder, { recursive: true })
})

async function written(name: string, bytes: Buffer): Promise<string> {
  await writeFile(join(folder, name), bytes)
  return join(folder, name)
}

async function importFec(...words: string[]): Promise<CommandResult> {
  const ran = await cli(database.ownerUrl, 'import', 'fec', ...words)
  // A slow import also prints its progress.
  return { ...ran, error: ran.error.replace(/^(?:checking|loading): .*\n/gm, '') }
}

test('an import prints folder, exercice, counts and sums, and applies its options', async () => {
  const file = await written('books.txt', fecFile(ledger))
  const named = ['--siren', '123456789', '--name', 'Café', '--start', '2023-01-01', '--end', '2023-12-31']
  const { code, out, error } = await importFec(file, ...named)
  expect([code, error]).toEqual([0, ''])
  const { rows } = await client.query(
    `select f.id, f.firm_id, f.name, x.id as exercice_id from grandlivre.folders f
     join grandlivre.exercices x on x.folder_id = f.id`,
  )
  expect(out.split('\n').slice(0, 9)).toEqual([
    `Folder ${rows[0].id} (Café, new), firm ${rows[0].firm_id}`,
    `Exercice ${rows[0].exercice_id}, 2023-01-01 to 2023-12-31`,
    expect.stringMatching(/^27 lines in 11 entries, 16 accounts, 5 journals, read as utf-8 in [0-9.]+ s$/),
    'Debit 1965.00, credit 1965.00',
    '6 lettered lines: 4 complete, 2 partial',
    'Opening lines from before 2023-01-01, dated on that day: 1',
    '7 entries without a validation date: taken as validated on their own date; --drafts keeps them apart',
    'Lines whose auxiliary stays with the movement, since only 401, 411 and 421 have accounts of third parties: 1 on 404',
    '1 account could not get the number of the file: 401000 F.IT is 401000FIT',
  ])
  expect((await importFec(file, '--folder', rows[0].id, '--name', 'X')).error).toBe(
    '--folder names an existing folder, --name a new one: give only one of them\n',
  )
  const again = await importFec(file, '--folder', rows[0].id)
  expect(again).toMatchObject({ code: 1, out: '', error: expect.stringMatching(/Import with --replace to/) })
  await client.query(`update grandlivre.folders set name = 'Ca' || chr(27) || '[31mfé'`)
  const replaced = await importFec(file, '--folder', rows[0].id, '--replace')
  expect(replaced.code).toBe(0)
  expect(replaced.out).toMatch(/^Folder \d+ \(Ca\\x1b\[31mfé\), firm /)
  expect(replaced.out.split('\n')[5]).toBe(
    'Replaced what differs: 0 entries and 0 movements new, 0 entries and 0 movements changed, 0 entries and 0 movements deleted',
  )
  await client.query(
    `update grandlivre.entries set source = 'E' where id in (select entry_id from grandlivre.movements
       where description = 'Paie de mars' or description = 'Beans')`,
  )
  const wages = await written('wages.txt', fecFile(ledger.slice(16, 18)))
  const one = await importFec(wages, ...named.slice(4), '--folder', rows[0].id, '--replace')
  expect(one.out.split('\n').slice(5, 8)).toEqual([
    'Replaced what differs: 0 entries and 0 movements new, 1 entry and 0 movements changed, 10 entries and 25 movements deleted',
    'Entries that did not come from a FEC: 1 deleted, 1 overwritten by those of the file',
    '1 entry without a validation date: taken as validated on its own date; --drafts keeps it apart',
  ])
})

test('an import says what it kept apart from the movements, and --drafts what awaits validation', async () => {
  const rows: FecRow[] = ledger.map((row) => ({
    ...row,
    ValidDate: row['ValidDate'] === '' ? '' : `${row['ValidDate']} 10:00`,
    PJ: '',
  }))
  rows[1]!['ModeRglt'] = 'troc'
  rows[10]!['Idevise'] = 'GBP'
  rows[0]!['PJ'] = 'https://files.example.com/a.pdf*https://files.example.com/b.pdf'
  const file = await written(
    '123456789FEC20231231.txt',
    fecFile(rows, { columns: [...columns, 'ModeRglt', 'PJ', 'Réf\x1b'] }),
  )
  const { code, out } = await importFec(file, '--drafts')
  expect(code).toBe(0)
  expect(out.split('\n').slice(6, 14)).toEqual([
    '7 entries without a validation date: awaiting validation',
    expect.stringContaining('1 on 404'),
    expect.stringContaining('401000FIT'),
    'Columns beyond the 18 of the standard, kept by name: ModeRglt, PJ, Réf\\x1b',
    '1 entry with a line in a foreign currency that is not shown: kept as filed',
    '1 line with a ModeRglt that is none of the six modes of payment: kept as filed, not shown',
    'Attachments of movements: 2',
    '11 times of day in ValidDate dropped',
  ])
})

test.each(['utf8', 'windows-1252', 'iso-8859-15', 'cp850'] as const)(
  'an import reads amounts and dates in other forms, and counts them (%s)',
  async (encoding) => {
    const blank = encoding === 'utf8' ? '\u202f' : '\u00a0'
    const forms: Record<string, string> = {
      ...{ '100,00': `1${blank}100,00`, '120,00': '1 120,00', '20,00': '20,00', '-60,00': '60,00-' },
      ...{ '500,00': '500,00', '20230101': '1/1/2023', '20230131': '31/1/2023', '20230301': '01/03/2023' },
    }
    const form = (value: string, column: string) => {
      if (/^(Debit|Credit)$/.test(column)) return forms[value] ?? value
      const [year, month, day] = [value.slice(0, 4), value.slice(4, 6), value.slice(6)]
      return column === 'EcritureDate' ? (forms[value] ?? `${day}/${month}/${year}`) : value
    }
    const file = await written('123456789FEC20231231.txt', fecFile(ledger, { encoding, write: form }))
    const { code, out, error } = await importFec(file)
    expect([code, error]).toEqual([0, ''])
    const lines = out.split('\n')
    expect(lines[3]).toBe('Debit 5965.00, credit 5965.00')
    expect(lines.slice(lines.findIndex((line) => line.includes('401000FIT')) + 1, lines.indexOf(''))).toEqual(
      [
        '8 amounts with blanks between thousands, such as 1 500,00',
        '2 amounts with the minus at the end, such as 1,00-',
        '6 dates in EcritureDate with a day or month of one digit, such as 5/1/2025',
      ],
    )
  },
)

test('an import says which columns it took for those of the regulation, and how many lines it read without quotes', async () => {
  const names: Record<string, string> = { JournalLib: 'JournalLibelle', CompteLib: 'CompteLibelle' }
  Object.assign(names, { CompAuxLib: 'CompAuxLibelle', EcritureLet: 'lettragepiece', Idevise: 'CodeDevise' })
  const nameOf = (column: string) => names[column] ?? column
  const file = await written(
    '123456789FEC20231231.txt',
    fecFile(ledger, { nameOf, ...forms['quotes in all lines but the first'] }),
  )
  const { code, out } = await importFec(file)
  expect(code).toBe(0)
  expect(out.split('\n')).toContain('27 lines with all fields in quotes, read without them')
  expect(out.split('\n')).toContain(
    'Columns under another name: JournalLibelle is JournalLib, CompteLibelle is CompteLib, ' +
      'CompAuxLibelle is CompAuxLib, lettragepiece is EcritureLet, CodeDevise is Idevise',
  )
  // Beside the column itself such a name is that of another one.
  const further = fecFile(ledger, { columns: [...columns, 'CompteLibelle'] })
  const kept = await importFec(await written('987654321FEC20231231.txt', further))
  expect(kept.out).toContain('Columns beyond the 18 of the standard, kept by name: CompteLibelle\n')
  expect(kept.out).not.toContain('another name')
})

test('an import says which text decides its encoding, and --encoding decides otherwise', async () => {
  // Without other accents: boxes of CP850 would leave no doubt.
  const plain = ledger.map((row) => ({
    ...row,
    ...{ JournalLib: 'J', CompteLib: 'C', CompAuxLib: 'A', EcritureLib: 'L' },
  }))
  const rows = plain.with(5, { ...plain[5]!, EcritureLib: 'LOYER – MARS' })
  const file = await written('123456789FEC20231231.txt', fecFile(rows, { encoding: 'windows-1252' }))
  const detected = await importFec(file)
  expect(detected).toMatchObject({ code: 0, out: expect.stringContaining('read as windows-1252 in') })
  expect(detected.out).toContain(
    'Read as windows-1252: line 7 has "LOYER – MARS", which as cp850 would be "LOYER û MARS"; --encoding decides otherwise',
  )
  const named = await importFec(file, '--replace', '--encoding', 'cp850')
  expect(named).toMatchObject({ code: 0, out: expect.stringContaining('read as cp850 in') })
  expect(named.out).not.toContain('LOYER')
  const { rows: found } = await client.query(
    `select description from grandlivre.movements where description like 'LOYER%'`,
  )
  expect(found).toEqual([{ description: 'LOYER û MARS' }])
  const refused = await importFec(file, '--replace', '--encoding', 'utf-8')
  expect(refused).toMatchObject({ code: 1, out: '' })
  expect(refused.error).toContain(
    'line 7, EcritureLib "LOYER – MARS": text in utf-8 is expected, as --encoding says',
  )
  const unknown = await importFec(file, '--encoding', 'latin1')
  expect(unknown.code).toBe(1)
  expect(unknown.error).toMatch(/--encoding takes utf-8, windows-1252, iso-8859-15, cp850, not "latin1"/)
})

test('the problems of a refused file are on stderr, one per line, with exit code 1', async () => {
  const file = await written('123456789FEC20231231.txt', fecFile(changed(5, 'Debit', '20,0O')))
  const { code, out, error } = await importFec(file)
  expect([code, out]).toEqual([1, ''])
  expect(error).toMatch(/^The file was not imported: 1 problem\n {2}line 7, Debit "20,0O": an amount .+\n$/)
  expect(await importFec(join(folder, 'none.txt'))).toEqual({
    code: 1,
    out: '',
    error: `There is no file ${join(folder, 'none.txt')}\n`,
  })
})

test.each([
  ['an import', ['import', 'fec']],
  ['a seed', ['seed', '--movements', '100']],
])('%s, interrupted after its commit, has printed what it loaded', async (_, words) => {
  const file = await written('123456789FEC20231231.txt', fecFile(ledger))
  // Blocks the step after the commit: the statistics.
  await client.query('begin; lock table grandlivre.accounts in share update exclusive mode')
  const run = startCli(database.ownerUrl, ...words, ...(words[0] === 'import' ? [file] : []))
  await until(() => run.soFar.out.includes('Exercice') || run.child.exitCode !== null)
  run.child.kill('SIGINT')
  expect(await run.ended).toMatchObject({ code: 130, out: expect.stringMatching(/^Folder \d+/) })
  await client.query('rollback')
  expect((await client.query('select from grandlivre.movements limit 1')).rowCount).toBe(1)
})
