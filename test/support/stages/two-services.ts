/** An export stage with two services on one database and one store, and common steps of full-export tests. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOwnerPool } from '../../../src/db/pool.ts'
import { ended, type JobAnswer, trigger } from '../full-export.ts'
import { lockWaits } from '../ledgers/lock-waits.ts'
import { credentials, folders } from '../ledgers/tenants.ts'
import { startTestService } from '../service.ts'
import { type ExportStage, setExportStage } from './export-stage.ts'

export type TwoServices = Awaited<ReturnType<typeof setTwoServices>>

export async function setTwoServices() {
  const store = {
    kind: 'filesystem',
    folder: await mkdtemp(join(tmpdir(), 'grandlivre-two-services-')),
  } as const
  const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }
  const stage = await setExportStage({ store, rateLimit })
  const second = await startTestService(stage.database, { store, rateLimit })
  const { url } = stage.service
  const { sql } = stage.staff
  /** Lets an hour pass, so that the next trigger of the folder starts a new export. */
  const passAnHour = () =>
    sql(`update grandlivre.exports set created_at = created_at - interval '61 minutes' where latest`)
  return {
    ...stage,
    /** The URL of the first service. */
    url,
    second,
    /** The store of both services. */
    store,
    /** Headers of the firm token, for a folder. */
    asFirm: (folderId: string) => ({ ...stage.firm, 'society-id': folderId }),
    sql,
    passAnHour,
    /** Paths of all files in the store, finished or not. */
    storedKeys: async () => {
      const names = await readdir(store.folder, { recursive: true, withFileTypes: true })
      return names.filter((name) => name.isFile()).map((name) => join(name.parentPath, name.name))
    },
    /** Runs a new export to its end. */
    exported: async (headers = stage.company, query: Record<string, string> = {}): Promise<JobAnswer> => {
      await passAnHour()
      const { body } = await trigger(url, headers, query)
      return ended(url, headers, body.id)
    },
    /** Makes exports that start from now on wait for a lock on one of the collections, until it is released. */
    holdExports: () => holdExports(stage),
    /** Headers of a new third party for the folder of the other tenant. */
    strangers: () => strangers(stage),
    close: async () => {
      await second.stop()
      await stage.close()
      await rm(store.folder, { recursive: true, force: true })
    },
  }
}

async function holdExports({ database, staff }: ExportStage) {
  const pool = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'test blocker' })
  const client = await pool.connect()
  await client.query('begin; lock table grandlivre.banks in access exclusive mode')
  return {
    waiting: () => lockWaits(staff.client, 'banks'),
    release: async () => {
      await client.query('rollback')
      client.release()
      await pool.end()
    },
  }
}

async function strangers({ staff }: ExportStage): Promise<Record<string, string>> {
  const code = `STRANGER-${Math.random().toString(36).slice(2, 8).toUpperCase()}`
  const secret = await staff.thirdParty(code)
  return credentials(await staff.token(code, 'api', folders.otherTenant), secret)
}
