import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { forTests } from '../../../../test/support/for-tests.ts'
import type { FullExport } from '../../src/client/grandlivre.ts'
import { setDownloadStage } from '../support/client/download-stage.ts'
import { spoil, untouched } from '../support/client/faulty-proxy.ts'

const stage = forTests(setDownloadStage)
untouched(() => stage.proxy)
beforeEach(async () => {
  for (const name of await stage.found()) await rm(join(stage.folder, name))
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const at = (name: string) => join(stage.folder, name)

/** The ranges that were requested of the file server. */
const ranges = () => stage.proxy.asked.map(({ headers }) => headers.range)

async function expectWhole(exported: FullExport, name: string): Promise<void> {
  const bytes = await stage.read(name)
  expect([bytes.length, sha256(bytes)]).toEqual([exported.status.size, exported.status.fileSha256])
  expect(await stage.found()).toEqual([name])
}

/** Interrupts a download when this many bytes are on disk. */
async function leavePart(exported: FullExport, name: string, bytes: number): Promise<void> {
  const controller = new AbortController()
  stage.proxy.fault = () => ({ kind: 'stall', afterBytes: bytes })
  const reason = new Error('interrupted')
  const onProgress = (progress: { bytes: number }) => progress.bytes === bytes && controller.abort(reason)
  await expect(exported.download(at(name), { signal: controller.signal, onProgress })).rejects.toBe(reason)
  expect((await stage.read(`${name}.part`)).length).toBe(bytes)
  stage.proxy.asked = []
  stage.proxy.fault = () => undefined
}

test('an export is started, followed and downloaded, without credentials for the file', async () => {
  const seen: number[] = []
  const onProgress = ({ rows }: { rows: number }) => void seen.push(rows)
  const exported = await stage.library().fullExport({ format: 'json', compression: 'gzip' }, { onProgress })
  expect([exported.wasThere, exported.status.rows > 10, exported.status.totals]).toEqual([
    false,
    true,
    { debit: '12794.25', credit: '43244177.9' },
  ])
  const downloaded = await exported.download(at('year.json.gz'))
  await expectWhole(exported, 'year.json.gz')
  const { size, fileSha256, contentSize, sha256: contentSha256 } = exported.status
  expect(downloaded).toEqual({
    file: at('year.json.gz'),
    bytes: size,
    fileSha256,
    contentBytes: contentSize,
    sha256: contentSha256,
    isContentVerified: true,
    keptBytes: 0,
    connections: 1,
    restarts: 0,
  })
  const content = gunzipSync(await stage.read('year.json.gz'))
  expect(sha256(content)).toBe(contentSha256)
  const sent = stage.proxy.asked[0]!.headers
  expect(Object.keys(sent).filter((name) => /^(authorization|x-third|society)/.test(name))).toEqual([])
  const again = await stage.library().fullExport({ format: 'JSON', compression: 'gzip' })
  expect([again.wasThere, again.status.id]).toEqual([true, exported.status.id])
  expect((await stage.library().fullExport({ exportId: exported.status.id })).status).toEqual(exported.status)
})

test.each(['TRA', 'CSV', 'PARQUET'] as const)(
  'a file in %s, zstd, is downloaded and verified',
  async (format) => {
    const exported = await stage.library().fullExport({ format, compression: 'zstd' })
    expect((await exported.download(at('file'))).isContentVerified).toBe(true)
    await expectWhole(exported, 'file')
  },
)

test('after a stall, early end, refusal or cut, a download resumes after its last byte', async () => {
  const exported = await stage.library({ stallMs: 300 }).fullExport({ format: 'JSON' })
  const unavailable = { kind: 'answer', status: 503, headers: { 'Retry-After': '0' } } as const
  spoil(stage.proxy, [
    { kind: 'stall', afterBytes: 1000 },
    { kind: 'refuse' },
    unavailable,
    { kind: 'end', afterBytes: 7 },
  ])
  const downloaded = await exported.download(at('year.json'))
  await expectWhole(exported, 'year.json')
  expect(downloaded).toMatchObject({ connections: 3, restarts: 0, isContentVerified: true })
  const from = (bytes: number) => `bytes=${bytes}-`
  expect(ranges()).toEqual([undefined, from(1000), from(1000), from(1000), from(1007)])
  // Bytes that arrive just before a reset may be lost, and are requested again.
  await rm(at('year.json'))
  stage.proxy.fault = (_, nth) => (nth % 3 === 0 ? undefined : { kind: 'cut', afterBytes: 100_000 })
  await exported.download(at('year.json'))
  await expectWhole(exported, 'year.json')
})

test('a download may break more often than the limit of attempts, as long as each attempt brings bytes', async () => {
  const exported = await stage.library({ attemptsMax: 2 }).fullExport({ format: 'JSON' })
  const afterBytes = Math.ceil(exported.status.size / 6)
  stage.proxy.fault = () => ({ kind: 'end', afterBytes })
  expect(await exported.download(at('year.json'))).toMatchObject({ connections: 6, restarts: 0 })
  await expectWhole(exported, 'year.json')
})

test('a download whose connection stays lost keeps its bytes, and the next download continues after them', async () => {
  const exported = await stage.library({ attemptsMax: 3, stallMs: 300 }).fullExport({ format: 'JSON' })
  stage.proxy.fault = (_, nth) => (nth === 1 ? { kind: 'stall', afterBytes: 2000 } : { kind: 'refuse' })
  await expect(exported.download(at('year.json'))).rejects.toMatchObject({
    code: 'CONNECTION-LOST',
    message: expect.stringContaining(`2000 of ${exported.status.size} bytes are kept`),
  })
  expect(await stage.found()).toEqual(['year.json.part', 'year.json.part.json'])
  stage.proxy.asked = []
  stage.proxy.fault = () => undefined
  expect(await exported.download(at('year.json'))).toMatchObject({ keptBytes: 2000, connections: 1 })
  expect(ranges()).toEqual(['bytes=2000-'])
  await expectWhole(exported, 'year.json')
})

test('a damaged part, or a part of another file, is not resumed', async () => {
  const exported = await stage.library().fullExport({ format: 'JSON' })
  const reasons: string[] = []
  const onRestart = (reason: string) => void reasons.push(reason)
  await leavePart(exported, 'year.json', 3000)
  const part = await stage.read('year.json.part')
  part[100]! ^= 1
  await writeFile(at('year.json.part'), part)
  expect(await exported.download(at('year.json'), { onRestart })).toMatchObject({
    keptBytes: 3000,
    restarts: 1,
  })
  await expectWhole(exported, 'year.json')
  const other = await stage.library().fullExport({ format: 'CSV' })
  await leavePart(other, 'year.json', 500)
  expect(await exported.download(at('year.json'), { onRestart })).toMatchObject({ keptBytes: 0, restarts: 1 })
  await expectWhole(exported, 'year.json')

  await leavePart(exported, 'year.json', 500)
  await writeFile(at('year.json.part'), Buffer.alloc(exported.status.size + 1))
  expect(await exported.download(at('year.json'))).toMatchObject({ keptBytes: 0 })
  await expectWhole(exported, 'year.json')
  expect(reasons).toEqual([expect.stringContaining('SHA-256'), expect.stringContaining('of another file')])
})

test("bytes beyond the end of the server's file are dropped", async () => {
  const exported = await stage.library().fullExport({ format: 'JSON' })
  await leavePart(exported, 'year.json', 3000)
  spoil(stage.proxy, [{ kind: 'answer', status: 416 }])
  expect(await exported.download(at('year.json'))).toMatchObject({ keptBytes: 3000, restarts: 1 })
  expect(ranges()).toEqual(['bytes=3000-', undefined])
  await expectWhole(exported, 'year.json')
})

test('a file that has changed on the server is downloaded from its beginning', async () => {
  const exported = await stage.library().fullExport({ format: 'JSON' })
  await leavePart(exported, 'year.json', 3000)
  const state = JSON.parse(await readFile(at('year.json.part.json'), 'utf8'))
  await writeFile(at('year.json.part.json'), JSON.stringify({ ...state, etag: '"another"' }))
  const reasons: string[] = []
  await exported.download(at('year.json'), { onRestart: (reason) => void reasons.push(reason) })
  expect([reasons, ranges()]).toEqual([[expect.stringContaining('from its beginning')], ['bytes=3000-']])
  await expectWhole(exported, 'year.json')
})

test('an expired address is replaced by a new one, and a second refusal is an error', async () => {
  const exported = await stage.library().fullExport({ format: 'JSON' })
  const code = 'ERR-FILE-LINK-EXPIRED'
  const body = JSON.stringify({ error: { code, message: 'This file address has expired', details: {} } })
  const expired = { kind: 'answer', status: 410, body } as const
  const before = stage.statusesRead()
  spoil(stage.proxy, [expired])
  await exported.download(at('year.json'))
  await expectWhole(exported, 'year.json')
  expect([ranges().length, stage.statusesRead()]).toEqual([2, before + 1])
  stage.proxy.fault = () => ({ ...expired, status: 403 })
  await expect(exported.download(at('other.json'))).rejects.toMatchObject({ code, status: 403 })
})

test('an address that expires before a cut download resumes is replaced by a new one', async () => {
  const following = new AbortController()
  const exported = await stage.library().fullExport({ format: 'JSON' }, { signal: following.signal })
  following.abort()
  const before = stage.statusesRead()
  const expired = { kind: 'answer', status: 403 } as const
  spoil(stage.proxy, [{ kind: 'end', afterBytes: 1000 }, expired, { kind: 'end', afterBytes: 1000 }, expired])
  await exported.download(at('year.json'))
  await expectWhole(exported, 'year.json')
  expect([ranges().length, stage.statusesRead()]).toEqual([5, before + 2])
})

test('keeps the bytes so far if a page is sent in place of the file', async () => {
  const exported = await stage.library().fullExport({ format: 'JSON' })
  await leavePart(exported, 'year.json', 3000)
  const headers = { 'Content-Length': '12' }
  stage.proxy.fault = () => ({ kind: 'answer', status: 200, headers, body: 'Sign in here' })
  await expect(exported.download(at('year.json'))).rejects.toMatchObject({ code: 'FILE-DIFFERS' })
  stage.proxy.fault = () => undefined
  expect(await exported.download(at('year.json'))).toMatchObject({ keptBytes: 3000, restarts: 0 })
  await expectWhole(exported, 'year.json')
})

test('a file whose bytes do not match its status is not renamed to its final name', async () => {
  const exported = await stage.library().fullExport({ format: 'JSON' })
  stage.proxy.fault = () => ({ kind: 'flip', at: 77 })
  await writeFile(at('year.json'), 'of yesterday')
  await expect(exported.download(at('year.json'))).rejects.toMatchObject({ code: 'FILE-DIFFERS' })
  expect([await stage.found(), String(await stage.read('year.json'))]).toEqual([
    ['year.json'],
    'of yesterday',
  ])
  const body = 'another file'
  stage.proxy.fault = () => ({ kind: 'answer', status: 200, headers: { 'Content-Length': '12' }, body })
  await expect(exported.download(at('year.json'))).rejects.toMatchObject({
    message: expect.stringContaining(`12 bytes instead of ${exported.status.size}`),
  })
})

test('the error for a file that cannot be written names the file', async () => {
  const exported = await stage.library().fullExport({ format: 'JSON' })
  await expect(exported.download(at('missing/year.json'))).rejects.toMatchObject({
    code: 'FILE-NOT-WRITTEN',
    message: expect.stringContaining('missing/year.json.part'),
  })
})

test('the second of two downloads to one name leaves its complete file', async () => {
  const first = await stage.library({ stallMs: 300 }).fullExport({ format: 'JSON' })
  const second = await stage.library().fullExport({ format: 'CSV' })
  spoil(stage.proxy, [{ kind: 'stall', afterBytes: 3000 }])
  let meanwhile: Promise<unknown> | undefined
  const onProgress = ({ bytes }: { bytes: number }) => {
    if (bytes === 3000) meanwhile = second.download(at('year'))
  }
  await expect(first.download(at('year'), { onProgress })).rejects.toMatchObject({ code: 'FILE-NOT-WRITTEN' })
  await meanwhile
  await expectWhole(second, 'year')
})

test('the error for a failed export contains the reason', async () => {
  const exported = await stage.library().fullExport({ format: 'TRA', idExercice: '11' })
  const { id } = exported.status
  const { client } = stage.stage.staff
  await client.query('alter table grandlivre.exports disable trigger user')
  await client.query(
    `update grandlivre.exports 
     set state = 'failed', reason = 'The books do not fit into TRA',
       file_key = null, sha256 = null, debit = null, credit = null, snapshot_on = null
     where id = $1`,
    [id],
  )
  await client.query('alter table grandlivre.exports enable trigger user')
  await expect(stage.library().fullExport({ exportId: id })).rejects.toMatchObject({
    code: 'EXPORT-FAILED',
    message: expect.stringContaining('The books do not fit into TRA'),
    details: { exportId: id },
  })
  const unknown = `export_${'0'.repeat(32)}`
  await expect(stage.library().fullExport({ exportId: unknown })).rejects.toMatchObject({
    code: 'ERR-EXPORT-NOT-FOUND',
  })
  await expect(stage.library().fullExport({ format: 'JSON', idExercice: '11' })).rejects.toMatchObject({
    issues: [{ parameter: 'idExercice', message: expect.any(String) }],
  })
})
