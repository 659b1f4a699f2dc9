import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, readlink, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { readLink, signLink } from '../../src/store/file-links.ts'
import { forTests } from '../support/for-tests.ts'
import { openFolderStage } from '../support/stages/store-stage.ts'
import { put } from '../support/store-contract.ts'
import { until } from '../support/until.ts'

const content = randomBytes(1_000_003)
const key = '1000/export_1.json'

const stage = forTests(openFolderStage)
let link: string
let etag: string

beforeAll(async () => {
  await put(stage.store, key, content)
  link = await stage.store.signedUrl(key, 'été.json', 600)
  etag = (await get(link)).headers.get('etag')!
})

async function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(url, { headers, method })
  return {
    status: response.status,
    headers: response.headers,
    body: Buffer.from(await response.arrayBuffer()),
  }
}

const codeOf = ({ body }: { body: Buffer }) => JSON.parse(String(body)).error.code

/** Sends the path as it is, where fetch would normalize it. */
async function raw(path: string): Promise<number> {
  const { hostname, port } = new URL(stage.url)
  const outgoing = request({ hostname, port, path }).end()
  const [response] = await once(outgoing, 'response')
  response.resume()
  return response.statusCode
}

describe('a stored file', () => {
  test('is sent whole, with its size, name and ETag', async () => {
    const { status, headers, body } = await get(link)
    expect([status, body.equals(content)]).toEqual([200, true])
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-length': '1000003',
      'content-type': 'application/json',
      'content-disposition': `attachment; filename="ete.json"; filename*=UTF-8''%C3%A9t%C3%A9.json`,
      'accept-ranges': 'bytes',
      'cache-control': 'private, no-cache',
      'x-content-type-options': 'nosniff',
      etag: expect.stringMatching(/^"[\w-]+"$/),
      'last-modified': expect.stringContaining('GMT'),
    })
  })

  test('answers HEAD like GET, without the body', async () => {
    const { status, headers, body } = await get(link, {}, 'HEAD')
    expect([status, body.length]).toEqual([200, 0])
    const shown = Object.fromEntries((await get(link)).headers)
    for (const name of ['content-length', 'content-type', 'content-disposition', 'etag', 'accept-ranges'])
      expect(headers.get(name)).toBe(shown[name])
    const part = await get(link, { Range: 'bytes=0-9' }, 'HEAD')
    expect([part.status, part.headers.get('content-length'), part.body.length]).toEqual([206, '10', 0])
  })

  test('refuses any other method', async () => {
    const { status, headers, body } = await get(link, {}, 'DELETE')
    expect([status, headers.get('allow'), codeOf({ body })]).toEqual([
      405,
      'GET, HEAD',
      'ERR-METHOD-NOT-ALLOWED',
    ])
  })

  test('may be empty', async () => {
    await put(stage.store, '1000/empty.json', new Uint8Array())
    const { status, headers, body } = await get(await stage.store.signedUrl('1000/empty.json', 'a.json', 60))
    expect([status, headers.get('content-length'), body.length]).toEqual([200, '0', 0])
    const url = await stage.store.signedUrl('1000/empty.json', 'a.json', 60)
    expect((await get(url, { Range: 'bytes=0-' })).status).toBe(416)
  })

  test('breaks off its transfer if the file was truncated meanwhile', async () => {
    await put(stage.store, '1000/cut.json', randomBytes(20_000_000))
    const url = await stage.store.signedUrl('1000/cut.json', 'a.json', 60)
    const printed = [vi.spyOn(console, 'error'), vi.spyOn(process.stderr, 'write')]
    const response = await fetch(url)
    await truncate(join(stage.folder, '1000/cut.json'), 10_000)
    await expect(response.arrayBuffer()).rejects.toThrow()
    await until(() => stage.logged.includes('file.broken'))
    // Anything else that would be reported of it is reported by then.
    await get(link)
    expect(stage.logged.filter((event) => event === 'file.broken')).toHaveLength(1)
    for (const print of printed) expect(print, 'only the log reports it').not.toBeCalled()
    vi.restoreAllMocks()
  })

  test.skipIf(process.platform !== 'linux')('is closed when the client leaves', async () => {
    await put(stage.store, '1000/left.json', randomBytes(20_000_000))
    const url = await stage.store.signedUrl('1000/left.json', 'a.json', 60)
    const linksOf = async () => {
      const open = await readdir('/proc/self/fd')
      const paths = await Promise.all(open.map((file) => readlink(`/proc/self/fd/${file}`).catch(() => '')))
      return paths.filter((path) => path.endsWith('left.json')).length
    }
    const broken = () => stage.logged.filter((event) => event === 'file.broken').length
    const brokenBefore = broken()
    const outgoing = request(url).end()
    await once(outgoing, 'response')
    expect(await linksOf()).toBe(1)
    outgoing.destroy()
    await until(async () => (await linksOf()) === 0)
    expect(broken()).toBe(brokenBefore)
    for (const method of ['HEAD', 'GET']) await get(url, { 'If-None-Match': '*' }, method)
    await get(url, { Range: 'bytes=30000000-' })
    await until(async () => (await linksOf()) === 0)
  })
})

describe('a range', () => {
  test.for([
    ['the first bytes', 'bytes=0-99', 0, 100],
    ['one byte', 'bytes=5-5', 5, 6],
    ['the last byte', 'bytes=1000002-1000002', 1_000_002, 1_000_003],
    ['an open end', 'bytes=999000-', 999_000, 1_000_003],
    ['an end beyond the file', 'bytes=1000000-2000000', 1_000_000, 1_000_003],
    ['a suffix', 'bytes=-7', 999_996, 1_000_003],
    ['a suffix longer than the file', 'bytes=-2000000', 0, 1_000_003],
    ['more than one read returns', 'bytes=1-900000', 1, 900_001],
  ] as const)('is answered with %s', async ([, range, start, end]) => {
    const { status, headers, body } = await get(link, { Range: range })
    expect(status).toBe(206)
    expect(headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/1000003`)
    expect(headers.get('content-length')).toBe(String(end - start))
    expect(body.equals(content.subarray(start, end))).toBe(true)
  })

  test.for(['bytes=1000003-', 'bytes=1000003-1000010', 'bytes=9999999-', 'bytes=-0'])(
    'beyond the end is refused: %s',
    async (range) => {
      const answer = await get(link, { Range: range })
      expect([answer.status, codeOf(answer)]).toEqual([416, 'ERR-RANGE-NOT-SATISFIABLE'])
      expect(answer.headers.get('content-range')).toBe('bytes */1000003')
    },
  )

  test.for(['bytes=0-1,5-6', 'bytes=-', 'bytes=9-3', 'lines=1-2', 'bytes=a-b', 'nonsense'])(
    'that is not supported is ignored, and the whole file is sent: %s',
    async (range) => {
      const { status, body } = await get(link, { Range: range })
      expect([status, body.equals(content)]).toEqual([200, true])
    },
  )
})

describe('the ETag of a file', () => {
  test('saves the transfer if the client sends the current one', async () => {
    for (const tag of [etag, `"other", ${etag}`, `W/${etag}`, '*']) {
      const { status, headers, body } = await get(link, { 'If-None-Match': tag })
      expect([status, headers.get('etag'), body.length]).toEqual([304, etag, 0])
    }
    expect((await get(link, { 'If-None-Match': '"other"' })).status).toBe(200)
  })

  test('in If-Range decides whether a part or the whole file is sent', async () => {
    const { headers } = await get(link)
    const status = async (ifRange: string) =>
      (await get(link, { Range: 'bytes=10-', 'If-Range': ifRange })).status
    expect(await status(etag)).toBe(206)
    expect(await status(headers.get('last-modified')!)).toBe(206)
    expect(await status('"other"')).toBe(200)
    expect(await status(`W/${etag}`)).toBe(200)
    expect(await status('Wed, 21 Oct 2015 07:28:00 GMT')).toBe(200)
  })

  test('differs for each file', async () => {
    await put(stage.store, '1000/export_2.json', content)
    const other = await get(await stage.store.signedUrl('1000/export_2.json', 'a.json', 60))
    expect(other.headers.get('etag')).not.toBe(etag)
  })
})

describe('the address of a file', () => {
  test('is refused if any part of it was changed', async () => {
    const url = new URL(link)
    const changes: Record<string, (changed: URL) => void> = {
      key: (changed) => (changed.pathname = '/files/1000/export_2.json'),
      expires: (changed) => changed.searchParams.set('expires', '9999999999'),
      name: (changed) => changed.searchParams.set('name', 'b.json'),
      signature: (changed) => changed.searchParams.set('signature', 'A'.repeat(43)),
      'the last bits of the signature': (changed) => {
        const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
        const signature = changed.searchParams.get('signature')!
        const last = digits.indexOf(signature.at(-1)!)
        changed.searchParams.set('signature', signature.slice(0, -1) + digits[last ^ 1])
      },
      'short signature': (changed) => changed.searchParams.set('signature', 'A'),
      'no signature': (changed) => changed.searchParams.delete('signature'),
      'no name': (changed) => changed.searchParams.delete('name'),
      'a second name': (changed) => changed.searchParams.append('name', 'b.json'),
      'one more parameter': (changed) => changed.searchParams.append('more', '1'),
    }
    for (const [what, change] of Object.entries(changes)) {
      const changed = new URL(url)
      change(changed)
      const answer = await get(changed.href)
      expect([what, answer.status, codeOf(answer)]).toEqual([what, 403, 'ERR-FILE-LINK-INVALID'])
    }
  })

  test('is accepted only under the key that signed it, even among several keys', () => {
    const target = signLink({ key, fileName: 'a.json', expires: 9_999_999_999 }, 'ab'.repeat(32))
    const others = ['cd'.repeat(32), 'ef'.repeat(32)]
    expect(readLink(target, [...others, 'ab'.repeat(32)])).toEqual({
      key,
      fileName: 'a.json',
      expires: 9_999_999_999,
    })
    expect(readLink(target, others)).toBeUndefined()
  })

  test('answers 410 once it has expired, also if the file is gone', async () => {
    const expired = await get(await stage.store.signedUrl(key, 'a.json', -1))
    expect([expired.status, codeOf(expired)]).toEqual([410, 'ERR-FILE-LINK-EXPIRED'])
    const removed = await get(await stage.store.signedUrl('1000/never.json', 'a.json', 60))
    expect([removed.status, codeOf(removed)]).toEqual([410, 'ERR-FILE-LINK-EXPIRED'])
  })

  test('opens only stored files, signed or not', async () => {
    const outside = `${basename(stage.folder)}-outside.json`
    await writeFile(join(stage.folder, '..', outside), '{}')
    await mkdir(join(stage.folder, '1000'), { recursive: true })
    await symlink('/etc/hostname', join(stage.folder, '1000/linked'))
    const signingKey = (stage.settings as { signingKeys: readonly string[] }).signingKeys[0]!
    const keys = [
      `../${outside}`,
      `1000/../../${outside}`,
      '1000',
      '',
      '1000/',
      '.hidden',
      '1000/linked',
      '//etc/passwd',
    ]
    for (const name of keys) {
      const target = signLink({ key: name, fileName: 'a', expires: 9_999_999_999 }, signingKey)
      expect([name, await raw(target)]).toEqual([
        name,
        expect.toSatisfy((code) => code === 404 || code === 410),
      ])
    }
    for (const path of [
      '/files',
      '/files/',
      '/files/../etc/passwd',
      `/files/%2e%2e/${outside}`,
      '/files/a%2fb',
      '/files/a\\b',
    ])
      expect([path, await raw(path)]).toEqual([path, 404])
    await rm(join(stage.folder, '..', outside))
  })

  test('does not show in error bodies where files are stored', async () => {
    const answer = await get(await stage.store.signedUrl('1000/never.json', 'a.json', 60))
    expect(String(answer.body)).not.toContain(stage.folder)
    expect(await readFile(join(stage.folder, key))).toHaveLength(content.length)
  })
})
