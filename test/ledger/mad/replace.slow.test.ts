/** import mad --replace: only what differs is written, and the ledger is what a fresh import would make of the file. */
import fc from 'fast-check'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { readDelta } from '../../support/changes/apply-delta.ts'
import { shrinking, tries } from '../../support/changes/properties.ts'
import { carryOut, type Transaction, transaction } from '../../support/changes/random-changes.ts'
import { fillRandomLedger } from '../../support/changes/random-ledger.ts'
import { madBytes } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { exportedLedgers, exportLedgers, registerSenders } from '../../support/imports/exported-ledgers.ts'
import { type ImportStage, setImportStage } from '../../support/imports/import-stage.ts'
import { type MadFile as File, readOpenMad, readOpenTra } from '../../support/imports/open-files.ts'
import { withoutIds } from '../../support/imports/without-ids.ts'
import { fecFile, ledger } from '../../support/ledgers/fec-file.ts'
import { createTenants, credentials, folders } from '../../support/ledgers/tenants.ts'
import { startTestService } from '../../support/service.ts'

const file = readOpenMad()
// Enough other entries that an answer to `since` names the changed ones instead of sending all.
const other = file.data.entries.find(({ producerId }: File) => producerId === '1050')
for (const [at, date] of ['2023-05-01', '2024-05-01'].entries())
  for (let id = 2_000 + 1_000 * at, last = id + 600; id < last; id += 3) {
    const movements = other.movements.map((movement: File, i: number) => ({
      ...structuredClone(movement),
      producerId: String(id + 1 + i),
      lettering: { state: 'none', value: null },
    }))
    file.data.entries.push({ ...structuredClone(other), producerId: String(id), date, movements })
  }
const text = JSON.stringify(file)

let stage: ImportStage

beforeEach(async () => {
  stage = await setImportStage()
})

afterEach(() => stage.close())

interface Imported {
  schemaId: string
  folderId: string
}

/** The ledger version, and all events except those of the kind `ledger`. */
async function state({ folderId }: Imported, { owner } = stage) {
  const { rows } = await owner.query('select ledger_version from grandlivre.folders where id = $1', [
    folderId,
  ])
  const events = await owner.query(
    `select name || ' ' || operation || ' ' || (data ->> 'id') as event from grandlivre.events
     where name <> 'ledger' order by id`,
  )
  return { version: rows[0].ledger_version, events: events.rows.map(({ event }) => event as string) }
}

const nothing = { entries: 0, movements: 0 }
const unwritten = { deleted: nothing, updated: nothing, inserted: nothing, books: 0 }

/** Imports a ledger's own export, which must change nothing. */
async function expectUnchanged(imported: Imported, bytes: Buffer | string, renumber: boolean, there = stage) {
  const before = await state(imported, there)
  const { replacement } = await there.importMad(bytes, {
    folderId: imported.folderId,
    replace: true,
    renumber,
  })
  // A folder without a ledger is filled.
  expect(replacement ?? unwritten).toEqual(unwritten)
  expect(await state(imported, there)).toEqual(before)
}

let files: Map<string, Buffer>
beforeAll(async () => {
  files = await exportLedgers(madBytes)
})

describe.each([false, true])('the same file again writes no rows, with renumber %s', (renumber) => {
  test.each(exportedLedgers)('%s', async (name) => {
    await registerSenders(stage.database.ownerUrl)
    const open = files
      .get(name)!
      .toString()
      .replaceAll('"state":"closed"', '"state":"open"')
      .replaceAll(/"closed":\{"at":[^}]*\}\}/g, '"closed":null')
    await expectUnchanged(await stage.importMad(open, { renumber }), open, renumber)
  })

  test('a ledger from a FEC keeps its filed lines, whether the file was exported from it or from a copy', async () => {
    const path = await stage.written(fecFile(ledger), '123456789FEC20231231.txt')
    const imported = await importFec(stage.owner, { file: path })
    const filed = async () =>
      (
        await stage.owner.query(
          `select (select json_agg(filed order by id) from grandlivre.entries)::text as entries,
           (select json_agg(filed order by id) from grandlivre.movements)::text as movements,
           (select json_agg(filed_number order by id) from grandlivre.accounts)::text as accounts`,
        )
      ).rows
    const before = await filed()
    await expectUnchanged(imported, await madBytes(stage.service, imported), renumber)
    expect(await filed()).toEqual(before)
  })

  test('a ledger from a TRA file is unchanged', async () => {
    const imported = await stage.importTra(readOpenTra())
    await stage.owner.query(
      `insert into grandlivre.vat_codes (schema_id, folder_id, id, code, rate) values ($1, $2, 5, 'UNUSED', 550)`,
      [imported.schemaId, imported.folderId],
    )
    await expectUnchanged(imported, await madBytes(stage.service, imported), renumber)
  })

  test('payments of a kind other than the six known ones keep their code', async () => {
    const imported = await stage.importMad(text)
    await stage.owner.query(`update grandlivre.payments set code = 'TROC' where code = 'CHQ'`)
    await expectUnchanged(imported, await madBytes(stage.service, imported), renumber)
  })
})

const entryOf = (data: File, id: string): File =>
  data.entries.find(({ producerId }: File) => producerId === id)

/** Changes an item and all references to it in the file. */
function rename(value: File, id: string, changed: object): void {
  if (typeof value !== 'object' || value === null) return
  if (value.producerId === id) Object.assign(value, changed)
  for (const inner of Object.values(value)) rename(inner, id, changed)
}

function textAfter(change: (data: File) => void): string {
  const changed = structuredClone(file)
  change(changed.data)
  return JSON.stringify(changed)
}

const changes: [what: string, change: (data: File) => void, entries: string[], events: string[]][] = [
  [
    'an amount',
    (data) => {
      const [one, other] = entryOf(data, '1034').movements
      one.value = { credit: 241, debit: 0, amount: 241 }
      other.value = { credit: 0, debit: 241, amount: -241 }
    },
    ['1034'],
    [],
  ],
  [
    'a description',
    (data) => {
      entryOf(data, '1047').movements[1].description = 'Autre'
    },
    ['1047'],
    [],
  ],
  [
    'a comment and a creation time',
    (data) => {
      entryOf(data, '1047').additionalProducerProperties.comment = 'Autre'
      entryOf(data, '602').additionalProducerProperties.createdAt += 60
    },
    ['602', '1047'],
    [],
  ],
  ['the name of an account', (data) => rename(data, '1006', { name: 'Immobilisations' }), ['1034'], []],
  [
    'two accounts that exchange their numbers',
    (data) => {
      rename(data, '1005', { number: '641000' })
      rename(data, '1012', { number: '215000' })
    },
    ['1034', '1047'],
    [],
  ],
  [
    'two axes that exchange their codes',
    (data) => {
      rename(data, '401', { code: 'LIEU' })
      rename(data, '402', { code: 'ACT' })
    },
    // And the draft 604, which this selection does not have.
    ['601', '606', '607'],
    [],
  ],
  [
    'a removed entry and its account',
    (data) => {
      data.entries = data.entries.filter(({ producerId }: File) => producerId !== '1034')
      data.accounts = data.accounts.filter(({ producerId }: File) => !['1005', '1006'].includes(producerId))
    },
    ['1034'],
    [],
  ],
  [
    'a new entry on a new account with the number of a removed account',
    (data) => {
      rename(data, '1006', { producerId: '1206' })
      const entry = structuredClone(entryOf(data, '1047'))
      entry.producerId = '1300'
      for (const [i, movement] of entry.movements.entries()) {
        movement.producerId = String(1301 + i)
        movement.lettering = { state: 'none', value: null }
      }
      data.entries.push(entry)
    },
    ['1034', '1300'],
    ['accountingLineEntry CREATE 1300'],
  ],
  [
    'a removed lettering and a new lettering',
    (data) => {
      for (const id of ['1029', '1053'])
        for (const movement of entryOf(data, id).movements)
          movement.lettering = { state: 'none', value: null }
      for (const movement of entryOf(data, '1034').movements)
        movement.lettering = { state: 'partial', value: '*Q' }
    },
    ['1029', '1034', '1053'],
    [
      'accountingEntryLettering DELETE 1030',
      'accountingEntryLettering CREATE 1035',
      'accountingEntryLettering CREATE 1036',
    ],
  ],
  [
    'a validated draft, and a validated entry that became a draft',
    (data) => {
      entryOf(data, '604').additionalProducerProperties.validationDate = '2023-12-31'
      entryOf(data, '603').additionalProducerProperties.validationDate = null
    },
    ['603', '604'],
    [],
  ],
  [
    'an entry moved to another journal, and an entry moved to another exercice',
    (data) => {
      entryOf(data, '1034').journal = entryOf(data, '1047').journal
      entryOf(data, '1059').date = '2024-01-31'
    },
    ['1034', '1059'],
    ['accountingLineEntry CREATE 1034', 'accountingLineEntry CREATE 1059'],
  ],
  [
    'a movement that moved to another entry',
    (data) => {
      const moved = entryOf(data, '1059').movements.splice(0, 1)
      entryOf(data, '1047').movements.push(...moved)
    },
    ['1047', '1059'],
    [],
  ],
  [
    'a year that ends earlier, and a new year that begins there',
    (data) => {
      const [first, second] = data.exercices.toSorted((one: File, other: File) =>
        one.period.start < other.period.start ? -1 : 1,
      )
      first.period.end = '2023-12-30'
      second.period.start = '2023-12-31'
    },
    ['1059'],
    ['accountingLineEntry CREATE 1059'],
  ],
]

describe('replace writes exactly the differences', () => {
  // All tests change the same ledger, and restore it afterwards.
  const changing = forTests(setImportStage)
  const service = forTests(() => startTestService(changing.database))
  const { first } = folders
  let signed: Record<string, string>

  beforeAll(async () => {
    const staff = await createTenants(changing.database.ownerUrl)
    await changing.importMad(text, { folderId: first.folderId })
    const secret = await staff.thirdParty('ONE')
    signed = credentials(await staff.token('ONE', 'api', first), secret)
    await staff.end()
  })
  afterEach(() => changing.importMad(text, { folderId: first.folderId, replace: true }))

  const pull = async (year: number, since: string) => {
    const response = await fetch(
      `${service.url}/api/v1/mad/entries?startDate=${year}-01-01&endDate=${year}-12-31&version=1.0.0${since}`,
      { headers: { ...signed, Accept: 'application/x-ndjson' } },
    )
    return { body: await response.text(), cursor: response.headers.get('x-ledger-cursor')! }
  }

  test.each(changes)('%s', async (_, change, entries, events) => {
    const { cursor } = await pull(2023, '')
    const before = await state(first, changing)
    const changed = textAfter(change)
    await changing.importMad(changed, { folderId: first.folderId, replace: true })
    const after = await state(first, changing)
    expect(after.events.slice(before.events.length)).toEqual(events)
    const deltas = [await pull(2023, `&since=${cursor}`), await pull(2024, `&since=${cursor}`)]
    const ids = deltas.flatMap(({ body }) =>
      readDelta(body).entries.flatMap(([from, to]) =>
        Array.from({ length: Math.min(Number(to) - Number(from) + 1, 100) }, (_, i) =>
          String(Number(from) + i),
        ),
      ),
    )
    expect(new Set(ids)).toEqual(new Set(entries))
    // Importing the file again changes nothing, and the ledger is that of a fresh import.
    await expectUnchanged(first, changed, false, changing)
    const again = JSON.parse((await madBytes(changing.service, first)).toString())
    const alone = await stage.importMad(changed)
    const expected = JSON.parse((await madBytes(stage.service, alone)).toString())
    for (const each of [again, expected]) each.data.accountingFolder = null
    expect(again).toEqual(expected)
  })
})

describe('replace', () => {
  test.each<[number, string, (data: File) => void]>([
    [1, 'a name of an account', (data) => rename(data, '1006', { name: 'Immobilisations' })],
    [2, 'numbers that two accounts exchange', changes[4]![1]],
    [2, 'the days of two exercices', changes.at(-1)![1]],
    [2, 'an account by another', changes[7]![1]],
  ])('counts %i changed rows of master data: %s', async (books, _, change) => {
    const { folderId } = await stage.importMad(text)
    const again = await stage.importMad(textAfter(change), { folderId, replace: true })
    expect(again.replacement!.books).toBe(books)
  })

  // Without the last change: an exercice with another first day counts as another exercice.
  test.each(changes.slice(0, -1))('keeps ids of known rows when renumbering: %s', async (_, change) => {
    const imported = await stage.importMad(text)
    const changed = textAfter(change)
    const { replacement } = await stage.importMad(changed, {
      folderId: imported.folderId,
      replace: true,
      renumber: true,
    })
    expect(replacement!.inserted.entries).toBeLessThanOrEqual(4)
    expect(replacement!.deleted.entries).toBeLessThanOrEqual(4)
    const fresh = await stage.importMad(changed, { renumber: true })
    const ordered = async (folder: Imported) => {
      const { data } = JSON.parse((await madBytes(stage.service, folder)).toString())
      // Sorted, because new rows come after rows that stay.
      const lines = (list: File[], kind: string) =>
        list.map((each) => withoutIds(JSON.stringify({ [kind]: [each] }))).toSorted()
      const entries = data.entries.map((entry: File) => ({
        ...entry,
        movements: lines(entry.movements, 'movements'),
      }))
      const kinds = ['accounts', 'journals', 'exercices', 'analytics', 'banks', 'payments']
      return [lines(entries, 'entries'), ...kinds.map((kind) => lines(data[kind], kind))]
    }
    expect(await ordered(imported)).toEqual(await ordered(fresh))
  })
})

const rounds = Number(process.env['RANDOM_ROUNDS'] ?? 3)

test('whatever changed in a random ledger, importing its earlier file restores it', async () => {
  const { schemaId, folderId } = folders.first
  // An import refuses closed exercices and banks of journals of another type, and does not read names of senders and
  // folders.
  const importable = `update exercices set closed_at = null; update journals set type = 'BQ' where id = 33;
    update third_parties set name = 'Sender'; update folders set name = 'Folder'`
  const restored = async ([before, after]: Transaction[][]) => {
    await stage.close()
    stage = await setImportStage()
    const staff = await createTenants(stage.database.ownerUrl)
    try {
      await staff.thirdParty('ONE')
      const folder = { schemaId, folderId, thirdPartyId: await staff.thirdPartyId('ONE') }
      await fillRandomLedger(staff.client, folder)
      for (const each of before!) await carryOut(staff.client, folder, each)
      await staff.sql(importable)
      const former = await madBytes(stage.service, folder)
      for (const each of after!) await carryOut(staff.client, folder, each)
      await staff.sql(importable)
      await stage.importMad(former, { folderId, replace: true })
      const [again, expected] = [await madBytes(stage.service, folder), former].map(String) as [
        string,
        string,
      ]
      // Shows the first difference alone, because a difference of the whole texts is too long.
      let at = 0
      while (at < expected.length && expected[at] === again[at]) at += 1
      expect(again.slice(Math.max(at - 200, 0), at + 200)).toBe(
        expected.slice(Math.max(at - 200, 0), at + 200),
      )
      await expectUnchanged(folder, former, false)
    } finally {
      await staff.end()
    }
  }
  const changes = fc.array(transaction, { minLength: 5, maxLength: 8 })
  await fc.assert(fc.asyncProperty(fc.tuple(changes, changes), shrinking(restored)), tries(2 * rounds))
}, 7_200_000)
