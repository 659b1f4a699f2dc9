/**
 * Erases a folder beside followers, subscribers and other folders. Finds what is left of it, and what others notice.
 */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOwnerPool, inTransaction } from '../../src/db/pool.ts'
import { eraseFirm, eraseFolder, tablesOfFolder } from '../../src/erasure/erase.ts'
import { openStore } from '../../src/store/open-store.ts'
import { defaultTiming } from '../../src/timing.ts'
import { cli } from '../support/cli.ts'
import { download } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { request } from '../support/service.ts'
import { setTwoServices } from '../support/stages/two-services.ts'
import { until } from '../support/until.ts'

const { folderId, schemaId } = folders.first
const stage = forTests(setTwoServices)
/** The folder of the settings. `files` in it is the store of the services. */
let dataDir: string

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-erasure-'))
  await symlink(stage.store.folder, join(dataDir, 'files'))
})
afterAll(() => rm(dataDir, { recursive: true, force: true }))

/** @param words separated by blanks @param folder of the settings, with the store in `files` */
const staff = (words: string, folder = dataDir) =>
  cli({ ownerUrl: stage.database.ownerUrl, env: { DATA_DIR: folder } }, ...words.split(' '))

const refusal = (says: string) => ({ code: 1, error: expect.stringContaining(says) })

/** @returns the id that the command names */
const made = async (words: string) => /^(?:Firm|Folder) (\d+)/.exec((await staff(words)).out)![1]!

/** Counts the rows that contain one of these texts, by table. */
async function tablesWith(texts: string[]): Promise<Record<string, number>> {
  const tables = await stage.sql(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('grandlivre', 'grandlivre_queue', 'pgboss') and c.relkind in ('r', 'p')`,
  )
  const found: Record<string, number> = {}
  for (const { name } of tables) {
    const [{ count }] = await stage.sql(
      `select count(*)::int as count from ${name} t where exists (
         select from unnest($1::text[]) as needle where strpos(t::text, needle) > 0
           or exists (select from jsonb_each_text(to_jsonb(t)) as c where strpos(c.value, encode(convert_to(needle, 'UTF8'), 'hex')) > 0))`,
      [texts],
    )
    if (count > 0) found[name.replace('grandlivre.', '')] = count
  }
  return found
}

const api = (path: string, headers: Record<string, string>) => request(`${stage.url}/api/v1${path}`, headers)
const movementsOf = async (folder: string) => {
  const [{ id }] = await stage.sql(
    'select id from grandlivre.exercices where folder_id = $1 order by id limit 1',
    [folder],
  )
  const url = `${stage.url}/api/v1/mad/movements?version=1.0.0&idExercice=${id}`
  return download(url, stage.asFirm(folder))
}

test('every table with a folder loses its rows, or keeps only the id of the folder', async () => {
  const rows = await stage.sql(
    `select distinct table_name as name from information_schema.columns
     where table_schema = 'grandlivre' and column_name = 'folder_id'`,
  )
  // Companies, employees and the like are among the tables of a ledger.
  expect(rows.map(({ name }) => name).sort()).toEqual([...tablesOfFolder, 'audit_rows', 'events'].sort())
})

test('no data of an erased folder can be found, and other folders are unchanged', async () => {
  await stage.sql(`update grandlivre.folders set name = 'Forget Me', siret = '73282932000074', reference = 'FORGETME'
    where id = ${folderId}`)
  const texts = (
    await stage.sql(
      `select distinct description as text from grandlivre.movements where folder_id = $1 and length(description) > 6
         and not exists (select from grandlivre.movements o where o.folder_id <> $1 and strpos(o.description, movements.description) > 0)`,
      [folderId],
    )
  ).map(({ text }) => text)
  expect(texts.length).toBeGreaterThan(3)
  const needles = ['Forget Me', '73282932000074', 'FORGETME', ...texts.slice(0, 10)]
  const subscriptionId = 7001
  await stage.sql(
    `insert into grandlivre.subscriptions (id, schema_id, level, firm_id, third_party_id, on_events, start_position)
     select ${subscriptionId}, 100, 'firm', 110, id, '{ledger,accountingLineEntry}', 0
     from grandlivre.third_parties where code = 'PARTNER'`,
  )
  const events = async () =>
    (await api(`/webhook/${subscriptionId}/events?limit=1000`, stage.firm)).body as {
      sequence: string
      event: { scope: { accountingFolderId?: number } }
    }[]
  for (const folder of [folderId, '112', folderId, '112'])
    await stage.sql(
      `update grandlivre.entries set comment = coalesce(comment, '') || 'x' where folder_id = ${folder}`,
    )
  const before = await events()
  const ofOthers = before.filter(({ event }) => String(event.scope.accountingFolderId) !== folderId)
  expect(before.length).toBeGreaterThan(ofOthers.length)
  expect(ofOthers.length).toBeGreaterThan(0)
  const job = await stage.exported()
  const neighbour = await movementsOf('112')
  const list = await download(`${stage.url}/api/v1/mad/ledgers?version=1.0.0`, stage.firm)
  const waiting = download(`${stage.url}/api/v1/mad/ledgers?version=1.0.0&wait=30`, {
    ...stage.firm,
    'If-None-Match': list.headers['etag'] as string,
  })

  const receiptFile = join(dataDir, 'receipt.json')
  const refused = await staff(`folder delete ${folderId}`)
  expect(refused).toMatchObject({ ...refusal('Nothing was changed'), out: '' })
  const erased = await staff(
    `folder delete ${folderId} --yes --receipt ${receiptFile} --backups-until 2027-01-31`,
  )
  expect(erased).toMatchObject({
    code: 0,
    error: expect.stringContaining('Backups from before hold it until 2027-01-31.'),
  })
  const receipt = JSON.parse(await readFile(receiptFile, 'utf8'))
  expect(receipt).toMatchObject({
    erased: 'folder',
    id: folderId,
    schemaId,
    backupsUntil: '2027-01-31',
    gone: { movements: expect.any(Number), entries: expect.any(Number), files: 1, exports: 1, tokens: 1 },
    stays: { auditRowsOfErasure: [expect.anything(), expect.anything()], subscriptionsNamingIt: 0 },
  })

  const { status, text: listed } = await waiting
  expect([status, listed.includes(`"${folderId}"`), listed.includes('"112"')]).toEqual([200, false, true])
  expect((await api('/mad/journals?version=1.0.0', stage.asFirm(folderId))).status).toBe(404)
  expect((await api('/mad/journals?version=1.0.0', stage.company)).status).toBe(401)
  expect((await api(`/mad/all/status?exportId=${job.id}`, stage.asFirm(folderId))).status).toBe(404)
  expect((await fetch(job.url!)).status).toBe(410)
  expect(await stage.storedKeys()).toEqual([])
  expect(await tablesWith(needles)).toEqual({})
  const { text, headers } = await movementsOf('112')
  expect([text, headers['etag']]).toEqual([neighbour.text, neighbour.headers['etag']])
  expect(await events(), 'the numbers of others stay').toEqual(ofOthers)

  const out = `Nothing is left of folder ${folderId}.\n`
  expect(await staff(`folder erased ${folderId}`)).toEqual({ code: 0, out, error: '' })
  const again = await staff(`folder delete ${folderId} --yes`)
  expect(JSON.parse(again.out)).toMatchObject({ gone: receipt.gone, endedAt: receipt.endedAt })
  for (const words of ['folder show', 'token issue --partner PARTNER --level api --folder'])
    expect(await staff(`${words} ${folderId}`)).toMatchObject(refusal(`There is no folder ${folderId}`))

  // A restore of an older backup.
  await stage.sql('delete from grandlivre.erasures')
  await stage.sql(
    `insert into grandlivre.folders (schema_id, id, firm_id, name) values (100, ${folderId}, 110, 'Back')`,
  )
  expect((await staff(`folder erased ${folderId}`)).error).toContain('Give its --receipt')
  const proof = `folder erased ${folderId} --receipt ${receiptFile}`
  expect(await staff(proof)).toMatchObject(refusal('is not erased: 1 ledger_changes, 1 folders are there'))
  expect((await staff(`folder delete ${folderId} --yes`)).code).toBe(0)
  expect((await staff(proof)).code).toBe(0)
})

test('no caller can find a folder that is hidden and not yet erased', async () => {
  const { folderId: hidden } = folders.sameFirm
  await stage.sql(`update grandlivre.folders set erased_at = now() where id = ${hidden}`)
  await until(async () => (await api('/mad/journals?version=1.0.0', stage.asFirm(hidden))).status === 404)
  expect((await api('/society', stage.firm)).body.map(({ id }: { id: number }) => String(id))).not.toContain(
    hidden,
  )
  expect((await staff('folder list')).out).not.toMatch(new RegExp(`^${hidden} `, 'm'))
  const version = async () =>
    (
      await stage.sql(`select ledger_version, (select count(*) from grandlivre.ledger_changes where folder_id = f.id) as logged
      from grandlivre.folders f where id = ${hidden}`)
    )[0]
  const before = await version()
  await stage.sql(`update grandlivre.entries set comment = 'unseen' where folder_id = ${hidden}`)
  expect(await version()).toEqual(before)
  const fec = join(dataDir, 'empty.txt')
  await writeFile(fec, 'JournalCode\n')
  expect((await staff(`import fec ${fec} --folder ${hidden}`)).code).toBe(1)
})

test.each([
  ['folder delete 999 --yes', 'There is no folder 999: see folder list'],
  ['folder delete 110 --yes', 'There is no folder 110: see folder list'],
  ['firm delete 999 --yes', 'There is no firm 999: see firm list'],
  ['partner delete NOBODY --yes', 'There is no partner NOBODY: see partner list'],
  ['firm delete 120', 'Nothing was changed.'],
  ['partner delete PARTNER', 'Nothing was changed.'],
  ['folder delete 121 --yes --backups-until 2027-02-30', '--backups-until takes a day such as 2027-02-28'],
  ['folder erased 121', 'No folder 121 was erased, as far as this database knows'],
])('%s is refused', async (words, says) => {
  const { code, out, error } = await staff(words)
  expect([code, out]).toEqual([1, ''])
  expect(error).toContain(says)
  expect(await stage.sql('select id from grandlivre.folders where id = 121')).toHaveLength(1)
})

test('a folder is not erased with the settings of another store, and another run deletes files that a restored store brings back', async () => {
  const { folderId: of } = folders.otherFirm
  const [{ id: exercice }] = await stage.sql(
    `insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date)
     values (100, ${of}, 9901, '2025-01-01', '2025-12-31') returning id`,
  )
  expect(exercice).toBe('9901')
  const other = await stage.staff.token('PARTNER', 'firm', { ...folders.otherFirm, folderId: null })
  const headers = { ...stage.firm, Authorization: `Bearer ${other.token}`, 'society-id': of }
  await stage.exported(headers)
  const [file] = await stage.storedKeys()
  expect(await staff(`folder delete ${of} --yes`, join(dataDir, 'elsewhere'))).toMatchObject({
    ...{ code: 1, out: '' },
    error: expect.stringMatching(/does not have the file .* Nothing was changed/),
  })
  expect(await staff(`folder delete ${of} --yes --receipt /nowhere/receipt.json`)).toMatchObject(
    refusal('--receipt /nowhere/receipt.json cannot be opened (ENOENT). Nothing was changed\n'),
  )
  expect((await api('/mad/journals?version=1.0.0', headers)).status).toBe(200)
  const erased = await staff(`folder delete ${of} --yes`)
  expect(JSON.parse(erased.out).gone).toMatchObject({ files: 1 })
  await mkdir(dirname(file!), { recursive: true })
  await writeFile(file!, 'restored')
  expect((await staff(`folder erased ${of}`)).error).toContain('is not erased: 1 files are there')
  expect((await staff(`folder delete ${of} --yes`)).code).toBe(0)
  expect((await staff(`folder erased ${of}`)).code).toBe(0)
})

test('a firm that is being erased gets no new folder or token, and a folder that has moved away stays', async () => {
  await stage.sql('update grandlivre.folders set erased_at = null where id = 112')
  const firm = await made('firm create --name Leaving --beside 110')
  await stage.sql(`insert into grandlivre.erasures (kind, id, of_schema) values ('firm', ${firm}, 100)`)
  for (const words of [
    'folder create --name Late',
    'token issue --partner PARTNER --level firm',
    'folder move 112',
  ])
    expect(await staff(`${words} --firm ${firm}`)).toMatchObject(refusal(`There is no firm ${firm}`))
  expect((await staff(`firm delete ${firm} --yes`)).code).toBe(0)
  const parts = { record: () => Promise.resolve(), onStep: () => {}, store: {} as never }
  const owner = createOwnerPool(stage.database.ownerUrl, { max: 1, applicationName: 'test' })
  expect(
    await eraseFolder({ ...parts, step: (run) => inTransaction(owner, run) }, '112', {
      firmId: '120',
      withoutFiles: true,
    }),
  ).toBeUndefined()
  await owner.end()
  expect(await stage.sql('select erased_at from grandlivre.folders where id = 112')).toEqual([
    { erased_at: null },
  ])
})

test('before any row of a firm is deleted, all its files are found and all its folders are hidden', async () => {
  const firm = await made('firm create --name Two --beside 110')
  await made(`folder create --firm ${firm} --name One`)
  const second = await made(`folder create --firm ${firm} --name Two`)
  const token = await stage.staff.token('PARTNER', 'firm', { schemaId, firmId: firm, folderId: null })
  const headers = { ...stage.firm, Authorization: `Bearer ${token.token}` }
  await stage.exported({ ...headers, 'society-id': second })
  const refused = await staff(`firm delete ${firm} --yes`, join(dataDir, 'elsewhere'))
  expect(refused).toMatchObject({ ...refusal('Nothing was changed.'), out: '' })
  expect((await api('/society', headers)).body).toHaveLength(2)
  expect((await staff('firm list')).out).toMatch(new RegExp(`^${firm} `, 'm'))

  const owner = createOwnerPool(stage.database.ownerUrl, { max: 1, applicationName: 'test' })
  const hidden: Promise<unknown[]>[] = []
  const onStep = (text: string) => {
    if (text.startsWith('folder '))
      hidden.push(
        stage.sql('select id from grandlivre.folders where firm_id = $1 and erased_at is null', [firm]),
      )
  }
  const store = await openStore(
    { kind: 'filesystem', folder: stage.store.folder, publicUrl: '', signingKeys: [] },
    defaultTiming.store,
  )
  const step = <T>(run: (client: PoolClient) => Promise<T>) => inTransaction(owner, run)
  await eraseFirm({ step, store, record: () => Promise.resolve(), onStep }, firm)
  await owner.end()
  expect(await Promise.all(hidden)).toEqual([[], []])
  expect((await staff('firm list')).out).not.toMatch(new RegExp(`^${firm} `, 'm'))
})

test('a firm is erased with its folders, tokens and subscriptions, and a tenant with its last firm', async () => {
  const firmOf = async (id: string) => stage.sql('select id from grandlivre.firms where id = $1', [id])
  await stage.sql(
    `insert into grandlivre.subscriptions (id, schema_id, level, third_party_id, on_events, start_position)
     select 7002, 200, 'staff', id, '{ledger}', 0 from grandlivre.third_parties where code = 'PARTNER'`,
  )
  const receipt = join(dataDir, 'firm.json')
  const erased = await staff(`firm delete ${folders.otherTenant.firmId} --yes`)
  expect(erased.code).toBe(0)
  expect(JSON.parse(erased.out)).toMatchObject({ erased: 'firm', gone: { folders: 1, subscriptions: 1 } })
  await writeFile(receipt, erased.out)
  expect((await staff(`folder erased ${folders.otherTenant.folderId} --receipt ${receipt}`)).code).toBe(0)
  expect(await firmOf('210')).toEqual([])
  expect(await stage.sql('select schema_id from grandlivre.schemas where schema_id = 200')).toEqual([])
  expect((await staff('firm delete 120 --yes')).code).toBe(0)
  expect(await firmOf('120')).toEqual([])
  expect(await firmOf('110')).toHaveLength(1)
})

test('a third party is erased with its tokens and subscriptions; ledgers keep the name that they have for it', async () => {
  expect((await api('/key/info', stage.firm)).status).toBe(200)
  const { code, out, error } = await staff('partner delete PARTNER --yes')
  expect([code, error]).toEqual([0, expect.stringContaining('The partner PARTNER is erased')])
  expect(JSON.parse(out)).toMatchObject({
    erased: 'partner',
    gone: { tokens: expect.any(Number), subscriptions: 1 },
  })
  expect((await api('/key/info', stage.firm)).status).toBe(401)
  expect(await stage.sql('select id from grandlivre.tokens')).toEqual([])
  const again = await staff('partner delete PARTNER --yes')
  expect(JSON.parse(again.out).gone).toEqual(JSON.parse(out).gone)
})
