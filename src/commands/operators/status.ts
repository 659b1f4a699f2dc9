/**
 * `status`: tells operators and their monitors whether all is well, as far as the database shows it. The command changes
 * nothing and migrates no server. Only problems that stop the service, or soon will, change the exit code. Their limits are
 * those of the alerts (`ops/prometheus/alerts.yml`). Tokens that end and receivers that fail do not count: they are for
 * partners to mend.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import packageJson from '../../../package.json' with { type: 'json' }
import { command } from '../../../packages/terminal/src/command.ts'
import { Failure } from '../../../packages/terminal/src/command-errors.ts'
import { isUnderMaintenance } from '../../auth/callers.sql.ts'
import {
  listProcesses,
  nameOfKey,
  processText,
  readFingerprints,
  type ServiceProcess,
} from '../../auth/master-key.sql.ts'
import { listTokens } from '../../auth/tokens.sql.ts'
import type { Config } from '../../config.ts'
import type { Address } from '../../db/address.ts'
import { type Database, replicaAddress } from '../../db/database.ts'
import { readQueueStanding } from '../../db/migrations/queue-schema.ts'
import { readEpoch, readVersion } from '../../db/migrations/version.sql.ts'
import { createPool, inTransaction } from '../../db/pool.ts'
import { readErasures } from '../../erasure/erasure.sql.ts'
import { readReplay, readWritten } from '../../exports/sources/replica.sql.ts'
import type { Facts, Table } from '../../lists/list.ts'
import { tokenList } from '../../lists/partners.ts'
import { type Endpoint, endpointsOf, readExpiry } from '../../telemetry/certificates.ts'
import { readDeliveryHealth } from '../../webhooks/lateness.sql.ts'
import { factLines, listLines } from '../terminal/list-lines.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { withDatabase } from '../with-database.ts'

/** Exit code if the status could be read and something needs the operator. */
export const unwellCode = 2

/**
 * The limits of the alerts ExportQueueStuck, DeliveriesLate, ReplicaBehind and CertificateExpires, whose names begin
 * with `Grandlivre`.
 */
const limits = { queueSeconds: 600, deliverySeconds: 600, replicaSeconds: 30, certificateDays: 14 }

/** How long a replica may take to replay what the main database has written. After that it counts as behind. */
const replayMs = 2_000

export const statusCommand = command({
  name: 'status',
  summary:
    'show whether all is well: processes, epoch, queue, deliveries, replica, certificates, keys, tokens that end',
  options: { json: { help: 'print one line of JSON; its problems list what needs the operator' } },
  run: (terminal: StaffTerminal, { json }) =>
    withDatabase(
      terminal,
      async (opened) => {
        const status = await readStatus(opened)
        const problems = problemsOf(status)
        if (json) terminal.json({ well: problems.length === 0, problems, ...status })
        else terminal.print(linesOf(status))
        if (problems.length > 0)
          throw new Failure(['Not well:', ...problems.map((problem) => `  ${problem}`)].join('\n'), [], {
            exitCode: unwellCode,
          })
        if (!json) terminal.print(['', 'All is well.'])
      },
      { migrates: false },
    ),
})

type Status = Awaited<ReturnType<typeof readStatus>>

async function readStatus({ pool, database, config }: { pool: Pool; database: Database; config: Config }) {
  const { version, isReadOnly } = await readVersion(pool)
  const { fingerprint, nextFingerprint } = await readFingerprints(pool)
  const keys = [fingerprint, nextFingerprint].filter((key) => key !== null)
  const epoch = await readEpoch(pool)
  const ofDatabase = await inTransaction(pool, async (client) => ({
    maintenance: await isUnderMaintenance(client),
    processes: await listProcesses(client, keys),
    queue: await readQueueStanding(client),
    deliveries: await readDeliveryHealth(client),
    tokensThatEnd: await listTokens(client, { endSoon: true }),
    erasures: (await readErasures(client, 'underWay')).map(({ kind, id, code, begunAt }) => ({
      kind,
      id: code ?? id,
      begunAt,
    })),
  }))
  return {
    version: packageJson.version,
    database: { version, isReadOnly },
    epoch,
    key: fingerprint && nameOfKey(fingerprint),
    /** The key that `rotate-key` is changing to. */
    nextKey: nextFingerprint && nameOfKey(nextFingerprint),
    ...ofDatabase,
    replica: await readReplica(pool, replicaAddress(config, database.service)),
    certificates: await Promise.all(endpointsOf(config).map(readCertificate)),
  }
}

/** The state of the replica; null if there is no replica. */
async function readReplica(main: Pool, replica: Address | undefined) {
  if (!replica) return null
  const pool = createPool(replica, { max: 1, applicationName: 'grandlivre cli' })
  try {
    const { server, written } = await readWritten(main)
    const deadline = performance.now() + replayMs
    for (;;) {
      const replay = await readReplay(pool, [written])
      if (!replay.isReplica && replay.server !== server)
        return { behindSeconds: null, error: 'no replica of the main database' }
      if (!replay.isReplica || replay.reached > 0) return { behindSeconds: 0, error: null }
      if (performance.now() > deadline) return { behindSeconds: replay.commitAgeSeconds, error: null }
      await delay(100)
    }
  } catch (error) {
    return { behindSeconds: null, error: reasonOf(error) }
  } finally {
    await pool.end()
  }
}

async function readCertificate({ endpoint, url }: Endpoint) {
  try {
    return { endpoint, url, expiresAt: new Date(await readExpiry(url)).toISOString(), error: null }
  } catch (error) {
    return { endpoint, url, expiresAt: null, error: reasonOf(error) }
  }
}

/** The reason of an error. An error for callers over HTTP hides why a connection failed: the reason is its cause. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as Error
  return cause instanceof Error ? cause.message : String(cause)
}

/** What needs the operator, in sentences. */
function problemsOf(status: Status): string[] {
  const { database, maintenance, processes, key, nextKey, queue, deliveries, replica, certificates } = status
  const { erasures } = status
  const problems: (string | false)[] = [
    processes.length === 0 && 'No process of the service is connected to this database.',
    database.isReadOnly && 'The database takes no changes.',
    maintenance && 'Maintenance is on: every authenticated request gets 503 (maintenance off).',
    nextKey !== null && `rotate-key goes from key ${key} to key ${nextKey} and is not done: run it again.`,
    ...erasures.map(
      ({ kind, id, begunAt }) =>
        `The erasure of ${kind} ${id}, begun ${begunAt}, has not ended. If it is not running, run ${kind} delete ${id} --yes again.`,
    ),
    // Outside a rotation, it is unknown which keys processes of an older version have.
    ...processes
      .filter(({ hasKeys, version }) => !hasKeys && (version !== null || nextKey !== null))
      .map((process) => `A process lacks the keys of this database: ${processText(process)}.`),
    queue.ageSeconds > limits.queueSeconds &&
      `A full export has waited for ${span(queue.ageSeconds)} for a process to begin it.`,
    deliveries.oldestSeconds > limits.deliverySeconds &&
      `A delivery has waited for ${span(deliveries.oldestSeconds)}, though its receiver does not fail.`,
    replica?.error != null && `The replica of EXPORT_DATABASE_URL cannot be used: ${replica.error}.`,
    (replica?.behindSeconds ?? 0) > limits.replicaSeconds &&
      `The replica of EXPORT_DATABASE_URL is behind by ${span(replica!.behindSeconds!)}.`,
    ...certificates.map(({ url, expiresAt, error }) => {
      if (error !== null) return `The certificate of ${url} cannot be read: ${error}.`
      const seconds = (Date.parse(expiresAt!) - Date.now()) / 1_000
      if (seconds > limits.certificateDays * 86_400) return false
      return `The certificate of ${url} ${seconds > 0 ? `expires in ${span(seconds)}` : 'has expired'}.`
    }),
  ]
  return problems.filter((problem) => problem !== false)
}

const processList: Pick<Table<ServiceProcess>, 'columns'> = {
  columns: {
    Process: ({ name }) => name ?? 'of a former version',
    Version: ({ version }) => version ?? '',
    Address: ({ address }) => address ?? '',
    Connected: ({ connectedAt }) => ({ at: connectedAt }),
    Keys: ({ hasKeys, version }) => (hasKeys ? 'as the database' : version === null ? '?' : 'others'),
  },
}

function linesOf(status: Status): string[] {
  const { processes, tokensThatEnd } = status
  return [
    ...factLines(factsOf(status)),
    '',
    ...(processes.length === 0 ? ['No process runs.'] : listLines(processList, processes)),
    ...(tokensThatEnd.length === 0
      ? []
      : ['', 'Tokens that end within 14 days:', ...listLines(tokenList, tokensThatEnd)]),
  ]
}

function factsOf(status: Status): Facts {
  const { database, maintenance, epoch, key, nextKey, queue, deliveries, replica, certificates } = status
  return {
    Version: `${status.version} of this command, ${database.version} of the database`,
    Maintenance: maintenance ? 'on' : '',
    Epoch: `${epoch.number}, began ${epoch.began}, ${span(epoch.ageSeconds)} ago`,
    Key: key ?? 'none yet',
    'Next key': nextKey,
    'Full exports that wait': queue.length === 0 ? '0' : `${queue.length}, for ${span(queue.ageSeconds)}`,
    'Oldest delivery':
      deliveries.oldestSeconds > 0 ? `waits for ${span(deliveries.oldestSeconds)}` : 'none waits',
    Subscriptions:
      `${deliveries.enabled} enabled, ${deliveries.failing} whose receiver fails, ` +
      `${deliveries.disabled} disabled, ${deliveries.suspended} suspended`,
    Replica:
      replica &&
      (replica.error ?? (replica.behindSeconds ? `${span(replica.behindSeconds)} behind` : 'level')),
    ...Object.fromEntries(
      certificates.map(({ endpoint, url, expiresAt, error }) => [
        `Certificate ${endpoint}`,
        [url, ' ', expiresAt === null ? { foreign: error } : `until ${expiresAt}`],
      ]),
    ),
  }
}

/** A time span such as `5 s`, `12 min`, `3 h` or `40 days`. */
function span(seconds: number): string {
  const units = [
    [86_400, 'days'],
    [3_600, 'h'],
    [60, 'min'],
  ] as const
  const [size, unit] = units.find(([size]) => seconds >= 2 * size) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${unit}`
}
