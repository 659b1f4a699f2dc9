import { beforeAll, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { type KeptDigests, keepBlocks } from '../../../src/exports/blocks/kept-blocks.sql.ts'
import { wholeFolder } from '../../../src/exports/selection.ts'
import { plainLedgerBlocks } from '../../support/changes/ledger-digests.ts'
import { readLedgers } from '../../support/changes/ledger-stream.ts'
import { download, madUrl, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice, largeExercice } from '../../support/ledgers/large-exercice.ts'
import { plainBlocks } from '../../support/ledgers/plain-blocks.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setLossyFailover } from '../../support/replication/lossy-failover.ts'
import { connect } from '../../support/servers/database.ts'
import { request } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const { schemaId, folderId } = folders.first
/** Twelve blocks of 100 entries with ten movements each; the first entry has this id. */
const firstEntry = 1_000_000
const year = { idExercice: largeExercice }
/** The two kinds of digests that are kept. */
const ofYear = { ...wholeFolder(folders.first, 'Europe/Paris'), draft: false, exerciceId: largeExercice }
const ofLedger = wholeFolder(folders.first, 'Europe/Paris')
const tables = ['movement_blocks', 'ledger_blocks'] as const

const stage = forTests(setLossyFailover)
/** What a process has read of the lost state, and the cursor of that state. */
let lost: { cursor: string; ofYear: KeptDigests; ofLedger: KeptDigests; folder: string }

beforeAll(async () => {
  const client = await connect(stage.primary.ownerUrl)
  await addLargeExercice(client, 12_000)
  await client.end()
  await blocksOfYear()
  await blocksOfLedger()
  await until(async () => (await versions()).length === 2)
  await stage.standby.catchUp()
  await stage.standby.cutStream()
  await change(`update entries set comment = 'lost' where id = ${firstEntry + 150}`)
  await change(
    `insert into folders (schema_id, id, firm_id, name) values (${schemaId}, 119, ${folders.first.firmId}, 'Lost')`,
  )
  const [blocks, ledger] = [await blocksOfYear(), await blocksOfLedger()]
  const digests = (each: { from: string; rows: number; sha256: string }[]) =>
    each.map(({ from, rows, sha256 }) => ({ first: Number(from), rows, sha256 }))
  lost = {
    cursor: ledger.cursor,
    ofYear: { blocks: digests(blocks.json), tables: undefined },
    ofLedger: { blocks: digests(ledger.blocks), tables: ledger.tables as never },
    folder: (await post('blocks', '119')).cursor,
  }
  await stage.promote()
  await until(async () => (await request(`${stage.service.url}/readyz`)).status === 200)
})

const change = (text: string) =>
  stage.sql(
    text.replace(/(update|into) /, '$1 grandlivre.').replace('where', `where folder_id = ${folderId} and`),
  )

const versions = async (): Promise<string[]> => {
  const rows = await stage.sql(
    tables
      .map((name) => `select version from grandlivre.${name} where folder_id = ${folderId}`)
      .join(' union all '),
  )
  return rows.map(({ version }) => version)
}

const lostVersion = () => lost.cursor.split('.')[0]

const blocksOfYear = () => download(madUrl(stage.service.url, 'movements/blocks', year), stage.company)

async function post(route: 'blocks' | 'changes', society: string, since?: string) {
  const answer = await fetch(`${stage.service.url}/api/v1/mad/ledgers/${route}?version=1.0.0`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...stage.firm },
    body: JSON.stringify({ ledgers: [{ society, since }] }),
  })
  const text = await answer.text()
  return route === 'changes' && since === undefined
    ? readLedgers(text).ledgers[0]!
    : JSON.parse(text.split('\n')[0]!)
}

const blocksOfLedger = () => post('blocks', folderId)

async function expectDigests(): Promise<void> {
  const [blocks, ledger] = [await blocksOfYear(), await blocksOfLedger()]
  const lines = { ...stage.company, Accept: 'application/x-ndjson' }
  const { text } = await download(movementsUrl(stage.service.url, year), lines)
  expect(blocks.json).toEqual(plainBlocks(text, blocks.json))
  expect(ledger).toEqual(plainLedgerBlocks(await post('changes', folderId), ledger))
}

/**
 * Stores digests like a process that read them from the former primary, or from a standby that was ahead of the new
 * primary.
 */
async function keepLost(): Promise<void> {
  const pool = createPool(stage.standby.serviceUrl, { max: 1, applicationName: 'test' })
  await keepBlocks(pool, ofYear, lost.cursor, lost.ofYear)
  await keepBlocks(pool, ofLedger, lost.cursor, lost.ofLedger)
  await pool.end()
}

test('before the new epoch begins, block digests of a lost state are not stored', async () => {
  await keepLost()
  expect(await versions()).not.toContain(lostVersion())
})

test('block digests that survived with their folder are used at once', async () => {
  await stage.sql('select grandlivre.pass_gate()')
  const read = 'select on grandlivre.movements, grandlivre.entries, grandlivre.accounts'
  await stage.sql(`revoke ${read} from grandlivre_service`)
  expect([(await blocksOfYear()).status, (await blocksOfLedger()).society]).toEqual([200, folderId])
  await stage.sql(`grant ${read} to grandlivre_service`)
  const forged = (place: number) => `overlay(digests placing sha256('forged') from ${place * 32 + 1} for 32)`
  for (const name of tables)
    await stage.sql(`update grandlivre.${name} set digests = ${forged(5)} where folder_id = 111`)
  const seen = async () => [(await blocksOfYear()).json, (await blocksOfLedger()).blocks]
  const [year, ledger] = await seen()
  const [survived] = await versions()
  await change(`update entries set comment = 'new' where id = ${firstEntry + 950}`)
  const changed = (await seen()).map((blocks, i) =>
    blocks.flatMap((block: { sha256: string }, at: number) =>
      block.sha256 === [year, ledger][i][at].sha256 ? [] : [at],
    ),
  )
  // Only the block with the changed entry was rendered again; the block with the forged digest was not.
  expect(changed.map(({ length }) => length)).toEqual([1, 1])
  // Digests are stored once the answers have ended.
  await until(async () => (await versions()).every((version) => version !== survived))
  for (const name of tables) await stage.sql(`delete from grandlivre.${name}`)
  await expectDigests()
})

test('after the new epoch has begun, block digests of a lost state are not stored', async () => {
  await keepLost()
  for (const name of tables) await stage.sql(`delete from grandlivre.${name}`)
  await keepLost()
  expect(await versions()).not.toContain(lostVersion())
  await change(`update entries set comment = 'newer' where id = ${firstEntry + 950}`)
  await expectDigests()
})

test('the cursor of a lost folder stays invalid if staff create a folder with the same id and version by hand', async () => {
  const version = lost.folder.split('.')[0]
  await change(
    `insert into folders (schema_id, id, firm_id, name, ledger_version)
     values (${schemaId}, 119, ${folders.first.firmId}, 'By hand', ${version})`,
  )
  expect(await post('changes', '119', lost.folder)).toMatchObject({ code: 'ERR-CURSOR-EXPIRED' })
  const [row] = await stage.sql(
    `select c.refusal from set_config('grandlivre.schema_id', '${schemaId}', false), grandlivre.service_state s,
       grandlivre.read_ledger_cursor(grandlivre.ledger_cursor(${schemaId}, 119, ${version}, s.rendering), ${schemaId}, 119, s.rendering) c`,
  )
  expect(row).toEqual({ refusal: 'forgotten' })
})
