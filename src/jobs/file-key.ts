/**
 * The keys of full exports in the store. A key contains the tenant, the export and the attempt.
 *
 * Each attempt uses a new key, so two attempts never write the same object, and a complete object never changes. Only
 * the export's row decides which object is its file.
 */
import { randomBytes } from 'node:crypto'
import { type Compression, endingOf, endingPattern, type FileFormat } from '../formats/file-formats.ts'
import type { AttemptKey, ExportKey } from './jobs.sql.ts'

/** The folder in the store for the files of all attempts at an export. */
export function exportFolder({ schemaId, exportId }: ExportKey): string {
  return `exports/${schemaId}/${exportId}`
}

/**
 * Makes a new key. It is random, so that two writers never share one, even if both believe that they are the same
 * attempt.
 */
export function freshFileKey(
  claim: AttemptKey,
  format: FileFormat,
  compression: Compression | undefined,
): string {
  const name = `${claim.attempt}-${randomBytes(8).toString('hex')}`
  return `${exportFolder(claim)}/${name}.${endingOf(format, compression)}`
}

/**
 * The ending of a file's name, after the first dot. Tells the kind of the file, whichever version of the service made
 * it.
 */
export function endingOfKey(key: string): string {
  return key.slice(key.indexOf('.') + 1)
}

const keyPattern = new RegExp(
  `^exports/(\\d{1,16})/(export_[0-9a-f]{32})/(\\d+)-[0-9a-f]{16}${endingPattern}$`,
)

/** Returns undefined for a key of any other form: a bucket may contain other objects. */
export function readFileKey(key: string): AttemptKey | undefined {
  const [, schemaId, exportId, attempt] = keyPattern.exec(key) ?? []
  if (schemaId === undefined || exportId === undefined) return undefined
  return { schemaId, exportId, attempt: Number(attempt) }
}
