import { setTimeout as delay } from 'node:timers/promises'
import { addLargeExercice } from '../../../../../test/support/ledgers/large-exercice.ts'
import { folders } from '../../../../../test/support/ledgers/tenants.ts'
import { setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import { startFaultyProxy } from './faulty-proxy.ts'
import { libraryOf } from './library.ts'

/** The large folder is the first. */
export const twoFolders = [folders.first.folderId, folders.sameFirm.folderId] as const

/**
 * Two folders of a firm, and a library that reads them through a proxy that spoils answers.
 * @param movements number of movements to add to the first folder
 * @param pauseMs milliseconds between attempts: a broken answer keeps its slot until the service has noticed the break
 */
export async function setLedgersStage(movements: number, attemptsMax = 2, pauseMs = 5) {
  const stage = await setExportStage({
    rateLimit: { requests: 1_000_000, windowMs: 10_000, concurrent: 200 },
  })
  if (movements > 0) await addLargeExercice(stage.staff.client, movements)
  const proxy = await startFaultyProxy(stage.service.url)
  const pacing = { random: () => 0, sleep: () => delay(pauseMs) }
  const ledger = libraryOf(stage.firm, proxy.url, { pacing, attemptsMax })
  return {
    ...{ proxy, ledger, firm: stage.firm, company: stage.company, url: stage.service.url },
    change: (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`),
    async close(): Promise<void> {
      ledger.close()
      await proxy.close()
      await stage.close()
    },
  }
}
