/**
 * What the files of full exports are called in the store: whose they are can be read from it.
 *
 * Each attempt uses a new key, so two attempts never write the same object, and a complete object never changes. The
 * row alone decides which one counts.
 */
import { randomBytes } from 'node:crypto'
import { endingPattern, type FileFormat, fileFormats } from '../formats/file-formats.ts'
import type { Claim, ExportKey } from './jobs.sql.ts'

/** In which all attempts at an export store their files. */
export function exportFolder({ schemaId, exportId }: ExportKey): string {
  return `exports/${schemaId}/${exportId}`
}

/** Random, so that no two writers ever share a key, whatever they believe their attempt to be. */
export function freshFileKey(claim: Claim, format: FileFormat): string {
  return `${exportFolder(claim)}/${claim.attempt}-${randomBytes(8).toString('hex')}.${fileFormats[format].ending}`
}

const keyPattern = new RegExp(
  `^exports/(\\d{1,16})/(export_[0-9a-f]{32})/(\\d+)-[0-9a-f]{16}${endingPattern}$`,
)

/** Undefined for what is none of ours: a bucket may hold other things. */
export function readFileKey(key: string): Claim | undefined {
  const [, schemaId, exportId, attempt] = keyPattern.exec(key) ?? []
  if (schemaId === undefined || exportId === undefined) return undefined
  return { schemaId, exportId, attempt: Number(attempt) }
}
