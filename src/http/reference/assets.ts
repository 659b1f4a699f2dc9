/**
 * The files of the reference page: its own, and those of Swagger UI as its package has them. Nothing is read before the
 * first request, so that the start does not pay. The compressed bytes are kept, half a megabyte in all; a client without
 * gzip is rare, so the file is read again for it.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

const own = (name: string) => new URL(`page/${name}`, import.meta.url)
const ofSwaggerUi = (name: string) => new URL(import.meta.resolve(`swagger-ui-dist/${name}`))

const locate: Readonly<Record<string, (name: string) => URL>> = {
  'page.html': own,
  'page.js': own,
  'page.css': own,
  'icon.svg': own,
  'swagger-ui-bundle.js': ofSwaggerUi,
  'swagger-ui.css': ofSwaggerUi,
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

type AssetEncoding = 'gzip' | 'identity'

export interface Asset {
  /** Media type. */
  type: string
  encoding: AssetEncoding
  /** With its quotes; each encoding has its own. */
  etag: string
  bytes: Uint8Array<ArrayBuffer>
}

interface Kept {
  hash: string
  compressed: Uint8Array<ArrayBuffer>
}

const kept = new Map<string, Promise<Kept>>()

/** @returns undefined if the page has no such file */
export async function readAsset(name: string, encoding: AssetEncoding): Promise<Asset | undefined> {
  if (!Object.hasOwn(locate, name)) return undefined
  const file = locate[name]!(name)
  const loaded = kept.get(name) ?? load(file)
  kept.set(name, loaded)
  // A file that could not be read is tried again.
  loaded.catch(() => kept.delete(name))
  const { hash, compressed } = await loaded
  const type = types[extname(name)]!
  if (encoding === 'gzip') return { type, encoding, etag: `"${hash}-gzip"`, bytes: compressed }
  return { type, encoding, etag: `"${hash}"`, bytes: await readFile(file) }
}

async function load(file: URL): Promise<Kept> {
  const bytes = await readFile(file)
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 27)
  return { hash, compressed: await promisify(gzip)(bytes, { level: 9 }) }
}
