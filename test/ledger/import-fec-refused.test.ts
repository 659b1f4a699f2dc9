/** import fec: a refused file changes nothing; an existing ledger is replaced only on request. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { FecError } from '../../src/formats/fec/fields.ts'
import { importFec } from '../../src/ledger/fec/import-fec.ts'
import { forEachTest } from '../support/for-tests.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { changed, fecFile, ledger, refusals, refusedField } from '../support/ledgers/fec-file.ts'
import { ledgerContent, rowCounts } from '../support/ledgers/ledger-content.ts'
import { lockWaits } from '../support/ledgers/lock-waits.ts'
import { until } from '../support/until.ts'

const stage = forEachTest(setImportStage)

const nextYear = ledger.map((row) => ({
  ...row,
  EcritureDate: row['EcritureDate']!.replace(/^2023/, '2024'),
}))

const later: typeof refusals = {
  ...refusals,
  'a line before the fiscal year': refusedField(7, 'EcritureDate', '20221231'),
  'a line after the fiscal year': refusedField(0, 'EcritureDate', '20240101'),
  'an account without a digit': refusedField(7, 'CompteNum', '--'),
  'totals that differ': {
    file: fecFile(changed(7, 'Credit', '240,01')),
    line: 28,
    column: 'total',
    value: 'debit 1965.00, credit 1965.01',
  },
  ...Object.fromEntries(
    ['81', '8D', '8F', '90', '9D'].map((byte) => [
      `a byte that the encoding of its words does not have: ${byte}`,
      {
        file: Buffer.from(
          fecFile(changed(7, 'EcritureLib', 'Réglé: M?LLER'), { encoding: 'windows-1252' })
            .toString('latin1')
            .replace('?', String.fromCharCode(Number.parseInt(byte, 16))),
          'latin1',
        ),
        ...{ line: 9, column: 'EcritureLib', value: 'Réglé: M\ufffdLLER' },
      },
    ]),
  ),
}

test('a refused file leaves no rows, not even a folder', async () => {
  const nothing = await rowCounts(stage.owner)
  for (const [name, { file, line, column, value }] of Object.entries(later)) {
    const error = await stage.importFile(file).catch((refused: unknown) => refused)
    expect(error, name).toBeInstanceOf(FecError)
    expect((error as FecError).problems[0], name).toMatchObject({ line, column, value })
    expect((error as FecError).message, name).toContain(`line ${line}, ${column}`)
  }
  // Refused by the database itself, halfway through the load.
  await stage.owner.query(`alter table grandlivre.movements add check (description <> 'Frais')`)
  await expect(stage.importRows(ledger)).rejects.toThrow('violates check constraint')
  expect(await rowCounts(stage.owner)).toEqual(nothing)
  expect(Object.values(nothing).every((count) => count === 0)).toBe(true)
})

test.each<[string, (file: string) => void]>([
  ['grows', (file) => appendFileSync(file, fecFile(ledger.slice(16, 18)).subarray(fecFile([]).length))],
  ['gets another text', (file) => writeFileSync(file, fecFile(changed(5, 'EcritureLib', 'Xxxx')))],
])('a file that %s between its check and its load is not loaded', async (_, change) => {
  const file = join(await mkdtemp(join(tmpdir(), 'grandlivre-fec-')), '123456789FEC20231231.txt')
  await writeFile(file, fecFile(ledger))
  // The load waits for this lock once the check has read the file to its end.
  const holder = await stage.owner.connect()
  await holder.query('begin')
  await holder.query('lock table grandlivre.folders in access exclusive mode')
  const imported = importFec(stage.owner, { file }).catch((error: unknown) => error)
  await until(async () => (await lockWaits(holder, 'folders')) === 1)
  change(file)
  await holder.query('commit')
  holder.release()
  expect(await imported).toMatchObject({
    message: 'The file changed while it was imported: nothing was loaded, import it again',
  })
  expect(await rowCounts(stage.owner)).toMatchObject({ folders: 0, entries: 0, movements: 0 })
  await rm(dirname(file), { recursive: true })
})

test('a ledger is replaced only on request, and a refused replacement leaves it', async () => {
  const first = await stage.importRows(ledger)
  const content = await ledgerContent(stage.owner, first.folderId)
  await stage.expectRefused(
    () => stage.importRows(ledger),
    `Folder ${first.folderId} (123456789FEC20231231) already holds a ledger for 2023-01-01 to 2023-12-31. Import with --replace`,
  )

  await expect(stage.importFile(later['totals that differ']!.file, { replace: true })).rejects.toThrow(
    FecError,
  )
  expect(await ledgerContent(stage.owner, first.folderId)).toEqual(content)
})

test('the next year joins the same folder, accounts and journals; overlapping years are refused', async () => {
  const first = await stage.importRows(ledger)
  const before = await rowCounts(stage.owner)
  const next = await stage.importRows(nextYear, { file: '123456789FEC20241231.txt' })
  expect(next.folderId).toBe(first.folderId)
  const both = { ...before, exercices: 2, entries: 22, movements: 54 }
  expect(await rowCounts(stage.owner)).toEqual(both)

  await expect(
    stage.importRows(nextYear, { file: '123456789FEC20241231.txt', start: '2023-12-31', replace: true }),
  ).rejects.toThrow(`folder ${first.folderId} already has the exercice 2023-01-01 to 2023-12-31`)
  // Replacing one year leaves the other.
  await stage.importRows(nextYear, { file: '123456789FEC20241231.txt', replace: true })
  expect(await rowCounts(stage.owner)).toEqual(both)
})

test('a closed exercice is not replaced', async () => {
  await stage.importRows(ledger)
  await stage.owner.query('update grandlivre.exercices set closed_at = now()')
  await expect(stage.importRows(ledger, { replace: true })).rejects.toThrow(
    'a closed exercice cannot be changed',
  )
})

test('options set the name, company and year that the file name lacks, and invalid options are refused', async () => {
  await expect(stage.importRows(ledger, { end: '2023-02-30' })).rejects.toThrow('--end must be a day')
  await expect(stage.importRows(ledger, { start: '2024-01-01' })).rejects.toThrow('must end after it starts')
  await expect(stage.importRows(ledger, { start: '2021-12-31' })).rejects.toThrow('more than 24 months')
  await expect(stage.importRows(ledger, { siren: '12345' })).rejects.toThrow('--siren must be 9 digits')
  for (const folderId of ['77', '9007199254740992', '7'.repeat(17), 'x'])
    await expect(stage.importRows(ledger, { folderId })).rejects.toThrow(`There is no folder ${folderId}`)
  await expect(importFec(stage.owner, { file: import.meta.dirname, end: '2023-12-31' })).rejects.toThrow(
    'not a regular file',
  )

  const named = { file: 'export.txt', name: 'Café Noël', siren: '987654321', end: '2023-12-31' }
  const imported = await stage.importRows(ledger, named)
  expect(imported).toMatchObject({
    name: 'Café Noël',
    period: { start: '2023-01-01', end: '2023-12-31' },
  })
  // A folder given by id accepts any file that names no other company.
  const other = await stage.importRows(ledger, {
    file: 'b.txt',
    start: '2023-01-01',
    folderId: imported.folderId,
    replace: true,
  })
  expect(other).toMatchObject({ folderId: imported.folderId, period: { end: '2023-12-31' } })
})

test('a fiscal year taken from the file name begins twelve months before its end, leap years included', async () => {
  const pair = (day: string) => [16, 17].map((at) => ({ ...ledger[at]!, EcritureDate: day }))
  const imported = await stage.importRows(pair('20230301'), { file: '123456789FEC20240229.txt' })
  expect(imported.period).toEqual({ start: '2023-03-01', end: '2024-02-29' })
  const error = stage.importRows(pair('20230228'), { file: '123456780FEC20240229.txt' })
  await expect(error).rejects.toThrow(
    'line 2, EcritureDate "20230228": a day of the fiscal year 2023-03-01 to 2024-02-29',
  )
})

test('if most lines lie outside the fiscal year, a single problem names their range of dates', async () => {
  const error = await stage.importRows(ledger, { end: '2022-12-31' }).catch((refused: unknown) => refused)
  expect((error as FecError).problems).toEqual([
    {
      line: 2,
      column: 'EcritureDate',
      value: '20230101',
      message:
        'a day of the fiscal year 2022-01-01 to 2022-12-31 is expected, but 26 of 27 lines are dated outside it. ' +
        'The lines are dated 2023-01-31 to 2023-12-31: --start and --end set the fiscal year',
    },
  ])
  const few = [0, 5, 9].reduce(
    (rows, at) => rows.with(at, { ...rows[at]!, EcritureDate: '20240101' }),
    [...ledger],
  )
  const listed = await stage.importRows(few).catch((refused: unknown) => refused)
  expect((listed as FecError).problems.map(({ line }) => line)).toEqual([2, 7, 11])
})

test('the dates of the lines determine the fiscal year if only one fits; otherwise the error suggests options', async () => {
  const pair = (first: string, last: string) =>
    [first, first, last, last].map((day, at) => ({ ...ledger[16 + (at % 2)]!, EcritureDate: day }))
  // The opening line of 2022 does not count towards the year.
  const calendar = await stage.importRows(ledger, { file: 'books.txt' })
  expect(calendar).toMatchObject({
    period: { start: '2023-01-01', end: '2023-12-31' },
    isPeriodInferred: true,
    movedOpeningLines: 1,
  })
  const broken = await stage.importRows(pair('20230215', '20240105'), { file: 'broken.txt' })
  expect(broken.period).toEqual({ start: '2023-02-01', end: '2024-01-31' })
  expect(await stage.importRows(ledger)).toMatchObject({ isPeriodInferred: false })

  const before = await rowCounts(stage.owner)
  for (const [first, last, hint] of [
    ['20230110', '20230930', 'dated 2023-01-10 to 2023-09-30. Give .* --start 2023-01-01 --end 2023-12-31'],
    ['20231001', '20240630', '--start 2023-10-01 --end 2024-09-30'],
    ['20221005', '20231225', '--start 2022-10-01 --end 2023-12-31'],
    ['20200105', '20231225', 'Import a file for each year'],
  ] as const)
    await expect(stage.importRows(pair(first, last), { file: 'export.txt' })).rejects.toThrow(
      new RegExp(hint),
    )
  // Errors in the lines are reported first.
  await expect(stage.importRows(changed(5, 'Debit', '20,0O'), { file: 'export.txt' })).rejects.toThrow(
    'line 7, Debit "20,0O"',
  )
  expect(await rowCounts(stage.owner)).toEqual(before)
})

test('a file joins no existing folder if neither its name nor an option identifies its company', async () => {
  const first = await stage.importRows(ledger, { file: 'ledger.txt' })
  const before = await rowCounts(stage.owner)
  const hint = `If it does, give --folder ${first.folderId}; if not, give the --siren`
  await expect(stage.importRows(nextYear, { file: 'ledger.txt' })).rejects.toThrow(hint)
  await expect(stage.importRows(ledger, { file: 'ledger.txt', replace: true })).rejects.toThrow(hint)
  expect(await rowCounts(stage.owner)).toEqual(before)
  await expect(stage.importRows(ledger, { file: 'ledger.txt', folderId: first.folderId })).rejects.toThrow(
    '--replace',
  )
  expect(await stage.importRows(nextYear, { file: 'ledger.txt', folderId: first.folderId })).toMatchObject({
    folderId: first.folderId,
    created: false,
  })

  // A given name settles it, and each name is a folder.
  const [one, two] = [
    await stage.importRows(ledger, { file: 'ledger.txt', name: 'Un' }),
    await stage.importRows(ledger, { file: 'ledger.txt', name: 'Deux' }),
  ]
  expect(new Set([first.folderId, one.folderId, two.folderId]).size).toBe(3)
  await expect(stage.importRows(ledger, { file: 'ledger.txt', name: 'Un' })).rejects.toThrow(
    `Folder ${one.folderId} (Un) already holds a ledger`,
  )

  // Digits that are not a SIREN identify the ledger next time, unless the given name differs; zeros identify
  // no company.
  const numbered = await stage.importRows(ledger, { file: '17FEC20231231.txt' })
  expect((await stage.importRows(nextYear, { file: '17FEC20241231.txt' })).folderId).toBe(numbered.folderId)
  await expect(
    stage.importRows(ledger, { file: '17FEC20231231.txt', name: 'Autre', replace: true }),
  ).rejects.toThrow('give the --siren of its company')
  const zeros = await stage.importRows(ledger, { file: '000000000FEC20231231.txt' })
  await expect(stage.importRows(ledger, { file: '000000000FEC20231231.txt' })).rejects.toThrow('--replace')
  expect((await stage.importRows(nextYear, { file: '000000000FEC20241231.txt' })).folderId).not.toBe(
    zeros.folderId,
  )
})

test('a company is identified by its SIREN, also within a SIRET, and its folder refuses other companies', async () => {
  const first = await stage.importRows(ledger, { file: 'a.txt', siren: '12345678900018' })
  await expect(stage.importRows(ledger)).rejects.toThrow(
    `Folder ${first.folderId} (a) already holds a ledger`,
  )
  const other = { file: '987654321FEC20231231.txt', folderId: first.folderId, replace: true }
  await expect(stage.importRows(ledger, other)).rejects.toThrow(
    `to the company 987654321, but folder ${first.folderId} (a) to 12345678900018. Give another --folder`,
  )
  expect(await stage.importRows(ledger, { ...other, siren: '123456789' })).toMatchObject({
    folderId: first.folderId,
  })
})

test.each([
  ['a new ledger', undefined],
  ['one folder by its id', '--folder'],
])('of two concurrent imports of %s, one is refused', async (_, byId) => {
  const folderId = byId && (await stage.importRows(ledger)).folderId
  const options = { file: '123456789FEC20241231.txt', ...(folderId && { folderId }) }
  const holder = await stage.owner.connect()
  await holder.query('begin; lock table grandlivre.entries in access exclusive mode')
  const both = Promise.allSettled([stage.importRows(nextYear, options), stage.importRows(nextYear, options)])
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  try {
    // Neither can commit before both have looked for an existing ledger.
    await expect.poll(async () => (await stage.owner.query(waiting)).rows.length, { timeout: 30_000 }).toBe(2)
  } finally {
    await holder.query('commit')
    holder.release()
  }
  const refused = (await both).filter((one) => one.status === 'rejected').map(({ reason }) => reason.message)
  expect(refused).toEqual([expect.stringContaining('already holds a ledger for 2024-01-01 to 2024-12-31')])
  expect(await rowCounts(stage.owner)).toMatchObject({ folders: 1, exercices: byId ? 2 : 1 })
})
