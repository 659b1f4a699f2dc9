/** How much memory a compressed export needs while it is sent. */
import { randomFillSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createPool } from '../../src/db/pool.ts'
import type { ChunkBuffer } from '../../src/exports/chunks.ts'
import { sendExport } from '../../src/exports/run/send.ts'
import type { ExportReader } from '../../src/exports/run/start.ts'
import type { Produced } from '../../src/exports/run/task.ts'
import { ExportSources } from '../../src/exports/sources/export-sources.ts'
import { ChannelReader } from '../../src/threads/channel.ts'
import { forTests } from '../support/for-tests.ts'
import { createTestDatabase } from '../support/servers/database.ts'

const database = forTests(createTestDatabase)
const pool = forTests(() => createPool(database.serviceUrl, { max: 2, applicationName: 'compressed export' }))

const chunkBytes = 256 * 1024
const chunks = 600

/** Bytes that no compressor can shrink. */
async function* noise(buffer: ChunkBuffer): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let i = 0; i < chunks; i++) yield randomFillSync(buffer(chunkBytes).subarray(0, chunkBytes))
}

const owner = { schemaId: '1', folderId: '1', today: '', timeZone: '', withEmployees: true }
const banks = { what: 'banks', owner, form: 'json' } as const

const produce = async (_snapshot: unknown, _task: unknown, buffer: ChunkBuffer): Promise<Produced> => {
  return { head: { cursor: '1' }, chunks: noise(buffer), rows: () => chunks }
}

test.each(['gzip', 'zstd'] as const)(
  '%s needs no more memory for a long export than for a short one',
  async (encoding) => {
    const reader: ExportReader = new ChannelReader()
    const sent = sendExport(
      new ExportSources(pool),
      {
        task: { ...banks, encoding },
        schemaId: '1',
        seen: undefined,
        port: reader.threadPort,
        hash: 'here',
        buffers: [],
        sentAt: 0,
      },
      produce,
    )
    let [read, peak] = [0, 0]
    for (let bytes = await reader.read(); bytes; bytes = await reader.read()) {
      read += bytes.length
      reader.recycle(bytes)
      peak = Math.max(peak, process.memoryUsage().arrayBuffers)
    }
    await sent
    expect(read).toBeGreaterThan(chunks * chunkBytes)
    // 18 to 44 MB; a busy machine collects garbage late, and 55 were seen.
    expect(peak).toBeLessThan((chunks * chunkBytes) / 2)
  },
)
