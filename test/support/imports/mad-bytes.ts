import { Buffer } from 'node:buffer'
import type pg from 'pg'
import { openSnapshot } from '../../../src/exports/read/snapshot.ts'
import { renderFile } from '../../../src/exports/render/file-renderers.ts'
import { wholeFolder } from '../../../src/exports/selection.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { plainBuffer } from '../plain/plain-buffer.ts'

/** Renders a MAD file without a service, with the same metadata each time. @param pool of the service */
export async function madBytes(pool: pg.Pool, { schemaId, folderId }: FolderKey): Promise<Buffer> {
  const snapshot = await openSnapshot(pool, schemaId)
  const chunks = renderFile('JSON', snapshot, {
    selection: wholeFolder({ schemaId, folderId }, 'Europe/Paris'),
    exportId: 'export_0123',
    version: '1.0.0',
    withEmployees: true,
    now: Date.UTC(2025, 6, 1, 12),
    buffer: plainBuffer(),
    counted: () => {},
    leftOut: () => {},
    noted: () => {},
  })
  const parts: Buffer[] = []
  for await (const chunk of chunks) parts.push(Buffer.from(chunk))
  await snapshot.close()
  return Buffer.concat(parts)
}
