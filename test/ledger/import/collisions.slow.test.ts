/**
 * Imports beside other writers that lock rows before the folder, as single SQL statements do. The database ends the
 * import as the victim of a deadlock, and the import begins again.
 */
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { showFileProgress } from '../../../src/commands/terminal/file-progress.ts'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { type ImportStage, setImportStage } from '../../support/imports/import-stage.ts'
import { readOpenMad, readOpenTra } from '../../support/imports/open-files.ts'
import { type FecRow, fecFile, ledger } from '../../support/ledgers/fec-file.ts'
import { ledgerContent, rowCounts } from '../../support/ledgers/ledger-content.ts'
import { until } from '../../support/until.ts'

let stage: ImportStage

beforeEach(async () => {
  stage = await setImportStage()
  // The import is the one that looks for a deadlock, soon after it has begun to wait.
  const client = new pg.Client({ connectionString: stage.database.ownerUrl })
  await client.connect()
  await client.query(
    `do $$ begin execute format('alter database %I set deadlock_timeout = 200', current_database()); end $$`,
  )
  await client.end()
})

afterEach(() => stage.close())

interface Imported {
  folderId: string
}
type Import = (folderId?: string) => Promise<Imported>

const file = readOpenMad()
const mad = JSON.stringify(file)
for (const entry of file.data.entries) for (const movement of entry.movements) movement.description = 'Avant'
const formerMad = JSON.stringify(file)
const tra = readOpenTra()
const described = (text: string) => ledger.map((row): FecRow => ({ ...row, EcritureLib: text }))
const nextYear = ledger
  .filter((row) => row['JournalCode'] !== 'AN')
  .map((row): FecRow => ({ ...row, EcritureDate: '20240410', ValidDate: '', DateLet: '', EcritureLet: '' }))
const fec = async (rows: readonly FecRow[], end: string, replace: boolean, folderId?: string) =>
  importFec(stage.owner, {
    file: await stage.written(fecFile(rows), `123456789FEC${end}.txt`),
    replace,
    ...(folderId !== undefined && { folderId }),
  })

const imports: Record<string, { first: Import; second: Import; rows: 'movements' | 'accounts' }> = {
  'fec --replace': {
    first: () => fec(described('Avant'), '20231231', false),
    second: (folderId) => fec(described('Après'), '20231231', true, folderId),
    rows: 'movements',
  },
  'fec into a new exercice': {
    first: () => fec(ledger, '20231231', false),
    second: (folderId) => fec(nextYear, '20241231', false, folderId),
    rows: 'accounts',
  },
  'mad --replace': {
    first: () => stage.importMad(formerMad),
    second: (folderId) => stage.importMad(mad, { folderId: folderId!, replace: true }),
    rows: 'movements',
  },
  'tra --replace': {
    first: () => stage.importTra(tra),
    second: (folderId) => stage.importTra(tra, { folderId: folderId!, replace: true }),
    rows: 'movements',
  },
}

interface Session {
  client: pg.Client
  pid: number
}

/** Opens a session with a transaction. It looks for a deadlock long after the import has done so. */
async function openSession(): Promise<Session> {
  const client = new pg.Client({ connectionString: stage.database.ownerUrl, application_name: 'a booker' })
  await client.connect()
  await client.query(`set deadlock_timeout = '60s'; begin`)
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return { client, pid: rows[0]!.pid }
}

/**
 * Each writer holds rows that the import writes or refers to, and waits for the folder behind the import, which waits for a
 * gate. Once the gate opens, the import is the last of both to wait for the other, so it is the one that finds the deadlock.
 */
async function collide(count: number, table: string, folderId: string, run: () => Promise<unknown>) {
  const askForFolder = ({ client }: Session) =>
    client.query(`select from grandlivre.folders where id = ${folderId} for no key update`)
  const untilWaiting = (condition: string) =>
    until(async () => {
      const { rows } = await stage.owner.query(
        `select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0
           and ${condition}`,
      )
      return hasEnded || rows.length > 0
    })
  const sessions: Session[] = []
  const open = async () => {
    const session = await openSession()
    sessions.push(session)
    return session
  }
  let gate = await open()
  await askForFolder(gate)
  let hasEnded = false
  const outcome = Promise.allSettled([run().finally(() => (hasEnded = true))])
  const writers: number[] = []
  for (let collisions = 1; collisions <= count; collisions += 1) {
    await untilWaiting(`application_name = 'import test'`)
    if (hasEnded) break
    const writer = await open()
    writers.push(writer.pid)
    await writer.client.query(`select from grandlivre.${table} where folder_id = $1 for update`, [folderId])
    const written = askForFolder(writer)
    await untilWaiting(`pid = ${writer.pid}`)
    // It has the folder before the import begins again.
    const nextGate = await open()
    const closed = askForFolder(nextGate)
    await untilWaiting(`pid = ${nextGate.pid}`)
    await gate.client.query('commit')
    await written
    await writer.client.query('commit')
    await closed
    gate = nextGate
  }
  await gate.client.query('commit')
  const [result] = await outcome
  for (const { client } of sessions) await client.end()
  return { result, writers }
}

const timesAside = (content: string[]) => content.map((entry) => entry.replaceAll(/"20\d\d-[^"]*Z"/g, ''))

test.each(Object.entries(imports))('%s starts again after each of three deadlocks', async (_, each) => {
  const { folderId } = await each.first()
  const { result } = await collide(3, each.rows, folderId, () => each.second(folderId))
  expect(result).toMatchObject({ status: 'fulfilled', value: { folderId } })
  const content = await ledgerContent(stage.owner, folderId)
  // Makes the same imports without other writers.
  const other = await setImportStage()
  const used = stage
  stage = other
  const alone = await each.first()
  await each.second(alone.folderId)
  expect(timesAside(content)).toEqual(timesAside(await ledgerContent(other.owner, alone.folderId)))
  stage = used
  await other.close()
})

test.each(Object.entries(imports))(
  '%s fails after 4 deadlocks, and its error names the other writer',
  async (_, each) => {
    const { folderId } = await each.first()
    const before = [await rowCounts(stage.owner), await ledgerContent(stage.owner, folderId)]
    const { result, writers } = await collide(4, each.rows, folderId, () => each.second(folderId))
    expect(result!.status).toBe('rejected')
    const { message } = (result as PromiseRejectedResult).reason as Error
    expect(message).toMatch(
      /^The import collided with another writer 4 times, .*nothing was loaded\. The last one was process (\d+) \(a booker\), over rows of \w+\. Import again once/,
    )
    expect(writers).toContain(Number(/process (\d+)/.exec(message)![1]))
    expect([await rowCounts(stage.owner), await ledgerContent(stage.owner, folderId)]).toEqual(before)
    const { rows } = await stage.owner.query(`select relname from pg_class where relpersistence = 't'`)
    expect(rows).toEqual([])
  },
)

test('unknown members of the file are counted once, however often an import starts again', async () => {
  const { folderId } = await imports['mad --replace']!.first()
  const more = mad.replaceAll('"lettering":{"state"', '"vat":1,"lettering":{"state"')
  const { result } = await collide(2, 'movements', folderId, () =>
    stage.importMad(more, { folderId, replace: true }),
  )
  const { value } = result as PromiseFulfilledResult<Awaited<ReturnType<ImportStage['importMad']>>>
  expect(value.unknownMembers).toEqual(
    new Map([['data.entries[].movements[].vat', more.split('"vat":1').length - 1]]),
  )
})

test('progress is shown once, however often an import starts again', () => {
  const shown: string[] = []
  const show = showFileProgress({ progress: (text) => shown.push(text) })
  for (const bytes of [0, 1e6, 2e6, 0, 1e6, 3e6]) show({ step: 'loading', bytes, bytesTotal: 3e6, lines: 0 })
  expect(shown.map((text) => text.split(',')[0])).toEqual([
    'loading: 0.0 of 3.0 MB',
    'loading: 1.0 of 3.0 MB',
    'loading: 2.0 of 3.0 MB',
    'loading: 3.0 of 3.0 MB',
  ])
})
