import { Buffer } from 'node:buffer'
import type pg from 'pg'
import { openSnapshot } from '../../src/exports/read/snapshot.ts'
import { renderTraFile } from '../../src/exports/render/tra-file.ts'

/** Entries of a folder; all of them where nothing is given. */
export interface Chosen {
  exerciceId?: string
  period?: { start: string; end: string }
  journalIds?: string[]
}

/**
 * A TRA file, rendered without a service.
 * @param pool of the service
 * @param now epoch milliseconds; the moment of the snapshot where absent
 */
export async function traBytes(
  pool: pg.Pool,
  { schemaId, folderId }: { schemaId: string; folderId: string },
  { exerciceId, period, journalIds = [] }: Chosen = {},
  now?: number,
): Promise<Buffer> {
  const snapshot = await openSnapshot(pool, schemaId)
  const chunks = renderTraFile(snapshot, {
    selection: { schemaId, folderId, exerciceId, period, journalIds },
    timeZone: 'Europe/Paris',
    now: now ?? snapshot.at,
    chunkBytes: 64 * 1024,
    room: (bytes) => new Uint8Array(bytes),
    counted: () => {},
    leftOut: () => {},
  })
  const parts: Buffer[] = []
  for await (const chunk of chunks) parts.push(Buffer.from(chunk))
  await snapshot.close()
  return Buffer.concat(parts)
}
