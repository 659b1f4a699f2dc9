import { expect, test } from 'vitest'
import { download, movementsUrl } from './support/download.ts'
import { setExportStage } from './support/export-stage.ts'
import { startTestService } from './support/service.ts'

test('exports read from EXPORT_DATABASE_URL as the service role, whoever its login is', async () => {
  const stage = await setExportStage()
  const { ownerUrl } = stage.database
  const service = await startTestService(stage.database, { exportDatabaseUrl: ownerUrl })
  const status = async (method?: string) =>
    (await download(movementsUrl(service.url, { idExercice: '12' }), stage.company, method)).status
  try {
    expect(await status()).toBe(200)
    // What the role may not read the export cannot; the owner still could.
    await stage.staff.client.query('revoke select on grandlivre.movements from grandlivre_service')
    expect(await status()).toBe(500)
    // A look at the headers reads none of it.
    expect(await status('HEAD')).toBe(200)
  } finally {
    await service.stop()
    await stage.close()
  }
})
