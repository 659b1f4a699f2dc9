/**
 * The main database is lost and a standby takes its place, beside another standby that exports read: it follows the new
 * server through its epochs, or shows a state that is lost until the first draw begins an epoch.
 */
import type { Pool } from 'pg'
import { afterEach, expect, test } from 'vitest'
import { createOwnerPool, createPool } from '../../../src/db/pool.ts'
import {
  type ExportSnapshot,
  ExportSources,
  type ReplicaNews,
} from '../../../src/exports/sources/export-sources.ts'
import type { SeenState } from '../../../src/exports/sources/replica.sql.ts'
import { cursorExpression, readCursor } from '../../../src/ledger/changes/cursor.sql.ts'
import { noTelemetry } from '../../../src/telemetry/telemetry.ts'
import { defaultTiming } from '../../../src/timing.ts'
import { fillPrimary } from '../../support/replication/fill-primary.ts'
import { addStandby, type Standby, startReplication } from '../../support/replication/standby.ts'

const schemaId = '100'
const folderId = '111'
const timeZone = 'Europe/Paris'

const endings: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

interface Cluster {
  /** The standby that takes the place of the primary, as the service sees it afterwards. */
  main: Standby
  replica: Standby
  /** Names the account 107, on the server that is the main one now. */
  change(name: string): Promise<void>
  /** What a request sees on the main database. */
  seen(): Promise<SeenState>
  /** The primary is lost, and `main` takes its place. */
  promote(): Promise<void>
  sources(): { sources: ExportSources; news: ReplicaNews[] }
  owner(): Pool
}

async function startCluster(): Promise<Cluster> {
  const { primary, standby: main, drop } = await startReplication()
  endings.push(drop)
  const replica = await addStandby(primary)
  endings.push(() => replica.drop())
  const { staff } = await fillPrimary(primary.ownerUrl)
  await staff.end()
  const ownerOf = (url: string) => {
    const pool = createOwnerPool(url, { max: 2, applicationName: 'grandlivre test' })
    endings.push(() => pool.end())
    return pool
  }
  let owner = ownerOf(primary.ownerUrl)
  const poolOf = (url: string) => {
    const pool = createPool(url, { max: 6, applicationName: 'grandlivre export' })
    endings.push(() => pool.end())
    return pool
  }
  return {
    main,
    replica,
    change: async (name) => {
      await owner.query('update accounts set name = $1 where (schema_id, folder_id, id) = (100, 111, 107)', [
        name,
      ])
    },
    seen: async () => {
      const { rows } = await owner.query(
        `select ${cursorExpression(timeZone)} as cursor from folders where id = 111`,
      )
      return { schemaId, folderId, cursor: rows[0].cursor }
    },
    promote: async () => {
      await primary.stop()
      await main.promote()
      owner = ownerOf(main.ownerUrl)
    },
    sources: () => {
      const news: ReplicaNews[] = []
      const timing = { ...defaultTiming.replica, silentMs: 10_000, leftMs: 60_000 }
      const parts = {
        pool: poolOf(replica.serviceUrl),
        timing,
        report: (each: ReplicaNews) => news.push(each),
      }
      const sources = new ExportSources(poolOf(main.serviceUrl), { ...parts, telemetry: noTelemetry })
      return { sources, news }
    },
    owner: () => owner,
  }
}

/** The name of the account in a snapshot, and its cursor. */
async function shownBy(
  snapshot: ExportSnapshot,
): Promise<{ isOfReplica: boolean; name: string; cursor: string }> {
  const { rows: accounts } = await snapshot.first.query(
    'select name from accounts where folder_id = 111 and id = 107',
  )
  const { rows } = await snapshot.first.query(
    `select ${cursorExpression(timeZone)} as cursor from folders where id = 111`,
  )
  await snapshot.close()
  return { isOfReplica: snapshot.isOfReplica, name: accounts[0].name, cursor: rows[0].cursor }
}

const epochOf = (cursor: string) => cursor.split('.')[1]

test('exports wait for a replica that follows the new server, through three epochs, and read it', async () => {
  const cluster = await startCluster()
  const { main, replica } = cluster
  await Promise.all([main.catchUp(), replica.catchUp()])
  const first = await cluster.seen()
  await cluster.promote()
  const { sources, news } = cluster.sources()
  const epochs = [epochOf(first.cursor)]
  for (const name of ['first', 'second', 'third']) {
    // Only now does the replica hear of the new server, or of the next epoch.
    if (name === 'first') await cluster.change(name)
    else {
      await replica.pauseReplay()
      await cluster.owner().query(`select setval('server_name', 1)`)
      await cluster.change(name)
    }
    const seen = await cluster.seen()
    epochs.push(epochOf(seen.cursor))
    const opened = sources.open({ schemaId, seen })
    if (name === 'first') await replica.follow(main)
    else await replica.resumeReplay()
    expect(await shownBy(await opened)).toEqual({ isOfReplica: true, name, cursor: seen.cursor })
  }
  expect(new Set(epochs).size).toBe(4)
  expect(news).toEqual([])
})

test('before the new epoch a replica may show a lost state; its cursor is then refused, and the replica is never read again', async () => {
  const cluster = await startCluster()
  const { main, replica } = cluster
  await Promise.all([main.catchUp(), replica.catchUp()])
  await main.cutStream()
  await cluster.change('lost')
  await replica.catchUp()
  await cluster.promote()
  const { sources, news } = cluster.sources()
  const before = await cluster.seen()
  const lost = await shownBy(await sources.open({ schemaId, seen: before }))
  expect([lost.isOfReplica, lost.name, epochOf(lost.cursor)]).toEqual([true, 'lost', epochOf(before.cursor)])
  await cluster.change('kept')
  const { refusal } = await readCursorOnMain(cluster, lost.cursor)
  expect(refusal).toBe('epoch')
  const seen = await cluster.seen()
  for (let i = 0; i < 2; i++)
    expect(await shownBy(await sources.open({ schemaId, seen }))).toEqual({
      isOfReplica: false,
      name: 'kept',
      cursor: seen.cursor,
    })
  expect(news).toEqual([
    { left: { reason: 'behind', message: 'It shows the ledgers of another epoch than the main database' } },
  ])
})

async function readCursorOnMain(cluster: Cluster, cursor: string) {
  const client = await cluster.owner().connect()
  try {
    await client.query(`set grandlivre.schema_id = '${schemaId}'`)
    return await readCursor(client, cursor, { schemaId, folderId, timeZone })
  } finally {
    client.release(true)
  }
}
