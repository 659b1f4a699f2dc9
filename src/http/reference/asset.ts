/**
 * Files for browsers: the reference of the API and the site. Nothing is read before the first request, so the start
 * costs nothing. The compressed bytes of texts are kept: 1.5 MB once every page was read. Clients without gzip are
 * rare, so the file is read again for them; pictures are read again for everyone.
 */
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Context } from 'hono'
import Negotiator from 'negotiator'
import { holdsEtag } from '../representation.ts'
import type { Edge } from '../route.ts'

/** Everything comes from this service and nothing is evaluated. Style attributes are allowed: Swagger UI and VitePress set some. */
const pageHeaders = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
}

export const headersOfAll = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/**
 * @param cacheControl given for files whose name changes with their content; browsers ask for any other file again each
 *   time
 * @throws ENOENT or ENOTDIR if there is no such file
 */
export async function answerAsset(c: Context<Edge>, file: URL, cacheControl = 'no-cache'): Promise<Response> {
  const { mtimeMs } = await stat(file)
  const ending = extname(file.pathname)
  const isCompressed =
    ending !== '.png' && new Negotiator(c.env.incoming).encodings(['gzip', 'identity'])[0] === 'gzip'
  const { hash, compressed } = await keptOf(file, mtimeMs)
  const etag = isCompressed ? `"${hash}-gzip"` : `"${hash}"`
  const headers: Record<string, string> = {
    ...headersOfAll,
    ...(ending === '.html' ? pageHeaders : {}),
    ETag: etag,
    'Cache-Control': cacheControl,
    Vary: 'Accept-Encoding',
  }
  if (holdsEtag(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers)
  const bytes = isCompressed ? compressed : await readFile(file)
  headers['Content-Type'] = types[ending]!
  headers['Content-Length'] = String(bytes.length)
  if (isCompressed) headers['Content-Encoding'] = 'gzip'
  return c.req.method === 'HEAD' ? c.body(null, 200, headers) : c.body(bytes, 200, headers)
}

const kept = new Map<string, { mtimeMs: number; loaded: ReturnType<typeof load> }>()

/** The kept bytes of a file. Reads it again when it has changed, or could not be read before. */
function keptOf(file: URL, mtimeMs: number): ReturnType<typeof load> {
  const before = kept.get(file.href)
  if (before?.mtimeMs === mtimeMs) return before.loaded
  const loaded = load(file)
  kept.set(file.href, { mtimeMs, loaded })
  loaded.catch(() => kept.delete(file.href))
  return loaded
}

/** Hashes a file, and compresses it unless it is a picture. */
async function load(file: URL) {
  const bytes = await readFile(file)
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 27)
  const isPicture = file.pathname.endsWith('.png')
  return { hash, compressed: isPicture ? new Uint8Array() : await promisify(gzip)(bytes, { level: 9 }) }
}
