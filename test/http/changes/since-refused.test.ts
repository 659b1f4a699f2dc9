/** Which cursors and requests for changes are refused, with which status and code. */
import { describe, expect, test } from 'vitest'
import { renderingOf } from '../../../src/ledger/changes/cursor.sql.ts'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { download, madUrl, outcomeOf } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { fillLedger } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

const year = { idExercice: '12' }
const rendering = renderingOf('Europe/Paris')

const ask = (query: Record<string, string>, headers: Record<string, string> = {}, path = 'movements') =>
  download(madUrl(stage.service.url, path, query), { ...stage.company, ...headers })

const outcome = async (...request: Parameters<typeof ask>) => outcomeOf(await ask(...request))

async function sql<T>(text: string): Promise<T> {
  await stage.staff.client.query('set search_path = grandlivre')
  return Object.values((await stage.staff.client.query(text)).rows[0] ?? {})[0] as T
}

/** A cursor that only the database could make. @param version an expression over the folder */
const cursorAt = (version: string, { folderId } = folders.first, of = rendering) =>
  sql<string>(`select ledger_cursor(schema_id, id, ${version}, '${of}') from folders where id = ${folderId}`)

const unknown = [400, 'ERR-VALIDATION', 'since']
const expired = [410, 'ERR-CURSOR-EXPIRED']

describe('a cursor', () => {
  test('that the service did not make is refused with 400', async () => {
    const own = await cursorAt('ledger_version')
    const forged = [
      'x',
      'a b',
      `${own}x`,
      own.slice(1),
      own.replace(/^\d+/, '1'),
      own.replace(/\.1\./, '.2.'),
      own.replace(rendering, 'AAAAAAAA'),
      own.slice(0, -1) + (own.endsWith('A') ? 'B' : 'A'),
      'x'.repeat(65),
      "'; select 1",
      '\\',
    ]
    for (const path of ['movements', 'entries'])
      for (const since of forged) expect(await outcome({ ...year, since }, {}, path), since).toEqual(unknown)
  })

  test('of another folder is refused with 400, even if it is of the same version', async () => {
    for (const folder of [folders.sameFirm, folders.otherTenant]) {
      const since = await cursorAt('(select ledger_version from folders where id = 111)', folder)
      expect(await outcome({ ...year, since })).toEqual(unknown)
    }
  })

  test("of a state later than the ledger's is refused with 410, and the error says what to do", async () => {
    const since = await cursorAt('ledger_version + 1')
    expect(await outcome({ ...year, since })).toEqual(expired)
    expect((await ask({ ...year, since })).json.error.message).toMatch(
      /restored.*compare the copy with its blocks/,
    )
  })

  test('of another rendering is refused with 410', async () => {
    const since = await cursorAt('ledger_version', folders.first, renderingOf('Pacific/Auckland'))
    expect(await outcome({ ...year, since })).toEqual(expired)
  })

  test('of another epoch is refused with 410', async () => {
    const since = await cursorAt('ledger_version')
    expect((await ask({ ...year, since })).status).toBe(200)
    await sql('update service_state set epoch = epoch + 1')
    expect(await outcome({ ...year, since })).toEqual(expired)
    await sql('update service_state set epoch = epoch - 1')
    expect((await ask({ ...year, since })).status).toBe(200)
  })

  test('is refused with 410 if it is older than the log of changes, and stays valid while its ledger is unchanged', async () => {
    const old = await cursorAt('ledger_version')
    await sql(`update entries set comment = 'x' where schema_id = 100 and folder_id = 111 and id = 39`)
    expect((await ask({ ...year, since: old })).status).toBe(200)
    const since = await cursorAt('ledger_version')
    await sql(`update ledger_changes set logged_at = logged_at - interval '2 days'`)
    await sql('select forget_ledger_changes(now(), 1000)')
    expect(await outcome({ ...year, since: old })).toEqual(expired)
    expect((await ask({ ...year, since })).status).toBe(200)
    await sql(`update entries set comment = 'y' where schema_id = 100 and folder_id = 111 and id = 39`)
    expect((await ask({ ...year, since })).status).toBe(200)
    await sql(`delete from ledger_changes where kind = 'forgotten'`)
  })
})

test('a folder that is created again with the id of a deleted one accepts no cursor or ETag of that one', async () => {
  const again = { ...folders.sameFirm, name: 'Made again', label: 'again', thirdPartyId: stage.thirdPartyId }
  const signed = { ...stage.firm, 'society-id': again.folderId }
  const { rows } = await stage.staff.client.query('select id from grandlivre.exercices where folder_id = 112')
  const query = { idExercice: rows[0].id }
  const paths = ['movements', 'entries', 'accounts', 'accountingFolder']
  const askAll = (headers = {}) =>
    Promise.all(paths.map((path) => ask(path.startsWith('a') ? {} : query, { ...signed, ...headers }, path)))
  const cursors = new Set<string>()
  const deleteAndMake = async () => {
    await deleteFolder(again.folderId)
    await createFolder(stage.staff.client, { ...again, id: again.folderId })
    // One cursor of the empty folder, and one after its ledger was written.
    cursors.add(await cursorAt('ledger_version', again))
    await fillLedger(stage.staff.client, again)
    cursors.add(await cursorAt('ledger_version', again))
  }
  await deleteAndMake()
  const [firstEmpty] = cursors
  const before = await askAll()
  await deleteAndMake()
  expect(cursors.size).toBe(4)
  for (const since of [firstEmpty!, ...before.map(({ headers }) => headers['x-ledger-cursor'] as string)])
    for (const path of ['movements', 'entries'])
      expect(await outcome({ ...query, since }, signed, path), since).toEqual(expired)
  const etags = before.map(({ headers }) => headers['etag']).join(', ')
  expect((await askAll({ 'If-None-Match': etags })).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const own = await cursorAt('ledger_version', again)
  expect((await ask({ ...query, since: own }, signed)).status).toBe(200)
})

/** Deletes a folder with all its rows. */
async function deleteFolder(id: string): Promise<void> {
  await sql(`do $$
    declare folder_table regclass;
    begin
      for pass in 1..20 loop
        for folder_table in select attrelid from pg_attribute a join pg_class c on c.oid = a.attrelid
          where c.relnamespace = 'grandlivre'::regnamespace and c.relkind = 'r' and c.relname <> 'audit_rows' and a.attname = 'folder_id'
        loop
          begin
            execute format('delete from %s where folder_id = ${id}', folder_table);
          exception when foreign_key_violation then null;
          end;
        end loop;
      end loop;
      delete from folders where id = ${id};
    end $$`)
}

describe('since', () => {
  test('cannot be combined with a part of the answer', async () => {
    const since = await cursorAt('ledger_version')
    const refused = (...parameters: string[]) => [400, 'ERR-VALIDATION', ...parameters]
    expect(await outcome({ ...year, since, after: '9000' })).toEqual(refused('after'))
    expect(await outcome({ ...year, since, entries: '1-2' })).toEqual(refused('entries'))
    expect(await outcome({ ...year, since, entries: '1-2', after: '3' }, {}, 'entries')).toEqual(
      refused('after', 'entries'),
    )
  })

  test('counts as absent without a value', async () => {
    const { text, headers } = await ask({ ...year, since: '' })
    expect([headers['content-type'], text.slice(0, 2)]).toEqual(['application/json', '[{'])
  })

  test('needs a client that accepts NDJSON', async () => {
    const since = await cursorAt('ledger_version')
    for (const accept of ['application/json', 'text/html', 'application/x-ndjson;q=0, */*']) {
      const { status, json } = await ask({ ...year, since }, { Accept: accept })
      expect([status, json.error.code], accept).toEqual([406, 'ERR-NOT-ACCEPTABLE'])
      expect(json.error.message).toBe('This route serves application/x-ndjson with these parameters')
    }
    for (const accept of ['*/*', 'application/*', 'application/json, application/x-ndjson;q=0.1'])
      expect((await ask({ ...year, since }, { Accept: accept })).headers['content-type']).toBe(
        'application/x-ndjson',
      )
  })

  test('is refused by balances and collections', async () => {
    const since = await cursorAt('ledger_version')
    expect(await outcome({ ...year, since }, {}, 'balance')).toEqual(unknown)
    expect(await outcome({ since }, {}, 'accounts')).toEqual(unknown)
  })

  test('of a deleted exercice is refused with 404, whatever the cursor', async () => {
    await sql(`insert into exercices (schema_id, folder_id, id, start_date, end_date)
      values (100, 111, 20, '2030-01-01', '2030-12-31')`)
    const since = await cursorAt('ledger_version')
    const gone = { idExercice: '20' }
    await sql(`update entries set comment = 'z' where schema_id = 100 and folder_id = 111 and id = 39`)
    expect((await ask({ ...gone, since })).status).toBe(200)
    await sql('delete from exercices where folder_id = 111 and id = 20')
    expect(await outcome({ ...gone, since })).toEqual([404, 'ERR-EXERCICE-NOT-FOUND'])
    expect(await outcome({ ...gone, since: 'x' })).toEqual([404, 'ERR-EXERCICE-NOT-FOUND'])
  })
})
