/** No request fails because of the replica: it is silent, dies, cancels its queries, or is promoted. */
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { defaultTiming } from '../../../src/timing.ts'
import type { Download } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { downloadFile, ended, trigger } from '../../support/full-export.ts'
import { exportConnections, setReplicatedStage } from '../../support/replication/replicated-stage.ts'
import { type Proxy as Link, startProxy } from '../../support/servers/proxy.ts'
import { until } from '../../support/until.ts'

const stage = forTests(() =>
  setReplicatedStage(
    {},
    {
      timing: { ...defaultTiming, replica: { ...defaultTiming.replica, silentMs: 1_000, leftMs: 200 } },
      throughProxy: async (url) => {
        proxy = await startProxy(url)
        return proxy.url
      },
    },
  ),
)
/** Between the service and the standby. */
let proxy: Link
beforeAll(async () => {
  // A query that hinders the replay is cancelled at once, not after half a minute.
  await stage.onStandby('alter system set max_standby_streaming_delay = 0')
  await stage.onStandby('select pg_reload_conf()')
})
afterAll(async () => {
  await proxy?.cut()
})

const movements = '/mad/movements?version=1.0.0&idExercice=12'
const replica = 'the database of EXPORT_DATABASE_URL'

/** Each answer is whole, and shows the last change. */
async function expectExports(comment: string): Promise<void> {
  const answers = [movements, movements, movements, '/mad/accounts?version=1.0.0']
  for (const answer of await Promise.all(answers.map((path) => stage.get(path)))) expectWhole(answer, comment)
}

function expectWhole({ status, text, trailers, sha256 }: Download, comment: string): void {
  expect([status, text.includes(comment)]).toEqual([200, true])
  expect(trailers['x-content-sha256']).toBe(sha256)
}

async function isReadAgain(): Promise<void> {
  await until(async () => (await stage.degraded()).length === 0)
}

/**
 * The check of a new connection waits for it, too, so the export has to have its connections.
 * @returns an open transaction of the primary that locks the table; standbys lock it, too
 */
async function lock(table: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: stage.primary.ownerUrl })
  client.on('error', () => {})
  await client.connect()
  // A test that fails would otherwise keep the next ones, and the end of the file, waiting.
  onTestFinished(() => client.end())
  await client.query(`begin; lock table grandlivre.${table} in access exclusive mode`)
  await stage.onPrimary('checkpoint')
  return client
}

const waitsFor = (url: string) => async () => (await exportConnections(url, `wait_event_type = 'Lock'`)) > 0

test('a silent replica is abandoned quickly, and read again once it answers', async () => {
  await stage.change('before silence')
  await expectExports('before silence')
  proxy.freeze()
  await expectExports('before silence')
  expect(await stage.degraded()).toEqual([expect.stringContaining(replica)])
  proxy.thaw()
  await isReadAgain()
  expect(stage.logged('replica.left').length).toBeGreaterThan(0)
})

test('an export that the replica cancels before the first byte restarts on the main database', async () => {
  await stage.change('before the conflict')
  await expectExports('before the conflict')
  const ofAccounts = await lock('accounts')
  const answer = stage.get(movements)
  await until(waitsFor(stage.standby.ownerUrl))
  // What waits for accounts has read journals, and hinders the replay of this lock.
  const ofJournals = await lock('journals')
  await until(waitsFor(stage.primary.ownerUrl))
  for (const client of [ofAccounts, ofJournals]) await client.end()
  expectWhole(await answer, 'before the conflict')
  expect(stage.logged('replica.left').at(-1)).toContain('"conflict"')
  await isReadAgain()
})

test('a full export that the replica cancels restarts within the same attempt', async () => {
  await stage.change('in the file')
  await expectExports('in the file')
  const ofAccounts = await lock('accounts')
  const { body } = await trigger(stage.service.url, stage.company)
  await until(waitsFor(stage.standby.ownerUrl))
  const ofJournals = await lock('journals')
  await until(waitsFor(stage.primary.ownerUrl))
  for (const client of [ofAccounts, ofJournals]) await client.end()
  const job = await ended(stage.service.url, stage.company, body.id)
  expect(job.status).toBe('DONE')
  expect((await downloadFile(job.url!)).bytes.includes('in the file')).toBe(true)
  expect(stage.logged('export.started').length).toBe(1)
  expect(stage.logged('export.interrupted')).toEqual([])
  await isReadAgain()
})

test('a replica that dies while it looks for the first row makes no request fail', async () => {
  await stage.change('before the death')
  await expectExports('before the death')
  const locked = await lock('accounts')
  const answer = stage.get(movements)
  await until(waitsFor(stage.standby.ownerUrl))
  await stage.standby.stop()
  await until(waitsFor(stage.primary.ownerUrl))
  await locked.end()
  expectWhole(await answer, 'before the death')
  await expectExports('before the death')
  expect(await stage.degraded()).toEqual([expect.stringContaining(replica)])
  await stage.standby.start()
  await isReadAgain()
})

test('a promoted replica is no longer read, whatever is written there', async () => {
  await stage.change('before the promotion')
  await expectExports('before the promotion')
  await stage.standby.promote()
  await stage.onStandby(
    `update grandlivre.accounts set name = 'of another ledger' where (schema_id, folder_id, id) = (100, 111, 107)`,
  )
  await expectExports('before the promotion')
  await stage.change('after the promotion')
  await expectExports('after the promotion')
  expect(await stage.degraded()).toEqual([`${replica} (no replica of the main database)`])
})
