/** A service with a year of 3,000 movements, some pieces of a file, a caller of each level, and a proxy that spoils answers. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { seededYear } from '../../../../../test/support/ledgers/seeded-year.ts'
import { createTenants, credentials } from '../../../../../test/support/ledgers/tenants.ts'
import { copyLedger } from '../../../../../test/support/servers/database.ts'
import { startTestService } from '../../../../../test/support/service.ts'
import { correctComments } from '../../../../sample/src/demo-folder.sql.ts'
import { startFaultyProxy } from '../client/faulty-proxy.ts'
import { accessOf } from './command-line.ts'

/** What a file of movements holds. */
export interface Facts {
  sha256: string
  /** Lines. */
  rows: number
}

export type YearStage = Awaited<ReturnType<typeof setYearStage>>

export async function setYearStage(movements = 3_000) {
  const { database, facts: folder } = await copyLedger(seededYear(movements))
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const company = credentials(await staff.token('PARTNER', 'api', folder), secret)
  const firm = credentials(await staff.token('PARTNER', 'firm', folder), secret)
  const service = await startTestService(database)
  const proxy = await startFaultyProxy(service.url)
  const out = await mkdtemp(join(tmpdir(), 'grandlivre-pull-'))
  const exerciceId = folder.exercices.at(-1)!.id
  const { folderId } = folder
  let source: Facts | undefined
  return {
    /** Address of the database, for services in other processes. */
    databaseUrl: database.ownerUrl,
    proxy,
    /** Environment of a caller with the company token, straight to the service and through the proxy. */
    env: accessOf(service.url, company),
    proxied: accessOf(proxy.url, company),
    /** Environment of a caller with the firm token. */
    firm: accessOf(service.url, firm),
    /** Id of the exercice with nearly all movements. */
    exerciceId,
    folderId,
    /** Folder for files. It is removed at the end. */
    out,
    /** The exercice as NDJSON, read without the client. */
    source: async (): Promise<Facts> => {
      if (source !== undefined) return source
      const address = `${service.url}/api/v1/mad/movements?version=1.0.0&idExercice=${exerciceId}`
      const answer = await fetch(address, { headers: { ...company, Accept: 'application/x-ndjson' } })
      source = factsOf(Buffer.from(await answer.arrayBuffer()))
      return source
    },
    /** Changes comments of entries. */
    change: async (entries: number) => {
      source = undefined
      await correctComments(staff.client, { folderId, exerciceId }, entries)
    },
    close: async () => {
      await proxy.close()
      await service.stop()
      await staff.end()
      await database.drop()
      await rm(out, { recursive: true })
    },
  }
}

/** What a pulled file holds, after decompression. */
export async function factsOfFile(path: string): Promise<Facts> {
  const bytes = await readFile(path)
  if (path.endsWith('.gz')) return factsOf(gunzipSync(bytes))
  return factsOf(path.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes)
}

function factsOf(content: Buffer): Facts {
  const rows = content.reduce((count, byte) => count + (byte === 10 ? 1 : 0), 0)
  return { sha256: createHash('sha256').update(content).digest('hex'), rows }
}
