/**
 * A PostgreSQL server of one test, and a hot standby that streams from it. Both begin as copies of the data folder that
 * the run starts with, whose server has stopped: a standby needs no more than the state of its primary at some moment.
 */
import { appendFile, chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { databaseUser } from '../../../src/db/embedded/programs.ts'
import { ask } from '../servers/database.ts'
import { type OwnDatabase, startOwnDatabase } from '../servers/own-database.ts'
import { type Proxy as Stream, startProxy } from '../servers/proxy.ts'
import { until } from '../until.ts'

export interface Replication {
  primary: OwnDatabase
  standby: Standby
  drop(): Promise<void>
}

/** `stop` ends its processes like a crash. `start` continues as a standby or, after a promotion, as a primary. */
export interface Standby extends OwnDatabase {
  /** Queries see the present state until `resumeReplay`, while the log still arrives. */
  pauseReplay(): Promise<void>
  resumeReplay(): Promise<void>
  /** Ends the stream: commits of the primary no longer arrive, and a promotion loses them. */
  cutStream(): Promise<void>
  restoreStream(): Promise<void>
  /** Bytes of the log that the primary has written and that queries here do not see yet. */
  lag(): Promise<number>
  /** Waits until queries here see everything that the primary has committed by now. */
  catchUp(): Promise<void>
  /** Streams from that server from now on. */
  follow(server: OwnDatabase): Promise<void>
  /** Makes it a separate primary, in about 0.1 seconds. Commits that have not arrived are lost. */
  promote(): Promise<void>
}

/**
 * Starts both in about a second. Their databases are migrated and have no tenants.
 * @param primaryDisk where the folder of the primary is created
 */
export async function startReplication(primaryDisk?: string): Promise<Replication> {
  // Log is kept for a standby whose stream a test has cut: a new database, for example, makes the primary forget its
  // log.
  const primary = await startOwnDatabase((path) => configure(path, { wal_keep_size: '1GB' }), primaryDisk)
  const standby = await addStandby(primary)
  return {
    primary,
    standby,
    drop: async () => {
      await standby.drop()
      await primary.drop()
    },
  }
}

/** Drop the standby before the primary. */
export async function addStandby(primary: OwnDatabase): Promise<Standby> {
  const stream = await startProxy(primary.ownerUrl)
  const server = await startOwnDatabase(async (path) => {
    await configure(path, {
      primary_conninfo: connectionWords(stream.url),
      // With the default, a restored stream is noticed after five seconds.
      wal_retrieve_retry_interval: '100ms',
      hot_standby_feedback: 'on',
    })
    await writeFile(join(path, 'standby.signal'), '')
    if (databaseUser) await chown(join(path, 'standby.signal'), databaseUser.uid, databaseUser.gid)
  })
  return controls(primary, server, stream)
}

function controls(primary: OwnDatabase, server: OwnDatabase, stream: Stream): Standby {
  let isStreaming = true
  const written = () => firstValue(primary.ownerUrl, 'select pg_current_wal_lsn()')
  const bytesUntil = async (position: unknown): Promise<number> =>
    Number(
      await firstValue(server.ownerUrl, 'select pg_wal_lsn_diff($1, pg_last_wal_replay_lsn())', [position]),
    )
  return {
    ...server,
    pauseReplay: async () => {
      await firstValue(server.ownerUrl, 'select pg_wal_replay_pause()')
      await until(
        async () =>
          (await firstValue(server.ownerUrl, 'select pg_get_wal_replay_pause_state()')) === 'paused',
      )
    },
    resumeReplay: async () => {
      await firstValue(server.ownerUrl, 'select pg_wal_replay_resume()')
    },
    cutStream: async () => {
      if (isStreaming) await stream.cut()
      isStreaming = false
    },
    restoreStream: async () => {
      if (!isStreaming) await stream.restore()
      isStreaming = true
    },
    lag: async () => bytesUntil(await written()),
    catchUp: async () => {
      const position = await written()
      await until(async () => (await bytesUntil(position)) <= 0)
    },
    follow: async ({ ownerUrl }) => stream.redirectTo(ownerUrl),
    promote: () => server.control('promote'),
    drop: async () => {
      await server.drop()
      await stream.cut()
    },
  }
}

/** Later lines of this file count. */
async function configure(path: string, settings: Record<string, string>): Promise<void> {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`)
  await appendFile(join(path, 'postgresql.auto.conf'), lines.join(''))
}

function connectionWords(url: string): string {
  const { hostname, port, username, password } = new URL(url)
  return `host=${hostname} port=${port} user=${username} password=${password} sslmode=disable`
}

/** The first field of the first row. */
async function firstValue(url: string, statement: string, values: unknown[] = []): Promise<unknown> {
  const [row = {}] = await ask(url, statement, values)
  return Object.values(row)[0]
}
