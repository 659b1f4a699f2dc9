/**
 * Failures between the service and an S3 server: in the end the object is complete, or nothing of it is left.
 */
import { hash, randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import { openStore } from '../../src/store/open-store.ts'
import { createClient, type S3Settings } from '../../src/store/s3-requests.ts'
import { StoreError } from '../../src/store/store.ts'
import { forEachTest } from '../support/for-tests.ts'
import { type Fault, type S3Proxy, type SeenRequest, startS3Proxy } from '../support/servers/s3-proxy.ts'
import { describeOnS3, type S3Server } from '../support/servers/s3-servers.ts'
import { openS3Stage, quickRetries, type StoreStage } from '../support/stages/store-stage.ts'
import { download, exists, freshKey, put, writePieces } from '../support/store-contract.ts'
import { until } from '../support/until.ts'

const part = limits.storePartBytes
const content = randomBytes(2 * part + 1_000)
const onePart = content.subarray(0, 1_000)
const later = () => new Date(Date.now() + 3_600_000)

describeOnS3((server) => {
  const proxy = forEachTest(() => startS3Proxy(server().endpoint))
  const stage = forEachTest(() => openS3Stage(server(), proxy.endpoint))
  beforeEach(async () => {
    await stage.store.check()
    proxy.seen.length = 0
  })

  const scene: Scene = () => ({ server: server(), proxy, stage })
  describeRetried(scene)
  describeFailed(scene)
  describeRefused(scene)
})

type Scene = () => { server: S3Server; proxy: S3Proxy; stage: StoreStage }

/** The fault for the first matching request, and none for later ones. */
function once(matches: Matches, fault: Fault): (request: SeenRequest) => Fault {
  let left = 1
  return (request) => (matches(request) && left-- > 0 ? fault : undefined)
}

type Matches = (request: SeenRequest) => boolean

const isSecondPart: Matches = (request) => request.part === 2

/** Requests of an upload, with a content that makes the store send them. */
const requests: [what: string, matches: Matches, content: Buffer][] = [
  ['starting the upload', ({ begins }) => begins, onePart],
  ['the first part', (request) => request.part === 1, content],
  ['a part in the middle', isSecondPart, content],
  ['the last part', (request) => request.part === 3, content],
  ['completing the upload', ({ joins }) => joins, onePart],
  ['the check of the size', ({ method }) => method === 'HEAD', onePart],
]

function describeRetried(scene: Scene): void {
  describe('succeeds by retrying', () => {
    for (const [what, matches, content] of requests)
      test.for<Fault>([503, 'cut', 'lost'])(`if ${what} fails once: %s`, async (fault) => {
        const { proxy, stage } = scene()
        proxy.inflict(once(matches, fault))
        const key = freshKey()
        await put(stage.store, key, content)
        expect(proxy.seen.filter(matches).length).toBeGreaterThan(1)
        expect((await download(stage.store, key)).equals(content)).toBe(true)
        await stage.store.remove(key)
        // If the response to starting an upload is lost, its id is unknown; the sweep removes the upload.
        const isUnknown = what === 'starting the upload' && fault === 'lost'
        expect(await stage.leftovers()).toEqual(isUnknown ? ['unfinished'] : [])
      })

    test.for<Fault>([503, 'cut', 'lost'])('if each listing fails once: %s', async (fault) => {
      const { proxy, stage } = scene()
      const key = freshKey()
      await put(stage.store, key, randomBytes(10))
      let lists = 0
      proxy.inflict((request) => (request.lists && lists++ % 2 === 0 ? fault : undefined))
      expect((await Array.fromAsync(stage.store.listObjects(later()))).map((found) => found.key)).toEqual([
        key,
      ])
      expect(await stage.store.sweep(later())).toBe(0)
      expect(lists).toBe(4)
    })

    test('if a byte of a part changes in transit', async () => {
      const { proxy, stage } = scene()
      proxy.inflict(once(isSecondPart, 'damaged'))
      const key = freshKey()
      await put(stage.store, key, content)
      expect(proxy.seen.filter((request) => request.part === 2)).toHaveLength(2)
      expect((await download(stage.store, key)).equals(content)).toBe(true)
    })

    test('if the server stops responding', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, { ...quickRetries, idleMs: 2_000 })
      proxy.inflict(once((request) => request.part === 1, 'silent'))
      const key = freshKey()
      await put(stage.store, key, content)
      expect((await download(stage.store, key)).equals(content)).toBe(true)
      await stage.close()
    })

    test('if the server is away for a while', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, { ...quickRetries, tries: 12, retryMs: 20 })
      const key = freshKey()
      const writer = await stage.store.create(key, 'application/json')
      await writePieces(writer, content.subarray(0, part))
      proxy.down()
      const rest = writePieces(writer, content.subarray(part)).then(() =>
        writer.complete({ bytes: content.length }),
      )
      setTimeout(() => proxy.up(), 1_500)
      await rest
      expect((await download(stage.store, key)).equals(content)).toBe(true)
      await stage.close()
    })
  })
}

function describeFailed(scene: Scene): void {
  describe('fails and leaves nothing', () => {
    for (const [what, matches, content] of requests)
      test.for<Fault>([500, 'cut'])(`if ${what} always fails: %s`, async (fault) => {
        const { proxy, stage } = scene()
        proxy.inflict((request) => (matches(request) ? fault : undefined))
        const key = freshKey()
        const error = await put(stage.store, key, content).catch((thrown) => thrown)
        expect(error).toBeInstanceOf(StoreError)
        expect(error.retryable).toBe(true)
        expect(proxy.seen.filter(matches)).toHaveLength(quickRetries.tries)
        expect(await exists(stage.store, key)).toBe(false)
        expect(await stage.leftovers()).toEqual([])
      })

    test('if a part arrives damaged every time', async () => {
      const { proxy, stage } = scene()
      proxy.inflict((request) => (request.part === 2 ? 'damaged' : undefined))
      const key = freshKey()
      await expect(put(stage.store, key, content)).rejects.toThrow(StoreError)
      expect(await exists(stage.store, key)).toBe(false)
      expect(await stage.leftovers()).toEqual([])
    })

    test('if the server stays away; once it is back, the sweep removes the upload', async () => {
      const { proxy, stage } = scene()
      const key = freshKey()
      const writer = await stage.store.create(key, 'application/json')
      await writePieces(writer, content.subarray(0, 2 * part))
      await until(() => proxy.seen.some((request) => request.part === 1))
      proxy.down()
      const rest = writePieces(writer, content).then(() =>
        writer.complete({ bytes: 2 * part + content.length }),
      )
      const error = await rest.catch((thrown) => thrown)
      expect(error).toBeInstanceOf(StoreError)
      expect(error.retryable).toBe(true)
      await writer.abort()
      proxy.up()
      expect(await exists(stage.store, key)).toBe(false)
      expect(await stage.store.sweep(later())).toBe(1)
      expect(await stage.leftovers()).toEqual([])
    })

    test('if it is aborted during a request to a silent server, which is cut off', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, { ...quickRetries, idleMs: 3_600_000 })
      const writer = await stage.store.create(freshKey(), 'application/json')
      proxy.inflict((request) => (request.part === 2 ? 'silent' : undefined))
      await writePieces(writer, content.subarray(0, 2 * part))
      await until(() => proxy.seen.some((request) => request.part === 2))
      await writer.abort()
      expect(await stage.leftovers()).toEqual([])
    })

    test('if it is aborted between retries, without waiting for the next one', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, {
        ...quickRetries,
        retryMs: 3_600_000,
        retryMsMax: 3_600_000,
      })
      const writer = await stage.store.create(freshKey(), 'application/json')
      proxy.inflict((request) => (request.part === 1 ? 503 : undefined))
      // The content is larger than the writer's buffers, so the writer waits for the first part.
      const writing = writePieces(writer, Buffer.concat([content, content])).catch((error) => error)
      await until(() => proxy.seen.some((request) => request.part === 1))
      await writer.abort()
      expect(await writing).toBeInstanceOf(StoreError)
      expect(await stage.leftovers()).toEqual([])
    })
  })
}

function describeRefused(scene: Scene): void {
  describe('reports at once', () => {
    test('that the credentials are wrong', async () => {
      const { proxy, stage } = scene()
      for (const wrong of [{ secretKey: 'another-secret' }, { accessKey: 'nobody' }]) {
        const store = await openStore({ ...stage.settings, ...wrong } as typeof stage.settings, quickRetries)
        const before = proxy.seen.length
        const error = await store.create(freshKey(), 'application/json').catch((thrown) => thrown)
        expect(error).toBeInstanceOf(StoreError)
        expect([error.retryable, proxy.seen.length - before]).toEqual([false, 1])
        expect(error.message).toMatch(/SignatureDoesNotMatch|InvalidAccessKeyId|XAdminUserNotFound/)
        expect(error.message).not.toContain('another-secret')
        await expect(store.check()).rejects.toThrow(/Reaching the bucket .*(AccessDenied|XAdminUserNotFound)/)
      }
    })

    test('that the server is unreachable', async () => {
      const { proxy, stage } = scene()
      proxy.down()
      await expect(stage.store.check()).rejects.toThrow(
        /Reaching the bucket test-\w+ at http:\/\/127\.0\.0\.1:\d+ failed/,
      )
    })
  })

  test('the server refuses a part with a wrong MD5, which is the only protection over https', async () => {
    const { server, stage } = scene()
    const settings = stage.settings as S3Settings
    const client = createClient(settings, server.endpoint, quickRetries)
    client.enableSHA256 = false
    const bytes = Buffer.from('what was sent')
    const uploadID = await client.initiateNewMultipartUpload(settings.bucket, 'grandlivre/a', {})
    const send = (of: string) => {
      const headers = { 'content-md5': hash('md5', of, 'base64') }
      const where = {
        bucketName: settings.bucket,
        objectName: 'grandlivre/a',
        uploadID,
        partNumber: 1,
        headers,
      }
      return client.uploadPart(where, bytes)
    }
    await expect(send('what was meant')).rejects.toMatchObject({ code: 'BadDigest' })
    await send('what was sent')
    await client.abortMultipartUpload(settings.bucket, 'grandlivre/a', uploadID)
  })

  test('does not complete an upload with missing bytes', async () => {
    const { proxy, stage } = scene()
    const writer = await stage.store.create(freshKey(), 'application/json')
    await writer.write(content)
    await expect(writer.complete({ bytes: content.length + 1 })).rejects.toThrow(StoreError)
    expect(proxy.seen.filter(({ joins }) => joins)).toEqual([])
  })

  test('creates a missing bucket', async () => {
    const { server } = scene()
    const stage = openS3Stage(server)
    const key = freshKey()
    expect(await stage.store.sweep(later())).toBe(0)
    expect(await Array.fromAsync(stage.store.listObjects(later()))).toEqual([])
    await put(stage.store, key, randomBytes(10))
    expect(await download(stage.store, key)).toHaveLength(10)
    await stage.close()
  })

  test('lists more objects than a server returns per page', async () => {
    const { server, stage } = scene()
    const settings = stage.settings as S3Settings
    const client = createClient(settings, server.endpoint, quickRetries)
    const keys = Array.from({ length: 1_001 }, (_, i) => `a/${String(i).padStart(4, '0')}`)
    for (let i = 0; i < keys.length; i += 100)
      await Promise.all(
        keys.slice(i, i + 100).map((key) => client.putObject(settings.bucket, `grandlivre/${key}`, 'x')),
      )
    expect((await Array.fromAsync(stage.store.listObjects(later()))).map(({ key }) => key)).toEqual(keys)
    // The stage would remove the objects one by one.
    await client.removeObjects(
      settings.bucket,
      keys.map((key) => `grandlivre/${key}`),
    )
  })

  test('signs for the public endpoint', async () => {
    const { server, proxy, stage } = scene()
    expect((await stage.store.signedUrl('a', 'a.json', 60)).startsWith(`${server.endpoint}/`)).toBe(true)
    const settings = { ...stage.settings, endpoint: server.endpoint, publicEndpoint: proxy.endpoint }
    const other = await openStore(settings as typeof stage.settings, quickRetries)
    const key = freshKey()
    await put(other, key, content)
    proxy.seen.length = 0
    expect((await download(other, key)).equals(content)).toBe(true)
    expect(proxy.seen).toHaveLength(1)
  })
}
