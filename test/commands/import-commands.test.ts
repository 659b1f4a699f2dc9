/** The import commands: what they print, on which stream, and their exit codes. */
import { expect, test } from 'vitest'
import { type CommandResult, cli, startCli } from '../support/cli.ts'
import { fixturePath, readFixture } from '../support/fixtures/fixture-files.ts'
import { forEachTest } from '../support/for-tests.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { changed, columns, type FecRow, fecFile, forms, ledger } from '../support/ledgers/fec-file.ts'
import { until } from '../support/until.ts'

const stage = forEachTest(setImportStage)

/** A FEC whose name has the SIREN and the end of the exercice. */
const writtenFec = (bytes: Buffer) => stage.written(bytes, '123456789FEC20231231.txt')

async function run(...words: string[]): Promise<CommandResult> {
  const ran = await cli(stage.database.ownerUrl, 'import', ...words)
  // A slow import also prints its progress.
  return { ...ran, error: ran.error.replace(/^(?:checking|reading|loading): .*\n/gm, '') }
}

async function ids() {
  const { rows } = await stage.owner.query(
    `select f.id, f.firm_id, array_agg(x.id::text order by x.start_date) as exercices from grandlivre.folders f
     join grandlivre.exercices x on x.folder_id = f.id group by f.id, f.firm_id order by f.id desc limit 1`,
  )
  return rows[0]
}

/** The newest row of the audit. */
async function lastAct() {
  const { rows } = await stage.owner.query(
    'select act, details::json as details from grandlivre.audit_rows order by number desc limit 1',
  )
  return rows[0]
}

test('an import prints folder, fiscal year, counts and sums, applies its options, and is recorded in the audit', async () => {
  const file = await stage.written(fecFile(ledger), 'books.txt')
  const named = ['--siren', '123456789', '--name', 'Café', '--start', '2023-01-01', '--end', '2023-12-31']
  const { code, out, error } = await run('fec', file, ...named)
  expect([code, error]).toEqual([0, ''])
  const { id, firm_id, exercices } = await ids()
  expect(out.split('\n').slice(0, 9)).toEqual([
    `Folder ${id} (Café, new), firm ${firm_id}`,
    `Exercice ${exercices[0]}, 2023-01-01 to 2023-12-31`,
    expect.stringMatching(/^27 lines in 11 entries, 16 accounts, 5 journals, read as utf-8 in [0-9.]+ s$/),
    'Debit 1965.00, credit 1965.00',
    '6 lettered lines: 4 complete, 2 partial',
    'Opening lines from before 2023-01-01, dated on that day: 1',
    '7 entries without a validation date: taken as validated on their own date; --drafts keeps them apart',
    'Lines whose auxiliary stays with the movement, since only 401, 411 and 421 have accounts of third parties: 1 on 404',
    '1 account could not get the number of the file: 401000 F.IT is 401000FIT',
  ])
  const details = { exerciceId: exercices[0], lines: 27, replace: false }
  expect(await lastAct()).toEqual({ act: 'import fec', details })
  expect((await run('fec', file, '--folder', id, '--name', 'X')).error).toBe(
    '--folder names an existing folder, --name a new one: give only one of them\n',
  )
  const again = await run('fec', file, '--folder', id)
  expect(again).toMatchObject({ code: 1, out: '', error: expect.stringMatching(/Import with --replace to/) })
  await stage.owner.query(`update grandlivre.folders set name = 'Ca' || chr(27) || '[31mfé'`)
  const replaced = await run('fec', file, '--folder', id, '--replace')
  expect(replaced.code).toBe(0)
  expect(replaced.out).toMatch(/^Folder \d+ \(Ca\\x1b\[31mfé\), firm /)
  expect(replaced.out.split('\n')[5]).toBe(
    'Replaced what differs: 0 entries and 0 movements new, 0 entries and 0 movements changed, 0 entries and 0 movements deleted',
  )
  await stage.owner.query(
    `update grandlivre.entries set source = 'E' where id in (select entry_id from grandlivre.movements
       where description = 'Paie de mars' or description = 'Beans')`,
  )
  const wages = await stage.written(fecFile(ledger.slice(16, 18)), 'wages.txt')
  const one = await run('fec', wages, ...named.slice(4), '--folder', id, '--replace')
  expect(one.out.split('\n').slice(5, 8)).toEqual([
    'Replaced what differs: 0 entries and 0 movements new, 1 entry and 0 movements changed, 10 entries and 25 movements deleted',
    'Entries that did not come from a FEC: 1 deleted, 1 overwritten by those of the file',
    '1 entry without a validation date: taken as validated on its own date; --drafts keeps it apart',
  ])
})

test('an import reports what it kept besides the movements, and with --drafts what awaits validation', async () => {
  const rows: FecRow[] = ledger.map((row) => ({
    ...row,
    ValidDate: row['ValidDate'] === '' ? '' : `${row['ValidDate']} 10:00`,
    PJ: '',
  }))
  rows[1]!['ModeRglt'] = 'troc'
  rows[10]!['Idevise'] = 'GBP'
  rows[0]!['PJ'] = 'https://files.example.com/a.pdf*https://files.example.com/b.pdf'
  const file = await writtenFec(fecFile(rows, { columns: [...columns, 'ModeRglt', 'PJ', 'Réf\x1b'] }))
  const { code, out } = await run('fec', file, '--drafts')
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
  'an import reads amounts and dates in non-standard forms, and counts them (%s)',
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
    const file = await writtenFec(fecFile(ledger, { encoding, write: form }))
    const { code, out, error } = await run('fec', file)
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

test('an import says which columns it took for standard ones, and how many lines had all fields in quotes', async () => {
  const names: Record<string, string> = { JournalLib: 'JournalLibelle', CompteLib: 'CompteLibelle' }
  Object.assign(names, { CompAuxLib: 'CompAuxLibelle', EcritureLet: 'lettragepiece', Idevise: 'CodeDevise' })
  const nameOf = (column: string) => names[column] ?? column
  const file = await writtenFec(fecFile(ledger, { nameOf, ...forms['quotes in all lines but the first'] }))
  const { code, out } = await run('fec', file)
  expect(code).toBe(0)
  expect(out.split('\n')).toContain('27 lines with all fields in quotes, read without them')
  expect(out.split('\n')).toContain(
    'Columns under another name: JournalLibelle is JournalLib, CompteLibelle is CompteLib, ' +
      'CompAuxLibelle is CompAuxLib, lettragepiece is EcritureLet, CodeDevise is Idevise',
  )
  // If the file also has the standard column, such a name means another column.
  const further = fecFile(ledger, { columns: [...columns, 'CompteLibelle'] })
  const kept = await run('fec', await stage.written(further, '987654321FEC20231231.txt'))
  expect(kept.out).toContain('Columns beyond the 18 of the standard, kept by name: CompteLibelle\n')
  expect(kept.out).not.toContain('another name')
})

test('an import shows the text that decided its encoding, and --encoding overrides it', async () => {
  // No other accents: read as CP850, some would become box-drawing characters, which would leave no doubt.
  const plain = ledger.map((row) => ({
    ...row,
    ...{ JournalLib: 'J', CompteLib: 'C', CompAuxLib: 'A', EcritureLib: 'L' },
  }))
  const rows = plain.with(5, { ...plain[5]!, EcritureLib: 'LOYER – MARS' })
  const file = await writtenFec(fecFile(rows, { encoding: 'windows-1252' }))
  const detected = await run('fec', file)
  expect(detected).toMatchObject({ code: 0, out: expect.stringContaining('read as windows-1252 in') })
  expect(detected.out).toContain(
    'Read as windows-1252: line 7 has "LOYER – MARS", which as cp850 would be "LOYER û MARS"; --encoding decides otherwise',
  )
  const named = await run('fec', file, '--replace', '--encoding', 'cp850')
  expect(named).toMatchObject({ code: 0, out: expect.stringContaining('read as cp850 in') })
  expect(named.out).not.toContain('LOYER')
  const { rows: found } = await stage.owner.query(
    `select description from grandlivre.movements where description like 'LOYER%'`,
  )
  expect(found).toEqual([{ description: 'LOYER û MARS' }])
  const refused = await run('fec', file, '--replace', '--encoding', 'utf-8')
  expect(refused).toMatchObject({ code: 1, out: '' })
  expect(refused.error).toContain(
    'line 7, EcritureLib "LOYER – MARS": text in utf-8 is expected, as --encoding says',
  )
  const unknown = await run('fec', file, '--encoding', 'latin1')
  expect(unknown.code).toBe(1)
  expect(unknown.error).toMatch(/--encoding takes utf-8, windows-1252, iso-8859-15, cp850, not "latin1"/)
})

test('the problems of a refused file are on stderr, one per line, with exit code 1', async () => {
  const file = await writtenFec(fecFile(changed(5, 'Debit', '20,0O')))
  const { code, out, error } = await run('fec', file)
  expect([code, out]).toEqual([1, ''])
  expect(error).toMatch(/^The file was not imported: 1 problem\n {2}line 7, Debit "20,0O": an amount .+\n$/)
  expect(await run('fec', '/none.txt')).toEqual({
    code: 1,
    out: '',
    error: 'There is no file /none.txt\n',
  })
})

test.each([
  ['an import', ['import', 'fec']],
  ['a seed', ['seed', '--movements', '100']],
])('%s that is interrupted after its commit has still printed what it loaded', async (_, words) => {
  const file = await writtenFec(fecFile(ledger))
  // Blocks the update of statistics, which follows the commit.
  const blocker = await stage.owner.connect()
  await blocker.query('begin; lock table grandlivre.accounts in share update exclusive mode')
  const run = startCli(stage.database.ownerUrl, ...words, ...(words[0] === 'import' ? [file] : []))
  await until(() => run.soFar.out.includes('Exercice') || run.child.exitCode !== null)
  run.child.kill('SIGINT')
  expect(await run.ended).toMatchObject({ code: 130, out: expect.stringMatching(/^Folder \d+/) })
  await blocker.query('rollback')
  blocker.release()
  expect((await stage.owner.query('select from grandlivre.movements limit 1')).rowCount).toBe(1)
})

test('import mad prints folder, exercices, counts, sums, what it left out and what to do next, and is recorded', async () => {
  const { code, out, error } = await run('mad', fixturePath('ledger.mad.json'))
  expect([code, error]).toEqual([0, ''])
  const { id, firm_id, exercices } = await ids()
  expect(await lastAct()).toEqual({ act: 'import mad', details: { movements: 45, replace: false } })
  expect(out.split('\n')).toEqual([
    `Folder ${id} (Brûlerie Noël, new), firm ${firm_id}`,
    `Exercice ${exercices[0]}, 2023-01-01 to 2023-12-31`,
    `Exercice ${exercices[1]}, 2024-01-01 to 2024-12-31`,
    expect.stringMatching(/^45 movements in 18 entries, 24 accounts, 7 journals in [0-9.]+ s$/),
    'Debit 4790.15, credit 4790.15',
    'Entries that await validation: 1',
    'Entries whose sender is not registered here, imported without a sender: 1',
    'What such a file does not hold: docs/spec/imports.md#mad-files',
    '',
    'Next, for a partner to read it:',
    '  npm run cli -- partner create --help',
    `  npm run cli -- token issue --partner <code> --level api --folder ${id}`,
    expect.stringContaining(`idExercice=${exercices[1]}`),
    expect.any(String),
    '',
  ])
})

test('import mad applies --name and --renumber, and refuses options that contradict each other', async () => {
  const file = fixturePath('ledger.mad.json')
  const named = await run('mad', file, '--name', 'Copie', '--renumber')
  expect(named.out).toMatch(/^Folder \d+ \(Copie, new\)/)
  const { id } = await ids()
  expect(await run('mad', file, '--folder', id, '--renumber')).toMatchObject({
    code: 1,
    out: '',
    error: expect.stringMatching(/has closed the exercice|already holds a ledger/),
  })
  expect(await run('mad', file, '--folder', id, '--name', 'X')).toEqual({
    code: 1,
    out: '',
    error: '--folder names an existing folder, --name a new one: give only one of them\n',
  })
  expect(await run('mad', file, '--replace')).toEqual({
    code: 1,
    out: '',
    error: '--replace replaces the ledger of a folder: name it by --folder\n',
  })
  expect((await run('mad', `${file}.none`)).error).toBe(`There is no file ${file}.none\n`)
})

test('import mad --replace reports how many entries, movements, accounts and journals it changed', async () => {
  const open = readFixture('ledger.mad.json')
    .toString()
    .replaceAll('"state":"closed"', '"state":"open"')
    .replaceAll(/"closed":\{"at":[^}]*\}\}/g, '"closed":null')
  await run('mad', await stage.written(open))
  const { id } = await ids()
  const replaced = async (text: string) => {
    const { out } = await run('mad', await stage.written(text), '--folder', id, '--replace')
    return out.split('\n').filter((line) => /^Replaced|books/.test(line))
  }
  const entries =
    'Replaced what differs: 0 entries and 0 movements new, 0 entries and 0 movements changed, 0 entries and 0 movements deleted'
  expect(await replaced(open)).toEqual([entries])
  expect(await replaced(open.replaceAll('"Clients douteux"', '"Clients en litige"'))).toEqual([
    entries,
    'Accounts, journals and other books that were new, changed or deleted: 1',
  ])
})

test('the problems of a refused MAD or TRA file are on stderr, with their places', async () => {
  const bad = readFixture('ledger.mad.json').toString().replace('"debit":12,', '"debit":"12",')
  expect(await run('mad', await stage.written(bad))).toEqual({
    code: 1,
    out: '',
    error: expect.stringMatching(
      /^The file was not imported: 1 problem\n {2}data\.entries\[\d+\]\.movements\[\d+\]\.value\.debit "12": an amount .+\n$/,
    ),
  })
  const cut = readFixture('ledger.tra').subarray(0, -10)
  expect(await run('tra', await stage.written(cut))).toEqual({
    code: 1,
    out: '',
    error: expect.stringMatching(/^The file was not imported: \d problems?\n {2}line \d+, column \d+/),
  })
})

test('import tra prints folder, exercices, counts and sums, and replaces a folder if asked to', async () => {
  const { code, out, error } = await run('tra', fixturePath('ledger.tra'), '--name', 'Copie')
  expect([code, error]).toEqual([0, ''])
  const { id, firm_id, exercices } = await ids()
  expect(out.split('\n').slice(0, 7)).toEqual([
    `Folder ${id} (Copie, new), firm ${firm_id}`,
    `Exercice ${exercices[0]}, 2023-01-01 to 2023-12-31`,
    `Exercice ${exercices[1]}, 2024-01-01 to 2024-12-31`,
    expect.stringMatching(/^45 movements in 18 entries, 24 accounts, 7 journals in [0-9.]+ s$/),
    'Debit 4790.15, credit 4790.15',
    'Entries that await validation: 1',
    'What such a file does not hold: docs/spec/imports.md#tra-files',
  ])
  await stage.owner.query('update grandlivre.exercices set closed_at = null')
  const again = await run('tra', fixturePath('ledger.tra'), '--folder', id, '--replace')
  expect(again.out).toMatch(
    new RegExp(
      `^Folder ${id} \\(Copie\\), firm .+\nThe folder keeps its own name.+ and currency \\(EUR\\)\n`,
    ),
  )
})
