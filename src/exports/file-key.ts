/** What the files of full exports are called in the store: whose they are can be read from it. */
import { randomBytes } from 'node:crypto'
import type { ExportFormat } from './job.ts'
import type { Claim, ExportKey } from './jobs.sql.ts'

/** Random, so that no two writers ever share a key, whatever they believe their attempt to be. */
export function freshFileKey({ schemaId, exportId, attempt }: Claim, format: ExportFormat): string {
  const name = `${attempt}-${randomBytes(8).toString('hex')}.${format.toLowerCase()}`
  return `exports/${schemaId}/${exportId}/${name}`
}

/** Undefined for what is none of ours: a bucket may hold other things. */
export function readFileKey(key: string): ExportKey | undefined {
  const [, schemaId, exportId] =
    /^exports\/(\d{1,16})\/(export_[0-9a-f]{32})\/\d+-[0-9a-f]{16}\.(?:json|tra)$/.exec(key) ?? []
  return schemaId !== undefined && exportId !== undefined ? { schemaId, exportId } : undefined
}
