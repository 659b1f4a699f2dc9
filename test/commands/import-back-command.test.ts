/** The commands `import mad` and `import tra`: what they print, on which stream, and their exit codes. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CommandResult, cli } from '../support/cli.ts'
import { fixturePath, readFixture } from '../support/fixtures/fixture-files.ts'
import { type ImportStage, setImportStage } from '../support/imports/import-stage.ts'

let stage: ImportStage

beforeEach(async () => {
  stage = await setImportStage()
})

afterEach(() => stage.close())

async function run(...words: string[]): Promise<CommandResult> {
  const ran = await cli(stage.database.ownerUrl, 'import', ...words)
  // A slow import also prints its progress.
  return { ...ran, error: ran.error.replace(/^(?:reading|loading): .*\n/gm, '') }
}

async function ids() {
  const { rows } = await stage.owner.query(
    `select f.id, f.firm_id, array_agg(x.id::text order by x.start_date) as exercices from grandlivre.folders f
     join grandlivre.exercices x on x.folder_id = f.id group by f.id, f.firm_id order by f.id desc limit 1`,
  )
  return rows[0]
}

test('import mad prints folder, exercices, counts, sums, what it left out, and the next steps', async () => {
  const { code, out, error } = await run('mad', fixturePath('ledger.mad.json'))
  expect([code, error]).toEqual([0, ''])
  const { id, firm_id, exercices } = await ids()
  expect(out.split('\n')).toEqual([
    `Folder ${id} (Brûlerie Noël, new), firm ${firm_id}`,
    `Exercice ${exercices[0]}, 2023-01-01 to 2023-12-31`,
    `Exercice ${exercices[1]}, 2024-01-01 to 2024-12-31`,
    expect.stringMatching(/^45 movements in 18 entries, 24 accounts, 7 journals in [0-9.]+ s$/),
    'Debit 4790.15, credit 4790.15',
    'Entries that await validation: 1',
    'Entries whose sender is not registered here, now without one: 1',
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

test('import mad applies its options, and refuses those that do not fit', async () => {
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

test('import mad --replace says what it wrote of entries, and of what they refer to', async () => {
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

test('the problems of a refused file are on stderr, one per line, with exit code 1', async () => {
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

test('import tra prints folder, exercices, counts and sums, and replaces a folder on demand', async () => {
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
