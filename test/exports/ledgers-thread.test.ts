/** What a thread does between two ledgers of an answer. The test plays the main thread. */
import { MessageChannel } from 'node:worker_threads'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { createPool } from '../../src/db/pool.ts'
import { sendLedgers } from '../../src/exports/run/ledgers/send-ledgers.ts'
import type { AskedLedger, EndedLedger, LedgersTask, NextLedger } from '../../src/exports/run/ledgers/task.ts'
import type { ExportHead, ExportSummary } from '../../src/exports/run/task.ts'
import { ExportSources } from '../../src/exports/sources/export-sources.ts'
import { ChannelReader } from '../../src/threads/channel.ts'
import { readLedgers } from '../support/changes/ledger-stream.ts'
import { forTests } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { until } from '../support/until.ts'

const applicationName = 'between ledgers'
const [first, second] = [folders.first.folderId, folders.sameFirm.folderId]

const stage = forTests(setExportStage)
const pool = forTests(() => createPool(stage.database.serviceUrl, { max: 4, applicationName }))
let tokenId: string

beforeAll(async () => {
  await stage.staff.thirdParty('BETWEEN')
})

beforeEach(async () => {
  tokenId = (await stage.staff.token('BETWEEN', 'firm', folders.first)).id
})

const query = async (sql: string) => (await stage.staff.client.query(sql)).rows
const openOnes = () =>
  query(
    `select pid from pg_stat_activity where application_name = '${applicationName}' and xact_start is not null`,
  )

const asked = (society: string): AskedLedger => ({ society, since: undefined, entries: [], tables: {} })
const ledger = (society: string): NextLedger => ({ asked: asked(society), cursor: '' })

/** @param nexts give the ledgers one after the other, each when the thread asks for it */
async function send(
  what: LedgersTask['what'],
  nexts: (() => NextLedger | Promise<NextLedger>)[],
  connections = pool,
) {
  const form = what === 'ledgers' ? 'ledgers' : 'ndjson'
  const ofTask = { what, form, encoding: 'identity', schemaId: '100', timeZone: 'Europe/Paris', tokenId }
  const reader = new ChannelReader<ExportHead, ExportSummary>()
  const { port1: answering, port2: asking } = new MessageChannel()
  const remaining = nexts.values()
  const faults: string[] = []
  answering.on('message', async (ended: EndedLedger | undefined) => {
    if (ended?.fault) faults.push(ended.refusal!.code)
    answering.postMessage(await remaining.next().value?.())
  })
  const sent = { task: ofTask as LedgersTask, port: reader.threadPort, asking, buffers: [], sentAt: 0 }
  const sending = sendLedgers(new ExportSources(connections), sent)
  const chunks: Uint8Array[] = []
  for (let chunk = await reader.read(); chunk; chunk = await reader.read()) chunks.push(chunk)
  await sending
  return { text: Buffer.concat(chunks).toString(), faults }
}

const losses: [what: string, lose: () => string, restore: string][] = [
  [
    'leaves the firm',
    () => `update grandlivre.folders set firm_id = 120 where id = ${second}`,
    `update grandlivre.folders set firm_id = 110 where id = ${second}`,
  ],
  [
    'is read with a token that expires',
    () => `update grandlivre.tokens set expires_at = now() where id = ${tokenId}`,
    `update grandlivre.tokens set expires_at = 'infinity'`,
  ],
  [
    'is read with a token that is revoked',
    () => `update grandlivre.tokens set revoked_at = now() where id = ${tokenId}`,
    '',
  ],
]

test.each(losses)(
  'a folder that %s after the main thread checked it is refused',
  async (_, lose, restore) => {
    const lost = async () => {
      await query(lose())
      return ledger(second)
    }
    const { text, faults } = await send('ledgers', [() => ledger(first), lost])
    const { ledgers, refused } = readLedgers(text)
    const digests = await send('ledger blocks', [() => ledger(second)])
    if (restore) await query(restore)
    expect([faults, ledgers.map(({ society }) => society)]).toEqual([[], [first]])
    const refusal = { refused: second, code: 'ERR-FOLDER-NOT-FOUND', message: expect.any(String) }
    expect(refused).toEqual([refusal])
    expect(JSON.parse(digests.text)).toEqual(refusal)
  },
)

test('no transaction stays open while ledgers are skipped', async () => {
  const open: number[] = []
  const looking = (next: NextLedger) => async () => {
    open.push((await openOnes()).length)
    return next
  }
  const known = { lines: '{}\n', cursor: '1', rows: 0, sha256: '' }
  await send('ledger blocks', [
    looking(ledger(first)),
    looking({ asked: asked(second), known }),
    looking(ledger(first)),
    looking(undefined),
  ])
  expect(open).toEqual([0, 2, 0, 2])
})

test('a ledger that loses its connections before it begins is read on others', async () => {
  const lost = async () => {
    await query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${applicationName}'`,
    )
    await until(async () => (await openOnes()).length === 0)
    return ledger(second)
  }
  const { ledgers } = readLedgers((await send('ledgers', [() => ledger(first), lost])).text)
  expect(ledgers.map(({ society }) => society)).toEqual([first, second])
})

test('a ledger is refused if the database has no free connection or refuses a statement, and the next ones follow', async () => {
  const one = createPool(stage.database.serviceUrl, { max: 1, applicationName, connectMs: 50 })
  const away = await send('ledgers', [() => ledger(first)], one)
  await one.end()
  const refuse = async () => {
    await query('revoke select on grandlivre.axes from grandlivre_service')
    return ledger(first)
  }
  const grant = async () => {
    await query('grant select on grandlivre.axes to grandlivre_service')
    return ledger(second)
  }
  const failed = await send('ledgers', [refuse, grant])
  for (const [{ text, faults }, code, whole] of [
    [away, 'ERR-UNAVAILABLE', []],
    [failed, 'ERR-INTERNAL', [second]],
  ] as const) {
    const { ledgers, refused } = readLedgers(text)
    expect(refused).toEqual([{ refused: first, code, message: expect.any(String) }])
    expect([faults, ledgers.map(({ society }) => society)]).toEqual([[code], whole])
  }
})

test('a row that is too long ends its ledger with an error that names the entry, and the next ledgers follow', async () => {
  const entry = (
    await query(`select min(entry_id) as id from grandlivre.movements where folder_id = ${first}`)
  )[0].id
  const ofEntry = `where folder_id = ${first} and entry_id = ${entry}`
  await query(`update grandlivre.movements set description = repeat('long', 5000000) ${ofEntry}`)
  const { text } = await send('ledgers', [() => ledger(first), () => ledger(second)])
  await query(`update grandlivre.movements set description = 'short' ${ofEntry}`)
  const own = text
    .slice(0, text.indexOf(`{"ledger":"${second}"`))
    .trimEnd()
    .split('\n')
  expect(own.filter((line) => line.startsWith('{"end"'))).toEqual([])
  expect(JSON.parse(own.at(-1)!)).toMatchObject({ refused: first, code: 'ERR-INTERNAL' })
  expect(JSON.parse(own.at(-1)!).message).toContain(`of entry ${entry} `)
  expect(text.endsWith('{"whole":1,"refusals":1}\n')).toBe(true)
})
