/** Compressed files of full exports over HTTP, decompressed by code that is not the service's. */
import { createHash } from 'node:crypto'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import { ended, type JobAnswer, statusUrl, trigger } from '../../support/full-export.ts'
import { describeOnS3 } from '../../support/servers/s3-servers.ts'
import { request } from '../../support/service.ts'
import { type ExportStage, setExportStage } from '../../support/stages/export-stage.ts'
import { openS3Stage } from '../../support/stages/store-stage.ts'
import { setTwoServices } from '../../support/stages/two-services.ts'

const decompress = { gzip: gunzipSync, zstd: zstdDecompressSync }
const media = { gzip: 'application/gzip', zstd: 'application/zstd' }
const endings = { gzip: 'gz', zstd: 'zst' }

const cases = (['JSON', 'TRA'] as const).flatMap((format) =>
  (['gzip', 'zstd'] as const).map((compression) => [format, compression] as const),
)

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function exported(stage: ExportStage, query: Record<string, string>): Promise<JobAnswer> {
  const { body } = await trigger(stage.service.url, stage.company, query)
  return ended(stage.service.url, stage.company, body.id)
}

async function downloaded(job: JobAnswer, headers: Record<string, string> = {}) {
  // Clients that accept encodings must get the stored bytes, too.
  const response = await fetch(job.url!, { headers: { 'Accept-Encoding': 'gzip, zstd', ...headers } })
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

/** The content without what differs from export to export: its id, and the time of its snapshot. */
function comparable(format: 'JSON' | 'TRA', content: Buffer): Buffer {
  const text = content.toString('latin1')
  return Buffer.from(
    format === 'JSON'
      ? text.replace(
          /^(\{"metadata":\{"version":"1\.0\.0","createdAt":)\d{13}(.*?"export_)[0-9a-f]{32}/,
          '$1$2',
        )
      : text.slice(0, 41) + text.slice(53),
    'latin1',
  )
}

function describeExports(stage: ExportStage): void {
  test.each(cases)('in %s with %s has the content of the plain export', async (format, compression) => {
    const plain = await exported(stage, { format })
    const job = await exported(stage, { format, compression })
    expect(job.id).not.toBe(plain.id)
    const { response, bytes } = await downloaded(job)
    expect([response.status, response.headers.get('content-encoding')]).toEqual([200, null])
    expect(response.headers.get('content-type')).toBe(media[compression])
    const ending = `${format.toLowerCase()}.${endings[compression]}`
    expect(new URL(job.url!).pathname).toMatch(new RegExp(`\\.${ending}$`))
    expect(response.headers.get('content-disposition')).toMatch(new RegExp(`^attachment.*\\.${ending}$`))
    expect([job.size, job.fileSha256]).toEqual([bytes.length, sha256(bytes)])
    const content = decompress[compression](bytes)
    expect([job.contentSize, job.sha256]).toEqual([content.length, sha256(content)])
    expect([job.rows, job.totals]).toEqual([plain.rows, plain.totals])
    const uncompressed = (await downloaded(plain)).bytes
    expect([plain.size, plain.contentSize]).toEqual([uncompressed.length, uncompressed.length])
    expect([plain.sha256, plain.fileSha256]).toEqual(Array(2).fill(sha256(uncompressed)))
    expect(bytes.length).toBeLessThan(uncompressed.length / 2)
    expect(comparable(format, content).equals(comparable(format, uncompressed))).toBe(true)
  })
}

describe('an export to a folder', () => {
  const stage = forTests(setTwoServices)

  describeExports(stage)

  test('is a separate export for each compression, named in any letter case', async () => {
    const ids = await Promise.all(
      ['', 'gzip', 'GZIP', 'Gzip', 'zstd', 'zSTD'].map(
        async (compression) => (await trigger(stage.service.url, stage.company, { compression })).body.id,
      ),
    )
    const [none, gzip, , , zstd] = ids
    expect(new Set([none, gzip, zstd]).size).toBe(3)
    expect(ids).toEqual([none, gzip, gzip, gzip, zstd, zstd])
    for (const id of ids) await ended(stage.service.url, stage.company, id)
  })

  test('can be downloaded in ranges, which are ranges of the compressed file', async () => {
    const job = await exported(stage, { format: 'TRA', compression: 'gzip' })
    const { bytes } = await downloaded(job)
    const head = await fetch(job.url!, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(job.size)])
    expect(head.headers.get('content-encoding')).toBeNull()
    const middle = Math.floor(bytes.length / 2)
    const parts = await Promise.all(
      [`bytes=0-${middle - 1}`, `bytes=${middle}-`].map((Range) => downloaded(job, { Range })),
    )
    expect(parts.map(({ response }) => response.status)).toEqual([206, 206])
    expect(Buffer.concat(parts.map((part) => part.bytes)).equals(bytes)).toBe(true)
  })

  test('shows the notes of its format, if it has any', async () => {
    const job = await exported(stage, { format: 'TRA', compression: 'zstd' })
    expect(job).not.toHaveProperty('notes')
    await stage.sql(`update grandlivre.exports set notes = '{"drafts":2}' where id = $1`, [job.id])
    const { body } = await request(statusUrl(stage.service.url, job.id), stage.company)
    expect(body.notes).toEqual({ drafts: 2 })
  })

  test('made by a version without compression is shown as an uncompressed file', async () => {
    const job = await exported(stage, { format: 'TRA' })
    await stage.sql(
      `update grandlivre.exports set compression = 'zstd', file_bytes = null, file_sha256 = null where id = $1`,
      [job.id],
    )
    const { body } = await request(statusUrl(stage.service.url, job.id), stage.company)
    const { size, fileSha256, contentSize } = body
    expect([size, fileSha256, contentSize]).toEqual([job.contentSize, job.sha256, job.contentSize])
    const { response, bytes } = await downloaded(body)
    expect(response.headers.get('content-disposition')).toMatch(/\.tra$/)
    expect(sha256(bytes)).toBe(job.sha256)
  })
})

describeOnS3((server) => {
  describe('an export to S3', () => {
    describeExports(forTests(() => setExportStage({ store: openS3Stage(server()).settings as never })))
  })
})
