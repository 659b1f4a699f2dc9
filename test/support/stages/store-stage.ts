import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OpenAPIHono } from '@hono/zod-openapi'
import { answerError } from '../../../src/http/errors.ts'
import { acceptRequestId, createListener } from '../../../src/http/listener.ts'
import { Readiness } from '../../../src/http/readiness.ts'
import type { Edge } from '../../../src/http/route.ts'
import { addFileRoute } from '../../../src/http/routes/files.ts'
import type { Services } from '../../../src/http/services.ts'
import type { LogEvents } from '../../../src/log.ts'
import { openStore } from '../../../src/store/open-store.ts'
import { S3Store } from '../../../src/store/s3.ts'
import type { ObjectStore, StoreSettings } from '../../../src/store/store.ts'
import { noTelemetry } from '../../../src/telemetry/telemetry.ts'
import { defaultTiming, type StoreTiming } from '../../../src/timing.ts'
import type { S3Server } from '../servers/s3-servers.ts'

/** An empty store, served at the addresses that it signs. */
export interface StoreStage {
  store: ObjectStore
  settings: StoreSettings
  /** Everything in the store, finished or not, empty folders included. */
  leftovers(): Promise<string[]>
  close(): Promise<void>
}

/** Times with which a broken store fails at once instead of after half a minute. */
export const quickRetries: StoreTiming = { ...defaultTiming.store, tries: 4, retryMs: 5 }

export interface FolderStage extends StoreStage {
  folder: string
  url: string
  /** The logged events. */
  logged: (keyof LogEvents)[]
}

/** @param inner folder of the store, such as one on another disk; by default a temporary one */
export async function openFolderStage(inner?: string): Promise<FolderStage> {
  const folder = inner ?? (await mkdtemp(join(tmpdir(), 'grandlivre-files-')))
  const logged: (keyof LogEvents)[] = []
  const log = (event: keyof LogEvents) => void logged.push(event)
  const readiness = new Readiness([], async () => {}, defaultTiming.missingMs)
  const app = new OpenAPIHono<Edge>()
  app.onError((error, c) => answerError(error, c, { log, readiness }))
  app.use(acceptRequestId({ log, telemetry: noTelemetry, audit: { record: () => {} } }))
  const server = createListener(
    (...request) => app.fetch(...request),
    { log, telemetry: noTelemetry },
    defaultTiming.listener,
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const signingKey = randomBytes(32).toString('hex')
  const settings: StoreSettings = { kind: 'filesystem', folder, publicUrl: url, signingKeys: [signingKey] }
  const store = await openStore(settings, quickRetries)
  addFileRoute(app, { store, log } as unknown as Services)
  const leftovers = async () => {
    const found = await readdir(folder, { recursive: true, withFileTypes: true })
    const paths = found.map((entry) => join(entry.parentPath, entry.name))
    return paths.filter((path) => !paths.some((other) => other.startsWith(`${path}/`)))
  }
  const close = async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
    await rm(folder, { recursive: true, force: true })
  }
  return { store, settings, leftovers, close, folder, url, logged }
}

/** A bucket of its own on a running server. */
export function openS3Stage(server: S3Server, endpoint = server.endpoint, timing = quickRetries): StoreStage {
  const settings: Extract<StoreSettings, { kind: 's3' }> = {
    kind: 's3',
    endpoint,
    publicEndpoint: server.endpoint,
    bucket: `test-${randomBytes(6).toString('hex')}`,
    region: 'us-east-1',
    accessKey: server.accessKey,
    secretKey: server.secretKey,
  }
  const direct = new S3Store({ ...settings, endpoint: server.endpoint }, quickRetries)
  return {
    store: new S3Store(settings, timing),
    settings,
    leftovers: async () => {
      const unfinished = await direct.sweep(new Date(Date.now() + 3_600_000))
      const finished = await Array.fromAsync(direct.listObjects(new Date(Date.now() + 3_600_000)))
      return [...finished.map(({ key }) => key), ...Array<string>(unfinished).fill('unfinished')]
    },
    close: async () => {
      for await (const { key } of direct.listObjects(new Date(Date.now() + 3_600_000)))
        await direct.remove(key)
    },
  }
}
