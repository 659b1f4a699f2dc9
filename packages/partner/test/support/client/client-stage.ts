/** A service with a made-up year, and a library that reaches it through a proxy that spoils answers. */
import { seededYear } from '../../../../../test/support/ledgers/seeded-year.ts'
import { createTenants, type IssuedToken } from '../../../../../test/support/ledgers/tenants.ts'
import { copyLedger } from '../../../../../test/support/servers/database.ts'
import { startTestService } from '../../../../../test/support/service.ts'
import type { SeededFolder } from '../../../../sample/src/seed.ts'
import { Grandlivre, type GrandlivreOptions } from '../../../src/client/grandlivre.ts'
import { startFaultyProxy } from './faulty-proxy.ts'

export async function setClientStage(movements: number) {
  const { database, facts: folder } = await copyLedger<SeededFolder>(seededYear(movements))
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const { token }: IssuedToken = await staff.token('PARTNER', 'api', folder)
  const service = await startTestService(database)
  const proxy = await startFaultyProxy(service.url)
  const opened: Grandlivre[] = []
  return {
    proxy,
    /** The larger year of the folder. */
    exercice: folder.exercices[1]!.id,
    access: { token, secret },
    /** The library, through the proxy, without random waits. */
    ledger(options: Partial<GrandlivreOptions> = {}): Grandlivre {
      const pacing = { random: () => 0 }
      const ledger = new Grandlivre({ baseUrl: proxy.url, token, secret, pacing, ...options })
      opened.push(ledger)
      return ledger
    },
    /** The NDJSON of a path, requested with fetch. */
    async source(path: string): Promise<Buffer> {
      const headers = {
        Authorization: `Bearer ${token}`,
        'X-Third-Party-Secret': secret,
        Accept: 'application/x-ndjson',
      }
      const answer = await fetch(`${service.url}/api/v1${path}`, { headers })
      if (!answer.ok) throw new Error(await answer.text())
      return Buffer.from(await answer.arrayBuffer())
    },
    /** Changes the ledger. */
    async change(sql: string): Promise<void> {
      await staff.client.query(`set search_path = grandlivre; ${sql}`)
    },
    async close(): Promise<void> {
      for (const ledger of opened) ledger.close()
      await proxy.close()
      await service.stop()
      await staff.end()
      await database.drop()
    },
  }
}
