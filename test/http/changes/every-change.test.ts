/**
 * After each kind of change, the earlier copy and the answer to `since` give the later copy. Digests of blocks and tables
 * that were kept before the change match the new rows after it. histories.slow.test.ts draws changes at random; this list has
 * each kind once.
 */
import { beforeAll, expect, test } from 'vitest'
import { applyDelta, readDelta } from '../../support/changes/apply-delta.ts'
import { type LedgerDigests, plainLedgerBlocks } from '../../support/changes/ledger-digests.ts'
import { readLedgers } from '../../support/changes/ledger-stream.ts'
import { type Download, download, madUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { plainBlocks, plainDigest } from '../../support/ledgers/plain-blocks.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setExportStage)
const society = folders.first.folderId
const ofFolder = `schema_id = 100 and folder_id = ${society}`

const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)

beforeAll(async () => {
  const [columns, values] = ['schema_id, folder_id', `100, ${society}`]
  await change(`insert into vat_codes (${columns}, id, code, rate) values (${values}, 1, 'V1', 2000);
    insert into accounts (${columns}, id, number, name)
      values (${values}, 9001, '401900', 'A'), (${values}, 9002, '421900', 'B');
    insert into companies (${columns}, account_id, name, vat_id) values (${values}, 9001, 'Société', 1);
    insert into employees (${columns}, account_id, last_name) values (${values}, 9002, 'Dupré');
    insert into banks (${columns}, id, iban, bic, journal_id) values (${values}, 1, 'FR76', 'AGRIFRPP', 33)`)
})

type Query = Record<string, string>
type Selection = [path: string, query: Query]

const year = { idExercice: '12' }
/** Exercice 12 is from 2024-07-01 to 2025-06-30. */
const period = { startDate: '2024-09-01', endDate: '2025-01-31' }
const calendarYear = { startDate: '2024-01-01', endDate: '2024-12-31' }

/** Each change with selections that it may move entries in or out of. Ids of entries in exercice 12 are 12 + 27 n. */
// biome-ignore format: a table
const groups: { selections: Selection[]; changes: [what: string, sql: string][] }[] = [
  {
    selections: [
      ['movements', { ...year, draft: '1' }],
      ['movements', { ...year, source: 'API' }],
      ['movements', { ...period, dateFilter: 'accounting' }],
      ['movements', { ...period, dateFilter: 'platform', source: 'E' }],
      ['entries', { ...period, journalIds: '31,34,37,40', dateFilter: 'platform' }],
    ],
    changes: [
      ['a draft is validated', `update entries set validated_at = date where ${ofFolder} and id in (30, 93)`],
      ['a day of booking leaves a period', `update entries set accounted_at = '2025-06-30' where ${ofFolder} and id = 228`],
      ['a day of the platform leaves a period', `update entries set created_at = '2025-06-30' where ${ofFolder} and id = 255`],
      ['a source', `update entries set source = 'FEC', third_party_id = null where ${ofFolder} and id in (336, 39)`],
      ['the journal of drafts', `update entries set journal_id = 31 where ${ofFolder} and id in (282, 471)`],
      ['a journal', `update journals set code = 'NEU' where ${ofFolder} and id = 33`],
      ['a partner', `update third_parties set name = 'Neuer Name' where code = 'PARTNER'`],
      ['an exercice is closed', `update exercices set closed_at = now() where ${ofFolder} and id = 12`],
      ['an entry of another folder', `update entries set comment = 'x' where folder_id = 112`],
    ],
  },
  {
    selections: [
      ['movements', { ...year, classAccount: '60,401' }],
      ['movements', { ...year, classAccount: '7' }],
      ['movements', { ...year, lettering: 'none' }],
      ['movements', { ...year, lettering: 'partial', classAccount: '4' }],
      ['movements', { ...year, lettering: 'complete', draft: '1' }],
    ],
    changes: [
      ['a text of a movement', `update movements set description = 'x' where ${ofFolder} and entry_id = 120`],
      ['an amount', `update movements set debit = 7, credit = 0 where ${ofFolder} and entry_id = 147`],
      ['a movement moves to another entry', `update movements set entry_id = 336 where ${ofFolder} and entry_id = 363`],
      ['the account of movements', `update movements set account_id = 110 where ${ofFolder} and entry_id in (390, 417)`],
      ['a lettering', `update movements set lettering_state = 'complete', lettering_code = 'AA' where ${ofFolder} and entry_id in (444, 471)`],
      ['the end of a lettering', `update movements set lettering_state = 'none', lettering_code = null where ${ofFolder} and entry_id in (444, 498)`],
      ['the name of an account', `update accounts set name = 'Neu' where ${ofFolder} and id = 106`],
      ['an account leaves its class', `update accounts set number = '8' || number where ${ofFolder} and id in (101, 110)`],
      ['an account enters a class', `update accounts set number = '60' || number where ${ofFolder} and id = 106`],
      ['a mode of payment', `update payments set code = 'CHQ' where ${ofFolder} and id = 52`],
      ['the last movement of an entry is deleted', `delete from movements where ${ofFolder} and entry_id = 579`],
    ],
  },
  {
    selections: [
      ['movements', year],
      ['movements', { idExercice: '11' }],
      ['movements', calendarYear],
      ['entries', year],
      ['entries', { ...calendarYear, draft: '1' }],
    ],
    changes: [
      ['a comment', `update entries set comment = 'x' where ${ofFolder} and id in (39, 66)`],
      ['an entry awaits validation again', `update entries set validated_at = null where ${ofFolder} and id = 174`],
      ['a date leaves a period', `update entries set date = '2025-06-30' where ${ofFolder} and id = 201`],
      ['an axis', `update axes set name = 'Neu' where ${ofFolder} and id = 62`],
      ['a section', `update sections set code = 'NEU' where ${ofFolder} and id = 72`],
      ['a section goes to another axis', `update sections set axis_id = case axis_id when 61 then 62 else 61 end where ${ofFolder} and id = 72`],
      ['a section is deleted', `update movements set shares = null where ${ofFolder} and 74 = any (shares); delete from sections where ${ofFolder} and id = 74`],
      ['entries are deleted', `delete from entries where ${ofFolder} and id in (525, 552, 12)`],
      ['all entries', `update entries set comment = 'all' where ${ofFolder}`],
    ],
  },
  {
    selections: [['movements', year], ['entries', year]],
    changes: [
      ['a new account', `insert into accounts (schema_id, folder_id, id, number, name) values (100, ${society}, 9106, '999106', 'x')`],
      ['an account is deleted', `delete from accounts where ${ofFolder} and id = 9106`],
      ['a bank', `update banks set iban = 'FR7630006000011234567890189' where ${ofFolder}`],
      ['a VAT code', `update vat_codes set rate = rate + 1 where ${ofFolder}`],
      ['a company', `update companies set name = 'Neu' where ${ofFolder}`],
      ['an employee', `update employees set last_name = 'Neu' where ${ofFolder}`],
      ['the name of the folder', `update folders set name = 'Neu' where schema_id = 100 and id = ${society}`],
    ],
  },
]

const ask = ([path, query]: Selection): Promise<Download> =>
  download(madUrl(stage.service.url, path, query), {
    ...stage.company,
    Accept: path === 'movements/blocks' ? 'application/json' : 'application/x-ndjson',
  })

async function post(route: 'blocks' | 'changes'): Promise<string> {
  const answer = await fetch(`${stage.service.url}/api/v1/mad/ledgers/${route}?version=1.0.0`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...stage.firm },
    body: JSON.stringify({ ledgers: [{ society }] }),
  })
  return answer.text()
}

interface Moment {
  of: Selection[]
  copies: Download[]
  digests: LedgerDigests
}

/** Reads digests, which use those kept before. Once they are kept, reads the stream of rows and the selections. */
async function pull(of: Selection[]): Promise<Moment> {
  const digests: LedgerDigests = JSON.parse(await post('blocks'))
  const blocks = await ask(['movements/blocks', year])
  const copy = await ask(['movements', year])
  expect(blocks.json).toEqual(plainBlocks(copy.text, blocks.json))
  expect(blocks.headers).toMatchObject({
    'x-ledger-cursor': digests.cursor,
    'x-ledger-digest': plainDigest(blocks.json),
  })
  for (const table of ['movement_blocks where exercice_id = 12 and', 'ledger_blocks where'])
    await until(async () => {
      const state = `${ofFolder} and cursor = '${digests.cursor}'`
      return (await stage.staff.client.query(`select from grandlivre.${table} ${state}`)).rowCount === 1
    })
  // The stream comes after the digests, because it keeps its own.
  const [ledger] = readLedgers(await post('changes')).ledgers
  expect(digests).toEqual(plainLedgerBlocks(ledger!, digests))
  const copies = []
  for (const selection of of) copies.push(await ask(selection))
  return { of, copies, digests }
}

/** Number of deltas of each kind. */
const ways = { nothing: 0, ranges: 0, everything: 0, withoutLines: 0 }
let last: Moment | undefined

test.each(
  groups.flatMap(({ selections, changes }) => changes.map(([what, sql]) => [what, sql, selections] as const)),
)('copies and kept digests follow a change: %s', async (what, sql, selections) => {
  const before = last?.of === selections ? last : await pull(selections)
  await change(sql)
  const after = await pull(selections)
  last = after
  for (const [i, [path, query]] of selections.entries()) {
    const since = String(before.copies[i]!.headers['x-ledger-cursor'])
    const delta = await ask([path, { ...query, since }])
    const name = `${path} ${JSON.stringify(query)}`
    expect(applyDelta(before.copies[i]!.text, delta.text), name).toBe(after.copies[i]!.text)
    const { entries, lines, cursor } = readDelta(delta.text)
    expect(cursor, name).toBe(after.digests.cursor)
    if (entries.length === 0) ways.nothing++
    else if (entries[0]![1] === '9007199254740991') ways.everything++
    else if (lines.length === 0) ways.withoutLines++
    else ways.ranges++
  }
  // The digests show each change of the folder.
  const isShown =
    JSON.stringify({ ...after.digests, cursor: '' }) !== JSON.stringify({ ...before.digests, cursor: '' })
  expect(isShown).toBe(what !== 'an entry of another folder')
})

test('the changes above were answered with deltas of each kind', () => {
  for (const [way, times] of Object.entries(ways)) expect(times, way).toBeGreaterThan(5)
})
