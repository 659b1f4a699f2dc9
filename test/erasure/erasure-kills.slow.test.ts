/**
 * Kills `folder delete` many times while its folder is exported and followed, and while another folder is read. The
 * last run completes the erasure, no answer is wrong, and neither a dump of the database nor the store contains data of
 * the folder.
 *
 * `npm run long -- erasures` does it with 600,000 movements and KILLS kills, and writes its figures to ERASURE_RECORD.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startCli } from '../support/cli.ts'
import { download } from '../support/download.ts'
import { ended, trigger } from '../support/full-export.ts'
import { arePostgresToolsInstalled, postgresTools } from '../support/guides/postgres-tools.ts'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { seededYear } from '../support/ledgers/seeded-year.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { copyLedger, type TestDatabase } from '../support/servers/database.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const kills = Number(process.env['KILLS'] ?? 3)
const movements = Number(process.env['ERASED_MOVEMENTS'] ?? 15_000)
const path = process.env['ERASURE_RECORD']

let database: TestDatabase
let client: pg.Client
let dataDir: string
let service: TestService
let erased: { schemaId: string; firmId: string; folderId: string; exercices: { id: string }[] }
let own: Record<string, string>
let ofFirm: Record<string, string>
let neighbour: Record<string, string>

beforeAll(async () => {
  const { database: copied, facts } = await copyLedger(seededYear(movements))
  database = copied
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-erasures-'))
  await mkdir(join(dataDir, 'files'))
  const staff = await createTenants(database.ownerUrl)
  client = staff.client
  const secret = await staff.thirdParty('ONE')
  const { rows } = await client.query(
    'select schema_id as "schemaId", firm_id as "firmId", id as "folderId" from grandlivre.folders where id = $1',
    [facts.folderId],
  )
  erased = { ...facts, ...rows[0] }
  const partner = (await client.query(`select id from grandlivre.third_parties where code = 'ONE'`)).rows[0]
    .id
  await fillLedger(client, { ...folders.first, label: 'neighbour', thirdPartyId: partner })
  own = credentials(await staff.token('ONE', 'api', erased), secret)
  ofFirm = credentials(await staff.token('ONE', 'firm', { ...erased, folderId: null }), secret)
  neighbour = credentials(await staff.token('ONE', 'api', folders.first), secret)
  const store = { kind: 'filesystem', folder: join(dataDir, 'files') } as const
  service = await startTestService(database, { store })
}, 600_000)
afterAll(async () => {
  await service?.stop()
  await client?.end()
  await database?.drop()
  if (dataDir) await rm(dataDir, { recursive: true, force: true })
})

const seen = { requests: 0, streams: 0, whole: 0, refused: 0, statuses: new Set<number>() }

/** Reads another folder in small requests until the signal. @returns their latencies in milliseconds */
async function readNeighbour(signal: AbortSignal): Promise<number[]> {
  const latencies: number[] = []
  while (!signal.aborted) {
    const began = performance.now()
    const { status } = await download(`${service.url}/api/v1/mad/journals?version=1.0.0`, neighbour)
    latencies.push(performance.now() - began)
    seen.requests += 1
    seen.statuses.add(status)
    await delay(20)
  }
  return latencies.sort((a, b) => a - b)
}

const p99 = (sorted: number[]) => sorted[Math.floor(sorted.length * 0.99)] ?? 0

/** Reads the year repeatedly: each answer is the whole former year, or is refused. */
async function streamYear(signal: AbortSignal, whole: string): Promise<void> {
  const url = `${service.url}/api/v1/mad/movements?version=1.0.0&idExercice=${erased.exercices.at(-1)!.id}`
  while (!signal.aborted) {
    const { status, sha256 } = await download(url, { ...ofFirm, 'society-id': erased.folderId })
    seen.streams += 1
    if (status === 200) expect(sha256).toBe(whole)
    else expect(status).toBe(404)
    seen[status === 200 ? 'whole' : 'refused'] += 1
    await delay(50)
  }
}

/** Finds the lines with one of these texts in a dump of the whole database and in the files of the store. */
async function traces(needles: string[]): Promise<string[]> {
  const dump = join(dataDir, 'dump.sql')
  await promisify(execFile)(join(postgresTools, 'pg_dump'), ['--dbname', database.ownerUrl, '--file', dump])
  const list = join(dataDir, 'needles')
  await writeFile(list, `${needles.join('\n')}\n`)
  const grep = promisify(execFile)('grep', ['-F', '-f', list, dump], { maxBuffer: 2 ** 28 })
  const lines = await grep.then(
    ({ stdout }) => stdout.split('\n').filter(Boolean),
    () => [],
  )
  const files = await readdir(join(dataDir, 'files'), { recursive: true, withFileTypes: true })
  return [...lines, ...files.filter((file) => file.isFile()).map(({ name }) => name)]
}

test.skipIf(!arePostgresToolsInstalled)(
  `${kills} kills of an erasure leave no data behind, and no caller sees a wrong answer`,
  async () => {
    const { folderId } = erased
    const texts = await client.query<{ text: string }>(
      `select distinct on (description) description as text from grandlivre.movements where folder_id = $1 and length(description) > 14
       order by description limit 1000`,
      [folderId],
    )
    const folder = (
      await client.query('select name, siret from grandlivre.folders where id = $1', [folderId])
    ).rows[0]
    const needles = [
      folder.name,
      folder.siret,
      folder.reference,
      ...texts.rows.map(({ text }) => text),
    ].filter(Boolean)
    const { body: job } = await trigger(service.url, own)
    expect(await ended(service.url, own, job.id)).toMatchObject({ status: 'DONE' })
    const year = `${service.url}/api/v1/mad/movements?version=1.0.0&idExercice=${erased.exercices.at(-1)!.id}`
    const { sha256 } = await download(year, own)
    const quiet = new AbortController()
    const before = readNeighbour(quiet.signal)
    await delay(5_000)
    quiet.abort()
    // No stream of the year runs beside either measurement: a stream costs more than the erasure.
    const latencies = { before: p99(await before), during: 0 }
    const stop = new AbortController()
    const streams = streamYear(stop.signal, sha256)
    await until(() => seen.whole > 0)

    const after = until(() => seen.refused > 0).then(() => readNeighbour(stop.signal))
    const list = await download(`${service.url}/api/v1/mad/ledgers?version=1.0.0`, ofFirm)
    const headers = { ...ofFirm, 'If-None-Match': list.headers['etag'] as string }
    const follower = download(`${service.url}/api/v1/mad/ledgers?version=1.0.0&wait=30`, headers)
    const began = performance.now()
    const erase = () =>
      startCli(
        { ownerUrl: database.ownerUrl, env: { DATA_DIR: dataDir } },
        ...['folder', 'delete', folderId, '--yes'],
      )
    let killed = 0
    for (let kill = 0; kill < kills; kill++) {
      const { child, ended: over } = erase()
      await Promise.race([delay(700 + Math.random() * 1_300), over])
      child.kill('SIGKILL')
      const { code } = await over
      if (code === null) killed += 1
    }
    const last = await erase().ended
    const seconds = (performance.now() - began) / 1000
    expect(last.code, last.error).toBe(0)
    expect((await follower).text).not.toContain(`"${folderId}"`)
    await until(() => seen.refused > 0)
    stop.abort()
    await streams
    latencies.during = p99(await after)
    expect([...seen.statuses]).toEqual([200])
    expect(await traces(needles)).toEqual([])
    const receipt = JSON.parse(last.out)
    expect(receipt.gone).toMatchObject({ movements, exports: 1, files: 1 })
    const proof = await startCli(
      { ownerUrl: database.ownerUrl, env: { DATA_DIR: dataDir } },
      'folder',
      'erased',
      folderId,
    ).ended
    expect(proof).toMatchObject({ code: 0 })
    if (path) {
      const { statuses: _, ...counts } = seen
      const record = {
        at: new Date().toISOString(),
        movements,
        killed,
        seconds,
        p99Ms: latencies,
        needles: needles.length,
        ...counts,
        gone: receipt.gone,
      }
      await writeFile(path, `${JSON.stringify(record, null, 2)}\n`)
      expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(record)
    }
  },
  900_000,
)
