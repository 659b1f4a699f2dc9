import { expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { startTestService } from '../support/service.ts'
import { setExportStage } from '../support/stages/export-stage.ts'

test('exports read from EXPORT_DATABASE_URL as the service role, whatever its login', async (context) => {
  const stage = await setExportStage()
  const { ownerUrl } = stage.database
  context.onTestFinished(() => stage.close())
  await using service = await startTestService(stage.database, { exportDatabaseUrl: ownerUrl })
  const status = async (method?: string) =>
    (await download(movementsUrl(service.url, { idExercice: '12' }), stage.company, method)).status
  expect(await status()).toBe(200)
  // The service role loses a right, so the export can no longer read the table. The owner still could.
  await stage.staff.client.query('revoke select on grandlivre.movements from grandlivre_service')
  expect(await status()).toBe(500)
  // HEAD reads no movements.
  expect(await status('HEAD')).toBe(200)
})
