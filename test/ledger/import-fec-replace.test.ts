/** import fec --replace: only what differs is written, and the ledger is what a fresh import would make of the file. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shrinking, tries } from '../support/changes/properties.ts'
import { forEachTest } from '../support/for-tests.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { changed, type FecRow, fecFile, ledger } from '../support/ledgers/fec-file.ts'
import { ledgerContent } from '../support/ledgers/ledger-content.ts'
import { keptFec, plainFec } from '../support/plain/plain-fec.ts'

const stage = forEachTest(setImportStage)

/** Random histories of a file; `npm run long -- random` tries 20. */
const rounds = Number(process.env['RANDOM_ROUNDS'] ?? 2)

interface Written {
  version: string
  /** By id: the transaction that wrote the row, and some of its columns. */
  entries: Map<string, string>
  movements: Map<string, string>
  events: string[]
}

async function written(): Promise<Written> {
  const byId = async (text: string) =>
    new Map((await stage.owner.query(text)).rows.map(({ id, ...row }) => [id, Object.values(row).join(' ')]))
  const { rows } = await stage.owner.query('select ledger_version as version from grandlivre.folders')
  const events = await stage.owner.query(
    `select name || ' ' || operation as event from grandlivre.events order by id`,
  )
  return {
    version: rows[0].version,
    entries: await byId('select id, xmin, created_at, number, date from grandlivre.entries order by id'),
    movements: await byId('select id, xmin, place, description from grandlivre.movements order by id'),
    events: events.rows.map(({ event }) => event),
  }
}

/** Ids of the rows that are in `after` alone, in `before` alone, and in both but rewritten. */
function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>) {
  const ids = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>) =>
    [...one.keys()].filter((id) => !other.has(id))
  const changedIds = [...after.keys()].filter((id) => before.has(id) && before.get(id) !== after.get(id))
  return { added: ids(after, before), removed: ids(before, after), changed: changedIds }
}

/** Numbered throughout, so that the file identifies every entry. */
const numbered: FecRow[] = ledger.map((row, at) =>
  row['JournalCode'] === 'CRA'
    ? { ...row, EcritureNum: `B${[18, 20, 22, 24].findLast((first) => first <= at)}` }
    : row,
)

/** Two entries that do not balance: one lacks the euro that the other has too much. */
const unbalanced: FecRow[] = [16, 17, 16, 17].map((at, place) => ({
  ...ledger[at]!,
  EcritureDate: place < 2 ? '20230301' : '20230302',
  ...(place === 0 && { Debit: '251,00' }),
  ...(place === 2 && { Debit: '249,00' }),
}))

/** Imports one file over another. @returns what the second import wrote */
async function replaced(former: FecRow[], rows: FecRow[]) {
  await stage.importRows(former)
  // A time that differs from that of the import.
  await stage.owner.query(`update grandlivre.entries set created_at = '2024-01-01 00:00Z'`)
  await stage.owner.query('truncate grandlivre.events')
  const before = await written()
  const imported = await stage.importRows(rows, { replace: true })
  const after = await written()
  expect(await keptFec(stage.owner, imported.exerciceId)).toEqual(plainFec(fecFile(rows)))
  const entries = differences(before.entries, after.entries)
  const movements = differences(before.movements, after.movements)
  const { inserted, updated, deleted } = imported.replacement!
  expect([inserted, updated, deleted].map((rows) => [rows.entries, rows.movements])).toEqual(
    (['added', 'changed', 'removed'] as const).map((what) => [entries[what].length, movements[what].length]),
  )
  return { imported, before, after, entries, movements }
}

const nothing = { added: [], removed: [], changed: [] }

test.each([
  ['numbered', numbered],
  ['partly unnumbered', [...ledger]],
  ['scattered', numbered.toReversed()],
  ['numbered on the second line alone', numbered.with(16, { ...numbered[16]!, EcritureNum: '' })],
  ['without numbers or balance', unbalanced.map((row) => ({ ...row, EcritureNum: '' }))],
])('replacing a ledger with the same file writes nothing: %s', async (_, rows) => {
  const { before, after, entries, movements } = await replaced(rows, rows)
  expect([entries, movements]).toEqual([nothing, nothing])
  expect(after.version).toBe(before.version)
  expect(after.events).toEqual([])
})

test.each([
  ['of the ledger', numbered, numbered.with(5, { ...numbered[5]!, EcritureLib: 'Corrigé' }), 'Corrigé'],
  ['that is kept as filed', [...ledger], changed(0, 'DateLet', '20230301'), 'Report'],
])('a line with a changed field %s updates one row, which keeps its id', async (_, former, rows, text) => {
  const { before, after, entries, movements } = await replaced(former, rows)
  expect(entries).toEqual(nothing)
  expect(movements).toMatchObject({ added: [], removed: [] })
  expect(movements.changed.map((id) => after.movements.get(id))).toEqual([expect.stringContaining(text)])
  expect(after.events).toEqual(['ledger UPDATE'])
  expect(after.version).not.toBe(before.version)
})

test('an entry keeps its id when its amounts and its own fields change', async () => {
  const rows = [16, 17].reduce(
    (all, at) =>
      all.with(at, {
        ...all[at]!,
        ...(at === 16 ? { Debit: '260,00' } : { Credit: '260,00' }),
        ValidDate: '20230430',
        PieceDate: '20230330',
      }),
    numbered,
  )
  const { after, entries, movements } = await replaced(numbered, rows)
  expect(entries).toMatchObject({ added: [], removed: [] })
  expect(entries.changed.map((id) => after.entries.get(id))).toEqual([
    expect.stringMatching(/2024.* 1 .*2023/),
  ])
  expect([movements.added.length, movements.removed.length, movements.changed.length]).toEqual([2, 2, 0])
  expect(after.events).toEqual(['ledger UPDATE'])
})

test('lines inserted in the middle get places between their neighbours, and only the new entry gets an event', async () => {
  const entry = [16, 17].map((at) => ({ ...numbered[at]!, EcritureNum: '2', EcritureLib: 'Prime' }))
  const { imported, after, entries, movements } = await replaced(numbered, numbered.toSpliced(5, 0, ...entry))
  expect(entries).toMatchObject({ added: [expect.anything()], removed: [], changed: [] })
  expect(movements).toMatchObject({ removed: [], changed: [] })
  expect(movements.added).toHaveLength(2)
  expect(after.events).toEqual(['accountingLineEntry CREATE', 'ledger UPDATE'])
  expect(imported.isScattered).toBe(true)
  // New lines after all others need no place.
  const last = await stage.importRows(
    [...numbered.toSpliced(5, 0, ...entry), ...entry.map((row) => ({ ...row, EcritureNum: '3' }))],
    {
      replace: true,
    },
  )
  const { rows } = await stage.owner.query('select count(place)::int as placed from grandlivre.movements')
  expect(rows).toEqual([{ placed: 2 }])
  expect(last.replacement).toMatchObject({
    inserted: { entries: 1, movements: 2 },
    updated: { movements: 0 },
  })
})

test('only a line that moved within the file is written, with a place between its new neighbours', async () => {
  const rows = numbered.toSpliced(3, 1).toSpliced(20, 0, numbered[3]!)
  const { imported, entries, movements, after } = await replaced(numbered, rows)
  expect(entries).toEqual(nothing)
  expect(movements).toMatchObject({ added: [], removed: [] })
  expect(movements.changed).toHaveLength(1)
  expect(imported.isScattered).toBe(true)
  expect(after.events).toEqual(['ledger UPDATE'])
  // The line moves back. It now has a place, which gives the same order as its id.
  const back = await stage.importRows(numbered, { replace: true })
  expect(back).toMatchObject({ isScattered: false, replacement: { updated: { movements: 1 } } })
  expect(await keptFec(stage.owner, back.exerciceId)).toEqual(plainFec(fecFile(numbered)))
})

test('an entry missing from the new file is removed, and another day or number makes another entry', async () => {
  const gone = await replaced(
    numbered,
    numbered.filter((row) => row['JournalCode'] !== 'PA'),
  )
  expect(gone.entries).toMatchObject({ added: [], removed: [expect.anything()], changed: [] })
  expect(gone.movements.removed).toHaveLength(2)
  expect(gone.after.events).toEqual(['ledger UPDATE'])
  const other = await stage.importRows(
    numbered.map((row) => (row['JournalCode'] === 'PA' ? { ...row, EcritureDate: '20230330' } : row)),
    { replace: true },
  )
  expect(other.replacement).toMatchObject({ inserted: { entries: 1 }, deleted: { entries: 0 } })
  const numberedAnew = await stage.importRows(
    numbered.map((row) =>
      row['JournalCode'] === 'PA' ? { ...row, EcritureDate: '20230330', EcritureNum: '7' } : row,
    ),
    { replace: true },
  )
  expect(numberedAnew.replacement).toMatchObject({ inserted: { entries: 1 }, deleted: { entries: 1 } })
})

test('entries from other sources are counted, whether they are matched with the file or deleted', async () => {
  await stage.importRows(numbered)
  await stage.owner.query(`update grandlivre.entries set source = 'E' where number in ('8', '9', 'B20')`)
  const rows = numbered.filter((row) => row['EcritureNum'] !== 'B20')
  const counted = async () => (await stage.importRows(rows, { replace: true })).replacement!.otherSources
  expect(await counted()).toEqual({ overwritten: 2, removed: 1 })
  expect(await counted()).toEqual({ overwritten: 0, removed: 0 })
})

test('an entry without a number keeps its id as long as its content is unchanged', async () => {
  const bank = ledger.map((row, at) => (at < 18 || at > 21 ? row : { ...row, EcritureNum: '' }))
  const rows = bank.map((row, at) => (at > 1 && at < 22 && at > 19 ? { ...row, EcritureLib: 'Autre' } : row))
  const { entries, movements, after } = await replaced(bank, rows)
  expect([entries.added.length, entries.removed.length, entries.changed.length]).toEqual([1, 1, 0])
  expect([movements.added.length, movements.removed.length, movements.changed.length]).toEqual([2, 2, 0])
  // The lettering of the removed entry's line begins elsewhere now.
  expect(after.events.filter((event) => event.startsWith('accountingLine'))).toHaveLength(1)
})

test('entries that an earlier version imported without numbers get them and keep their ids', async () => {
  await stage.importRows(numbered)
  await stage.owner.query(`alter table grandlivre.entries disable trigger user;
    update grandlivre.entries set number = null, filed = null; update grandlivre.movements set filed = null;
    alter table grandlivre.entries enable trigger user`)
  await stage.owner.query('truncate grandlivre.events')
  const before = await written()
  const imported = await stage.importRows(numbered, { replace: true })
  const after = await written()
  expect([...after.entries.keys()]).toEqual([...before.entries.keys()])
  expect([...after.movements.keys()]).toEqual([...before.movements.keys()])
  expect(after.events).toEqual(['ledger UPDATE'])
  expect(await keptFec(stage.owner, imported.exerciceId)).toEqual(plainFec(fecFile(numbered)))
})

/** The SIREN of the last company that `importFresh` created. */
let companies = 100_000_000
function importFresh(rows: FecRow[], drafts = false) {
  companies += 1
  return stage.importRows(rows, { drafts, file: `${companies}FEC20231231.txt` })
}

const entryOf = (number: number): FecRow[] =>
  [16, 17].map((at) => ({ ...ledger[at]!, EcritureNum: String(number), EcritureLib: `Écriture ${number}` }))

/** Changes of the entry at the place `at`. */
const entryChanges: Record<string, (entries: FecRow[][], at: number, number: number) => FecRow[][]> = {
  remove: (entries, at) => entries.toSpliced(at, 1),
  insert: (entries, at, number) => entries.toSpliced(at, 0, entryOf(1_000 + number)),
  move: (entries, at, number) => entries.toSpliced(at, 1).toSpliced(number % entries.length, 0, entries[at]!),
  reverse: (entries, at) => entries.with(at, entries[at]!.toReversed()),
  correct: (entries, at, number) =>
    entries.with(
      at,
      entries[at]!.map((row) => ({ ...row, DateLet: '20231231', PieceRef: `P${number}` })),
    ),
}
const entryHistory = fc.array(
  fc.record({
    changes: fc.array(
      fc.record({
        kind: fc.constantFrom(...Object.keys(entryChanges)),
        at: fc.nat({ max: 30 }),
        number: fc.nat({ max: 100_000 }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    /** Whether the lines are in the order of their accounts, so that entries are scattered over the file. */
    byAccount: fc.boolean(),
  }),
  { minLength: 1, maxLength: 3, size: 'max' },
)

test('after any changes to the file, the ledger equals a fresh import', async () => {
  const property = fc.asyncProperty(
    entryHistory,
    shrinking(async (history) => {
      let entries = Array.from({ length: 40 }, (_, number) => entryOf(number))
      await stage.importRows(entries.flat(), { replace: true })
      for (const { changes, byAccount } of history) {
        const former = await written()
        for (const { kind, at, number } of changes) entries = entryChanges[kind]!(entries, at, number)
        const rows = byAccount
          ? entries.flat().toSorted((one, other) => (one['CompteNum']! < other['CompteNum']! ? -1 : 1))
          : entries.flat()
        const imported = await stage.importRows(rows, { replace: true })
        expect(await keptFec(stage.owner, imported.exerciceId)).toEqual(plainFec(fecFile(rows)))
        const fresh = await importFresh(rows)
        expect(await ledgerContent(stage.owner, imported.folderId)).toEqual(
          await ledgerContent(stage.owner, fresh.folderId),
        )
        const { rows: found } = await stage.owner.query(
          'select id from grandlivre.entries where folder_id = $1',
          [imported.folderId],
        )
        const kept = found.filter(({ id }) => former.entries.has(id)).length
        expect(kept).toBeGreaterThanOrEqual(found.length - 3)
      }
    }),
  )
  await fc.assert(property, tries(rounds))
})

const oneOf = (...values: string[]) => fc.constantFrom(...values)

/** A line that may lack a number, a day or a balance, and may belong to any other line's entry. */
const anyLine: fc.Arbitrary<FecRow> = fc
  .tuple(
    fc.constantFrom(
      ...['20220105', '20230101'].map((day) => ['AN', 'À nouveaux', day] as const),
      ...['20230105', '20230106'].map((day) => ['HA', 'Achats', day] as const),
      ...['20230105', '20230106'].map((day) => ['BQ', 'Banque', day] as const),
    ),
    fc.constantFrom(
      { CompteNum: '411000', CompteLib: 'Clients', CompAuxNum: 'A', CompAuxLib: 'Alpha' },
      { CompteNum: '411000', CompteLib: 'Clients' },
      { CompteNum: '607000', CompteLib: 'Achats' },
      { CompteNum: '607000', CompteLib: 'Achats', CompAuxNum: 'Z' },
      { CompteNum: '512000', CompteLib: 'Banque' },
    ),
    fc.tuple(fc.boolean(), oneOf('0,00', '1,00', '2,00')),
    fc.record({
      ...{
        EcritureNum: oneOf('', '0', '1', '2'),
        PieceRef: oneOf('', 'P'),
        PieceDate: oneOf('', '20230102'),
      },
      ...{ ValidDate: oneOf('', '20230131'), EcritureLet: oneOf('', 'A') },
      ...{ Montantdevise: oneOf('', '-1,5'), Idevise: oneOf('', 'USD', 'EUR') },
    }),
  )
  .map(([[JournalCode, JournalLib, EcritureDate], account, [isDebit, amount], others]) => ({
    ...{ JournalCode, JournalLib, EcritureDate, ...account, ...others },
    ...(isDebit ? { Debit: amount, Credit: '0,00' } : { Debit: '0,00', Credit: amount }),
  }))

function withBalance(rows: FecRow[], last: FecRow): FecRow[] {
  const units = (row: FecRow) => Number.parseInt(row['Debit']!, 10) - Number.parseInt(row['Credit']!, 10)
  const sum = rows.reduce((total, row) => total + units(row), 0)
  return [...rows, { ...last, Debit: `${Math.max(-sum, 0)},00`, Credit: `${Math.max(sum, 0)},00` }]
}

/** Changes of the line at the place `at`. */
const lineChanges: Record<string, (rows: FecRow[], at: number, to: number, line: FecRow) => FecRow[]> = {
  remove: (rows, at) => rows.toSpliced(at, 1),
  insert: (rows, at, _, line) => rows.toSpliced(at, 0, line),
  replace: (rows, at, _, line) => rows.with(at, line),
  move: (rows, at, to) => rows.toSpliced(at, 1).toSpliced(to, 0, rows[at]!),
  reverse: (rows) => rows.toReversed(),
}
const place = fc.nat({ max: 11 })
const lineHistory = fc.array(
  fc.record({
    changes: fc.array(
      fc.record({ kind: fc.constantFrom(...Object.keys(lineChanges)), at: place, to: place, line: anyLine }),
      { minLength: 1, maxLength: 4 },
    ),
    ...{ last: anyLine, drafts: fc.boolean() },
  }),
  { minLength: 1, maxLength: 3, size: 'max' },
)

test('whatever lines change, even if entries lack numbers or balance, the ledger equals a fresh import', async () => {
  // Sorts movements, because their ids are not in the order of the file once lines have moved. Leaves out the
  // counterparts of journals, which stay as in the first import.
  const content = async (folderId: string) =>
    (await ledgerContent(stage.owner, folderId))
      .map((entry) => JSON.parse(entry))
      .map((entry) =>
        JSON.stringify(
          entry.with(3, null).with(
            -1,
            entry
              .at(-1)
              .map((movement: unknown) => JSON.stringify(movement))
              .toSorted(),
          ),
        ),
      )
      .toSorted()
  const first = fc.array(anyLine, { minLength: 23, maxLength: 30 })
  const property = fc.asyncProperty(
    ...[first, anyLine, lineHistory],
    shrinking(async (lines, closing, history) => {
      let rows = withBalance(lines, closing)
      await stage.importRows(rows, { replace: true })
      for (const { changes, last, drafts } of history) {
        for (const { kind, at, to, line } of changes) rows = lineChanges[kind]!(rows, at, to, line)
        rows = withBalance(rows, last)
        const imported = await stage.importRows(rows, { replace: true, drafts })
        expect(await keptFec(stage.owner, imported.exerciceId)).toEqual(plainFec(fecFile(rows)))
        const again = await stage.importRows(rows, { replace: true, drafts })
        const { inserted, updated, deleted } = again.replacement!
        expect([inserted, updated, deleted]).toEqual(Array(3).fill({ entries: 0, movements: 0 }))
        const fresh = await importFresh(rows, drafts)
        expect(await content(imported.folderId)).toEqual(await content(fresh.folderId))
      }
    }),
  )
  await fc.assert(property, tries(rounds))
})
