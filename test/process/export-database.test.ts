import { expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startTestService } from '../support/service.ts'
import { setExportStage } from '../support/stages/export-stage.ts'

test('exports read from EXPORT_DATABASE_URL as the service role, whatever its login', async () => {
  const stage = await setExportStage()
  const { ownerUrl } = stage.database
  const service = await startTestService(stage.database, { exportDatabaseUrl: ownerUrl })
  const status = async (method?: string) =>
    (await download(movementsUrl(service.url, { idExercice: '12' }), stage.company, method)).status
  try {
    expect(await status()).toBe(200)
    // The export can no longer read what is revoked from the role; the owner could.
    await stage.staff.client.query('revoke select on grandlivre.movements from grandlivre_service')
    expect(await status()).toBe(500)
    // HEAD reads no movements.
    expect(await status('HEAD')).toBe(200)
  } finally {
    await service.stop()
    await stage.close()
  }
})

test('an ETag names the ledger that was read, not the one that was looked up before', async () => {
  const stage = await setExportStage()
  // Like a replica that lags: the same folder at another version.
  const replica = await createTestDatabase()
  const staff = await createTenants(replica.ownerUrl)
  await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query('select id from grandlivre.third_parties')
  const { schemaId, folderId } = folders.first
  await fillLedger(staff.client, { schemaId, folderId, label: 'lagging', thirdPartyId: rows[0].id })
  const service = await startTestService(stage.database, { exportDatabaseUrl: replica.ownerUrl })
  const ask = (headers = {}, method = 'GET') =>
    download(movementsUrl(service.url, { idExercice: '12' }), { ...stage.company, ...headers }, method)
  try {
    const lookedUp = String((await ask({}, 'HEAD')).headers.etag)
    const { text, headers } = await ask()
    expect(text).toContain('lagging')
    expect(headers.etag).not.toBe(lookedUp)
    expect((await ask({ 'If-None-Match': headers.etag })).headers.etag).toBe(headers.etag)
    const resumed = await ask({ 'If-Match': lookedUp })
    expect([resumed.status, resumed.json.error.code]).toEqual([412, 'ERR-PRECONDITION-FAILED'])
  } finally {
    await service.stop()
    await staff.end()
    await replica.drop()
    await stage.close()
  }
})
