import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { environment } from '../../../../../test/support/process.ts'
import { openS3Files } from '../../../../../test/support/s3-files.ts'
import { describeOnS3 } from '../../../../../test/support/servers/s3-servers.ts'
import { setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import { until } from '../../../../../test/support/until.ts'
import type { Downloaded } from '../../../src/client/grandlivre.ts'
import { setDownloadStage } from '../../support/client/download-stage.ts'
import { startFaultyProxy } from '../../support/client/faulty-proxy.ts'
import { libraryOf } from '../../support/client/library.ts'

/** `npm run long -- partner-kills` sets more. */
const kills = Number(process.env['KILLS'] ?? 3)

const stage = forTests(setDownloadStage)

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('a process that is killed during a download', () => {
  const startDownload = (file: string): ChildProcess => {
    const { baseUrl, token, secret } = stage.access
    const program = join(import.meta.dirname, '../../support/client/download-main.ts')
    const args = [program, JSON.stringify({ access: { baseUrl, token, secret }, file })]
    return spawn(process.execPath, args, { env: environment, stdio: ['ignore', 'pipe', 'inherit'] })
  }

  test('leaves a part file that its successor completes, byte for byte', {
    timeout: 60_000 + kills * 10_000,
  }, async () => {
    const { size, fileSha256 } = (await stage.library().fullExport({ format: 'JSON' })).status
    const file = join(stage.folder, 'killed.json')
    let kept = 0
    for (let kill = 0; kill < kills; kill += 1) {
      const more = Math.floor((Math.random() * 2 * (size - kept)) / (kills - kill + 1))
      stage.proxy.asked = []
      stage.proxy.fault = () => ({ kind: 'stall', afterBytes: more })
      const child = startDownload(file)
      const ended = once(child, 'close')
      await until(async () => {
        if (stage.proxy.asked.length === 0) return false
        return (await stat(`${file}.part`).catch(() => ({ size: -1 }))).size === kept + more
      })
      child.kill('SIGKILL')
      await ended
      expect(stage.proxy.asked.map(({ headers }) => headers.range)).toEqual([
        kept === 0 ? undefined : `bytes=${kept}-`,
      ])
      kept += more
      expect(await stage.found()).not.toContain('killed.json')
    }
    stage.proxy.fault = () => undefined
    const child = startDownload(file)
    const downloaded: Downloaded = JSON.parse(await text(child.stdout!))
    expect(downloaded).toMatchObject({ keptBytes: kept, connections: 1, restarts: 0 })
    expect(sha256(await stage.read('killed.json'))).toBe(fileSha256)
    expect(await stage.found()).toEqual(['killed.json'])
    await rm(file)
  })
})

describeOnS3((server) => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-downloads-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('a download from S3 resumes after cuts and from kept parts, and sends no credentials to S3', async () => {
    const files = await openS3Files(server())
    const proxy = await startFaultyProxy(server().endpoint)
    const settings = files.settings
    // With a database of its own: each service of a database takes up exports of that database.
    const stage = await setExportStage({
      store: {
        kind: 's3',
        endpoint: settings['S3_ENDPOINT']!,
        publicEndpoint: proxy.url,
        bucket: settings['S3_BUCKET']!,
        region: settings['S3_REGION']!,
        accessKey: settings['S3_ACCESS_KEY']!,
        secretKey: settings['S3_SECRET_KEY']!,
      },
    })
    const library = libraryOf(stage.company, stage.service.url, { stallMs: 300 })
    try {
      const exported = await library.fullExport({ format: 'JSON' })
      const file = join(folder, `${basename(server().endpoint)}.json`)
      const faults = [
        { kind: 'stall', afterBytes: 1000 },
        { kind: 'refuse' },
        { kind: 'cut', afterBytes: 90_000 },
      ] as const
      proxy.fault = (_, nth) => faults[nth - 1]
      const downloaded = await exported.download(file)
      expect(sha256(await readFile(file))).toBe(exported.status.fileSha256)
      expect(downloaded).toMatchObject({ restarts: 0 })
      expect(proxy.asked.slice(0, 3).map(({ headers }) => [headers.range, headers.authorization])).toEqual([
        [undefined, undefined],
        ['bytes=1000-', undefined],
        ['bytes=1000-', undefined],
      ])
      expect(proxy.asked[1]!.headers['if-range']).toMatch(/^"/)
      // S3 answers like this to an address that is too old.
      proxy.asked = []
      const body = '<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>'
      proxy.fault = (_, nth) => (nth === 1 ? { kind: 'answer', status: 403, body } : undefined)
      expect(await exported.download(file)).toMatchObject({ connections: 1 })
      proxy.fault = () => ({ kind: 'answer', status: 404, body })
      await expect(exported.download(file)).rejects.toMatchObject({ code: 'FILE-REFUSED', status: 404 })
    } finally {
      library.close()
      await stage.close()
      await proxy.close()
      await files.proxy.close()
    }
  })
})
