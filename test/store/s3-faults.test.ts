/** What goes wrong between the service and an S3 server: the object is whole in the end, or nothing is left of it. */
import { hash, randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import { openStore } from '../../src/store/open-store.ts'
import { createClient, type S3Settings } from '../../src/store/s3-requests.ts'
import { StoreError } from '../../src/store/store.ts'
import { type Fault, type S3Proxy, type SeenRequest, startS3Proxy } from '../support/servers/s3-proxy.ts'
import { describeOnS3, type S3Server } from '../support/servers/s3-servers.ts'
import { openS3Stage, type StoreStage, shortPatience } from '../support/stages/store-stage.ts'
import { download, freshKey, isThere, put, writePieces } from '../support/store-contract.ts'
import { until } from '../support/until.ts'

const part = limits.storePartBytes
const content = randomBytes(3 * part + 1_000)
const later = () => new Date(Date.now() + 3_600_000)

describeOnS3((server) => {
  let proxy: S3Proxy
  let stage: StoreStage

  beforeEach(async () => {
    proxy = await startS3Proxy(server().endpoint)
    stage = openS3Stage(server(), proxy.endpoint)
    await stage.store.check()
    proxy.seen.length = 0
  })

  afterEach(async () => {
    await stage.close()
    await proxy.close()
  })

  const scene: Scene = () => ({ server: server(), proxy, stage })
  describeMended(scene)
  describeBroken(scene)
  describeRefused(scene)
})

type Scene = () => { server: S3Server; proxy: S3Proxy; stage: StoreStage }

/** The fault for the first request that is meant, and none for those behind it. */
function once(isMeant: (request: SeenRequest) => boolean, fault: Fault): (request: SeenRequest) => Fault {
  let left = 1
  return (request) => (isMeant(request) && left-- > 0 ? fault : undefined)
}

const requests: Record<string, (request: SeenRequest) => boolean> = {
  'the beginning': ({ begins }) => begins,
  'the first part': (request) => request.part === 1,
  'a part in the middle': (request) => request.part === 2,
  'the last part': (request) => request.part === 4,
  'the joining': ({ joins }) => joins,
  'the check of the size': ({ method }) => method === 'HEAD',
}

function describeMended(scene: Scene): void {
  describe('is mended', () => {
    for (const [what, isMeant] of Object.entries(requests))
      test.for<Fault>([503, 'cut', 'lost'])(`where ${what} fails once: %s`, async (fault) => {
        const { proxy, stage } = scene()
        proxy.inflict(once(isMeant, fault))
        const key = freshKey()
        await put(stage.store, key, content)
        expect(proxy.seen.filter(isMeant).length).toBeGreaterThan(1)
        expect((await download(stage.store, key)).equals(content)).toBe(true)
        await stage.store.remove(key)
        // Of a beginning whose answer was lost, nobody knows; the sweep removes it.
        const isUnknown = what === 'the beginning' && fault === 'lost'
        expect(await stage.leftovers()).toEqual(isUnknown ? ['unfinished'] : [])
      })

    test.for<Fault>([503, 'cut', 'lost'])(
      'where what is stored is listed, and each list fails once: %s',
      async (fault) => {
        const { proxy, stage } = scene()
        const key = freshKey()
        await put(stage.store, key, randomBytes(10))
        let lists = 0
        proxy.inflict((request) => (request.lists && lists++ % 2 === 0 ? fault : undefined))
        expect((await Array.fromAsync(stage.store.list(later()))).map((found) => found.key)).toEqual([key])
        expect(await stage.store.sweep(later())).toBe(0)
        expect(lists).toBe(4)
      },
    )

    test('where a byte of a part changes on its way', async () => {
      const { proxy, stage } = scene()
      proxy.inflict(once(requests['a part in the middle']!, 'damaged'))
      const key = freshKey()
      await put(stage.store, key, content)
      expect(proxy.seen.filter((request) => request.part === 2)).toHaveLength(2)
      expect((await download(stage.store, key)).equals(content)).toBe(true)
    })

    test('where the server falls silent', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, { ...shortPatience, idleMs: 2_000 })
      proxy.inflict(once(requests['the first part']!, 'silent'))
      const key = freshKey()
      await put(stage.store, key, content)
      expect((await download(stage.store, key)).equals(content)).toBe(true)
      await stage.close()
    })

    test('where the server is away for a while', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, { ...shortPatience, tries: 12, retryMs: 20 })
      const key = freshKey()
      const writer = await stage.store.create(key, 'application/json')
      await writePieces(writer, content.subarray(0, 2 * part))
      proxy.down()
      const rest = writePieces(writer, content.subarray(2 * part)).then(() =>
        writer.complete({ bytes: content.length }),
      )
      setTimeout(() => proxy.up(), 1_500)
      await rest
      expect((await download(stage.store, key)).equals(content)).toBe(true)
      await stage.close()
    })
  })
}

function describeBroken(scene: Scene): void {
  describe('fails, and leaves nothing,', () => {
    for (const [what, isMeant] of Object.entries(requests))
      test.for<Fault>([500, 'cut'])(`where ${what} fails always: %s`, async (fault) => {
        const { proxy, stage } = scene()
        proxy.inflict((request) => (isMeant(request) ? fault : undefined))
        const key = freshKey()
        const error = await put(stage.store, key, content).catch((thrown) => thrown)
        expect(error).toBeInstanceOf(StoreError)
        expect(error.retryable).toBe(true)
        expect(proxy.seen.filter(isMeant)).toHaveLength(shortPatience.tries)
        expect(await isThere(stage.store, key)).toBe(false)
        expect(await stage.leftovers()).toEqual([])
      })

    test('where a part arrives damaged each time', async () => {
      const { proxy, stage } = scene()
      proxy.inflict((request) => (request.part === 2 ? 'damaged' : undefined))
      const key = freshKey()
      await expect(put(stage.store, key, content)).rejects.toThrow(StoreError)
      expect(await isThere(stage.store, key)).toBe(false)
      expect(await stage.leftovers()).toEqual([])
    })

    test('where the server went away for good: once it is back, the sweep finds the upload', async () => {
      const { proxy, stage } = scene()
      const key = freshKey()
      const writer = await stage.store.create(key, 'application/json')
      await writePieces(writer, content.subarray(0, 3 * part))
      await until(() => proxy.seen.some((request) => request.part === 1))
      proxy.down()
      const rest = writePieces(writer, content).then(() =>
        writer.complete({ bytes: 3 * part + content.length }),
      )
      const error = await rest.catch((thrown) => thrown)
      expect(error).toBeInstanceOf(StoreError)
      expect(error.retryable).toBe(true)
      await writer.abort()
      proxy.up()
      expect(await isThere(stage.store, key)).toBe(false)
      expect(await stage.store.sweep(later())).toBe(1)
      expect(await stage.leftovers()).toEqual([])
    })

    test('and cuts off what is on its way to a silent server', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, { ...shortPatience, idleMs: 3_600_000 })
      const writer = await stage.store.create(freshKey(), 'application/json')
      proxy.inflict((request) => (request.part === 2 ? 'silent' : undefined))
      await writePieces(writer, content.subarray(0, 2 * part))
      await until(() => proxy.seen.some((request) => request.part === 2))
      await writer.abort()
      expect(await stage.leftovers()).toEqual([])
    })

    test('and does not wait for the store when it is aborted in mid-pause', async () => {
      const { server, proxy } = scene()
      const stage = openS3Stage(server, proxy.endpoint, {
        ...shortPatience,
        retryMs: 3_600_000,
        retryMsMax: 3_600_000,
      })
      const writer = await stage.store.create(freshKey(), 'application/json')
      proxy.inflict((request) => (request.part === 1 ? 503 : undefined))
      const writing = writePieces(writer, content).catch((error) => error)
      await until(() => proxy.seen.some((request) => request.part === 1))
      await writer.abort()
      expect(await writing).toBeInstanceOf(StoreError)
      expect(await stage.leftovers()).toEqual([])
    })
  })
}

function describeRefused(scene: Scene): void {
  describe('says at once', () => {
    test('that the credentials are wrong', async () => {
      const { proxy, stage } = scene()
      for (const wrong of [{ secretKey: 'another-secret' }, { accessKey: 'nobody' }]) {
        const store = await openStore({ ...stage.settings, ...wrong } as typeof stage.settings, shortPatience)
        const before = proxy.seen.length
        const error = await store.create(freshKey(), 'application/json').catch((thrown) => thrown)
        expect(error).toBeInstanceOf(StoreError)
        expect([error.retryable, proxy.seen.length - before]).toEqual([false, 1])
        expect(error.message).toMatch(/SignatureDoesNotMatch|InvalidAccessKeyId|XAdminUserNotFound/)
        expect(error.message).not.toContain('another-secret')
        await expect(store.check()).rejects.toThrow(/Reaching the bucket .*(AccessDenied|XAdminUserNotFound)/)
      }
    })

    test('that the server is out of reach', async () => {
      const { proxy, stage } = scene()
      proxy.down()
      await expect(stage.store.check()).rejects.toThrow(
        /Reaching the bucket test-\w+ at http:\/\/127\.0\.0\.1:\d+ failed/,
      )
    })
  })

  test('has a part refused whose MD5 does not fit, as over https nothing else covers it', async () => {
    const { server, stage } = scene()
    const settings = stage.settings as S3Settings
    const client = createClient(settings, server.endpoint, shortPatience)
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

  test('joins nothing of which bytes are missing', async () => {
    const { proxy, stage } = scene()
    const writer = await stage.store.create(freshKey(), 'application/json')
    await writer.write(content)
    await expect(writer.complete({ bytes: content.length + 1 })).rejects.toThrow(StoreError)
    expect(proxy.seen.filter(({ joins }) => joins)).toEqual([])
  })

  test('makes the bucket where it is missing', async () => {
    const { server } = scene()
    const stage = openS3Stage(server)
    const key = freshKey()
    expect(await stage.store.sweep(later())).toBe(0)
    expect(await Array.fromAsync(stage.store.list(later()))).toEqual([])
    await put(stage.store, key, randomBytes(10))
    expect(await download(stage.store, key)).toHaveLength(10)
    await stage.close()
  })

  test('lists more than a server gives at once', async () => {
    const { server, stage } = scene()
    const settings = stage.settings as S3Settings
    const client = createClient(settings, server.endpoint, shortPatience)
    const keys = Array.from({ length: 2_001 }, (_, i) => `a/${String(i).padStart(4, '0')}`)
    for (let i = 0; i < keys.length; i += 100)
      await Promise.all(
        keys.slice(i, i + 100).map((key) => client.putObject(settings.bucket, `grandlivre/${key}`, 'x')),
      )
    expect((await Array.fromAsync(stage.store.list(later()))).map(({ key }) => key)).toEqual(keys)
    // Afterwards the stage removes one by one what it lists.
    await client.removeObjects(
      settings.bucket,
      keys.map((key) => `grandlivre/${key}`),
    )
  })

  test('signs for the public endpoint', async () => {
    const { server, proxy, stage } = scene()
    expect((await stage.store.signedUrl('a', 'a.json', 60)).startsWith(`${server.endpoint}/`)).toBe(true)
    const settings = { ...stage.settings, endpoint: server.endpoint, publicEndpoint: proxy.endpoint }
    const other = await openStore(settings as typeof stage.settings, shortPatience)
    const key = freshKey()
    await put(other, key, content)
    proxy.seen.length = 0
    expect((await download(other, key)).equals(content)).toBe(true)
    expect(proxy.seen).toHaveLength(1)
  })
}
