/** What exports show while the replica that they read is late. */
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { readLedgers } from '../../support/changes/ledger-stream.ts'
import { slowReader } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { downloadFile, ended, trigger } from '../../support/full-export.ts'
import { addLargeExercice, largeExercice } from '../../support/ledgers/large-exercice.ts'
import { fillLedger } from '../../support/ledgers/ledger.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import {
  exportConnections,
  setReplicatedStage,
  versionOf,
} from '../../support/replication/replicated-stage.ts'
import { until } from '../../support/until.ts'

// One export may use all connections.
const stage = forTests(() => setReplicatedStage({ exportThreads: 1, exportsPerThread: 1 }))
afterEach(async () => {
  await stage.standby.resumeReplay()
  await until(async () => (await stage.degraded()).length === 0)
})

const year = 'version=1.0.0&idExercice=12'

/** Exports of folder 111 that show the comment of entry 12, or the name of account 107. */
const exports = [
  `/mad/movements?${year}`,
  `/mad/movements?${year}&entries=12-12`,
  `/mad/entries?${year}`,
  `/mad/entries?${year}&columns=extended`,
  '/mad/entry?version=1.0.0&id=12',
  `/mad/balance?${year}`,
  '/mad/accounts?version=1.0.0',
]

test('exports read the replica, and use the main database only briefly', async () => {
  for (const path of exports) expect((await stage.get(path)).status).toBe(200)
  expect(await exportConnections(stage.standby.ownerUrl)).toBeGreaterThan(0)
  expect(await exportConnections(stage.primary.ownerUrl)).toBe(0)
})

test('a stream of ledgers is never older than the states that were seen, even for a token that the replica lacks', async () => {
  const read = async (headers: Record<string, string>) => {
    const answer = await fetch(`${stage.service.url}/api/v1/mad/ledgers/changes?version=1.0.0`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: '{}',
    })
    return readLedgers(await answer.text())
  }
  const before = await read(stage.firm)
  expect(await exportConnections(stage.primary.ownerUrl)).toBe(0)
  await stage.standby.pauseReplay()
  const secret = await stage.staff.thirdParty('LATER')
  const later = credentials(await stage.staff.token('LATER', 'firm', folders.first), secret)
  expect(await read(later)).toEqual(before)
  expect(await exportConnections(stage.primary.ownerUrl)).toBe(0)
  await stage.change('later in a stream')
  const { ledgers, refused } = await read(stage.firm)
  const shown = ledgers.map(({ tables }) =>
    tables.movements!.some((row) => row.includes('later in a stream')),
  )
  expect([refused, shown]).toEqual([[], [true, ...before.ledgers.slice(1).map(() => false)]])
  expect(await exportConnections(stage.primary.ownerUrl)).toBeGreaterThan(0)
})

test('no export is older than the state that its request saw', async () => {
  const before = await stage.get(`/mad/movements?${year}`)
  const since = String(before.headers['x-ledger-cursor'])
  await stage.standby.pauseReplay()
  const version = await stage.change('later than the replica')
  for (const path of [
    ...exports,
    `/mad/movements?${year}&since=${since}`,
    `/mad/entries?${year}&since=${since}`,
  ]) {
    const answer = await stage.get(path)
    expect([answer.status, versionOf(answer), answer.text.includes('later than the replica')]).toEqual([
      200,
      version,
      true,
    ])
  }
  const digests = await stage.get(`/mad/movements/blocks?${year}`)
  expect(versionOf(digests)).toBe(version)
  expect(await stage.degraded()).toEqual([
    expect.stringMatching(/^the database of EXPORT_DATABASE_URL \(behind/),
  ])
})

test('no full export is older than the state of its trigger', async () => {
  await stage.standby.pauseReplay()
  await stage.change('in the file')
  const { body } = await trigger(stage.service.url, stage.company)
  const job = await ended(stage.service.url, stage.company, body.id)
  expect(job.status).toBe('DONE')
  expect((await downloadFile(job.url!)).bytes.includes('in the file')).toBe(true)
})

test('a folder that the replica does not have yet is exported from the main database', async () => {
  await stage.standby.pauseReplay()
  const folder = { schemaId: '100', firmId: '110', folderId: '113' }
  await createFolder(stage.staff.client, { schemaId: '100', firmId: '110', id: '113', name: 'New' })
  await fillLedger(stage.staff.client, { ...folder, label: 'new', thirdPartyId: stage.thirdPartyId })
  const headers = { ...stage.firm, 'society-id': '113' }
  for (const path of [
    `/mad/movements?${year}`,
    '/mad/accountingFolder?version=1.0.0',
    '/mad/banks?version=1.0.0',
  ])
    expect((await stage.get(path, headers)).status).toBe(200)
  expect((await stage.get('/society', stage.firm)).text).toContain('"New"')
  const { body } = await trigger(stage.service.url, headers)
  expect((await ended(stage.service.url, headers, body.id)).status).toBe('DONE')
})

test('an export waits for a replica that is slightly late, and reads it', async () => {
  await stage.standby.pauseReplay()
  const version = await stage.change('after a moment')
  const answer = stage.get(`/mad/movements?${year}`)
  await until(async () => (await exportConnections(stage.standby.ownerUrl)) > 0)
  await stage.standby.resumeReplay()
  expect(versionOf(await answer)).toBe(version)
  expect(stage.logged('replica.left').filter((line) => line.includes('after'))).toEqual([])
})

test('a replica that was late is used again, even while exports use all its connections', async () => {
  await addLargeExercice(stage.staff.client, 8_000)
  const folder = { schemaId: '100', firmId: '110', folderId: '114' }
  await createFolder(stage.staff.client, { schemaId: '100', firmId: '110', id: '114', name: 'Late' })
  await fillLedger(stage.staff.client, { ...folder, label: 'late', thirdPartyId: stage.thirdPartyId })
  await stage.standby.catchUp()
  await stage.standby.pauseReplay()
  await stage.onPrimary('update grandlivre.accounts set name = name where folder_id = 114')
  const left = stage.logged('replica.left').length
  expect((await stage.get(`/mad/movements?${year}`, { ...stage.firm, 'society-id': '114' })).status).toBe(200)
  // The ledger of this folder has not changed, so its exports still read the replica.
  const url = `${stage.service.url}/api/v1/mad/movements?version=1.0.0&idExercice=${largeExercice}`
  const reader = await slowReader(url, stage.company)
  onTestFinished(() => {
    reader.message.destroy()
  })
  const regained = stage.logged('replica.regained').length
  await stage.standby.resumeReplay()
  await until(() => stage.logged('replica.regained').length > regained)
  const reasons = stage.logged('replica.left').map((line) => JSON.parse(line).reason)
  expect(reasons.slice(left)).toEqual(['behind'])
})

test('a replica that was abandoned before a failover is used again after it, and after two more', async () => {
  for (const comment of ['before the failover', 'before the second', 'before the third']) {
    await stage.standby.pauseReplay()
    await stage.change(comment)
    await until(async () => {
      await stage.get(`/mad/movements?${year}`)
      return (await stage.degraded()).length > 0
    })
    // As if the name in the database were that of a former server: the next draw begins an epoch.
    await stage.staff.client.query(`select setval('grandlivre.server_name', 1)`)
    const version = await stage.change(`${comment}, and after it`)
    const answer = await stage.get(`/mad/movements?${year}`)
    expect([versionOf(answer), answer.text.includes('and after it')]).toEqual([version, true])
    await stage.standby.resumeReplay()
    await until(async () => {
      await stage.get(`/mad/movements?${year}`)
      return (await stage.degraded()).length === 0
    })
  }
})
