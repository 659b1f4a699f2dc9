/** Runs every command of the page on backups. The restored service gives the same bytes. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseUser, findPrograms, runProgram } from '../../src/db/embedded/programs.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { stepsOf } from '../support/guides/blocks.ts'
import { arePostgresToolsInstalled, postgresTools } from '../support/guides/postgres-tools.ts'
import { type Shell, startShell } from '../support/guides/shell.ts'
import { exercices, fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { environment } from '../support/process.ts'
import { startOwnDatabase } from '../support/servers/own-database.ts'
import { freePort } from '../support/servers/pgbouncer.ts'
import { withDatabase } from '../support/servers/server.ts'
import { startTestService, testMasterKey } from '../support/service.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
const page = await readFile(join(root, 'docs/operators/restore.md'), 'utf8')

const source = forTests(startOwnDatabase)
const target = forTests(startOwnDatabase)
const opened = forTests(() => openFolder('restore'))
let folder: string
let shell: Shell
let signed: Record<string, string>
/** The exports of the source before the dump. */
let original: Exported[]

beforeAll(async () => {
  folder = opened.path
  await mkdir(join(folder, 'bin'))
  const npm = `#!/bin/sh\nshift 3\ncd ${root} && exec ${process.execPath} src/cli.ts "$@"\n`
  await writeFile(join(folder, 'bin/npm'), npm, { mode: 0o755 })
  await mkdir(join(folder, 'work'))
  shell = startShell(join(folder, 'work'), {
    ...environment,
    PATH: `${join(folder, 'bin')}:${postgresTools}:${environment.PATH}`,
    MASTER_KEY: testMasterKey.toString('hex'),
  })
  await fill()
})
afterAll(() => shell?.close())

async function fill(): Promise<void> {
  const staff = await createTenants(source.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const thirdPartyId = await staff.thirdPartyId('PARTNER')
  await fillLedger(staff.client, { ...folders.first, label: 'first', thirdPartyId })
  signed = credentials(await staff.token('PARTNER', 'api', folders.first), secret)
  await staff.end()
  original = await served(source.ownerUrl, 'source', async (url) => {
    const { body } = await trigger(url, signed)
    exportId = body.id
    await ended(url, signed, exportId)
  })
}

let exportId: string

interface Exported {
  path: string
  sha256: string
  etag: string | null
  cursor: string | null
}

const paths = [
  ...exercices.flatMap(({ id }) =>
    ['movements', 'entries', 'balance'].map((what) => `${what}?idExercice=${id}`),
  ),
  ...['accounts?', 'journals?', 'payments?', 'banks?', 'exercices?', 'accountingFolder?'],
].map((path) => `/api/v1/mad/${path}&version=1.0.0`)

/** Starts a process, and reads every export and the file of the full export. */
async function served(
  ownerUrl: string,
  name: string,
  also: (url: string) => Promise<void> = async () => {},
): Promise<Exported[]> {
  const store = { kind: 'filesystem', folder: join(folder, name, 'files') } as const
  const service = await startTestService({ ownerUrl }, { store })
  try {
    await also(service.url)
    const { url: link = '' } = await ended(service.url, signed, exportId)
    const file = new URL(link)
    const found: Exported[] = []
    for (const path of [...paths, file.pathname + file.search]) found.push(await exported(service.url, path))
    return found
  } finally {
    await service.stop()
  }
}

async function exported(url: string, path: string): Promise<Exported> {
  const answer = await fetch(url + path, { headers: signed })
  const sha256 = createHash('sha256')
    .update(Buffer.from(await answer.arrayBuffer()))
    .digest('hex')
  expect([answer.status, path]).toEqual([200, path])
  const [etag, cursor] = [answer.headers.get('etag'), answer.headers.get('x-ledger-cursor')]
  // The link of the file is signed for its own server.
  return { path: path.replace(/\?expires.*|\?.*signature.*/, ''), sha256, etag, cursor }
}

const bytesOf = (answers: Exported[]) => answers.map(({ path, sha256 }) => ({ path, sha256 }))

/** Statuses of the conditional requests that a partner makes with what it has. */
async function honoured(url: string): Promise<number[]> {
  const { path, etag, cursor } = original[0]!
  const unchanged = await fetch(url + path, { headers: { ...signed, 'If-None-Match': etag! } })
  const since = await fetch(`${url}${path}&since=${cursor}`, { headers: signed })
  await Promise.all([unchanged.arrayBuffer(), since.arrayBuffer()])
  return [unchanged.status, since.status]
}

let restoredUrl: string

async function expectSame(ownerUrl: string, conditional: number[]): Promise<void> {
  const answers = await served(ownerUrl, 'restored', async (url) => {
    // The restored database keeps the epoch of the dump until it first draws a number.
    await until(async () => {
      return isDeepStrictEqual(await honoured(url), conditional)
    })
  })
  expect(bytesOf(answers)).toEqual(bytesOf(original))
}

const events: Record<string, () => Promise<void>> = {
  'a process notices by itself, gives the same exports, and refuses cursors': () =>
    expectSame(restoredUrl, [200, 410]),
  'a process gives the same exports, and refuses cursors': () => expectSame(restoredUrl, [200, 410]),
  'PostgreSQL starts on the base backup, and a process gives the same exports under the same cursors': () =>
    startedOn('data', (url) => expectSame(url, [304, 200])),
  'PostgreSQL recovers the base backup, and a process notices by itself': () =>
    startedOn('recovered', async (url) => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await until(async () => {
        const { rows } = await client.query('select pg_is_in_recovery() as recovers')
        return !rows[0].recovers
      })
      await client.end()
      await expectSame(url, [200, 410])
    }),
}

/** Starts PostgreSQL on a copy of the source. @param run gets its address, as the owner */
async function startedOn(copy: string, run: (url: string) => Promise<void>): Promise<void> {
  const data = join(folder, 'work/backup', copy)
  if (databaseUser)
    await promisify(execFile)('chown', ['-R', `${databaseUser.uid}:${databaseUser.gid}`, data])
  const { pg_ctl } = await findPrograms()
  const port = await freePort()
  const settings = { port, listen_addresses: '127.0.0.1', unix_socket_directories: "''" }
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const start = ['start', '--wait', `--pgdata=${data}`, `--log=${data}/server.log`]
  await runProgram(pg_ctl, [...start, `--options=${options.join(' ')}`])
  try {
    const url = new URL(source.ownerUrl)
    url.port = String(port)
    await run(url.href)
  } finally {
    await runProgram(pg_ctl, ['stop', '--wait', '--mode=fast', `--pgdata=${data}`])
  }
}

test.skipIf(!arePostgresToolsInstalled)(
  'a restore that follows the page on backups brings back every export byte for byte',
  async () => {
    restoredUrl = withDatabase(target.ownerUrl, 'restored')
    const blanks: [string, string][] = [
      ['postgres://owner:...@db.example.com/ledger', source.ownerUrl],
      ['postgres://owner:...@new.example.com/postgres', withDatabase(target.ownerUrl, 'postgres')],
      ['postgres://owner:...@new.example.com/restored', restoredUrl],
      ['/srv/grandlivre', join(folder, 'source')],
      ['/srv/restored', join(folder, 'restored')],
      // This folder stays empty: the backup contains enough of the log.
      ['/srv/archive', join(folder, 'archive')],
    ]
    const filled = (text: string) =>
      blanks.reduce((filling, [name, value]) => filling.replaceAll(name, value), text)
    const met: string[] = []
    for (const step of stepsOf(page)) {
      if (step.kind === 'run') await shell.run(filled(step.text))
      else if (step.kind === 'meanwhile') {
        met.push(step.event)
        await events[step.event]!()
      } else throw new Error(`Line ${step.line} is not tried`)
    }
    expect(met).toEqual(Object.keys(events))
  },
)
