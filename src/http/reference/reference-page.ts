/**
 * `/docs`: the reference of the API for browsers, made from the OpenAPI document. Readers send requests from it with a
 * token and a secret that they type. Like /files it is for people, so it is not in the document itself.
 *
 * Swagger UI draws it: two packages and 13 MB, one bundle, a release each month. It runs below the policy of
 * `pageHeaders`, shows the webhooks of OpenAPI 3.1 and loads nothing from elsewhere. Scalar reads better and runs below
 * the policy too, but brings 299 packages and 243 MB into the service; RapiDoc had its last release a year ago; Redoc
 * sends no requests. Scarf, which Swagger UI installs to count installations, is switched off in package.json.
 *
 * The files of the page are its own, and those of Swagger UI as its package has them. Nothing is read before the first
 * request, so that the start does not pay. The compressed bytes are kept, half a megabyte in all; a client without gzip is
 * rare, so the file is read again for it.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import Negotiator from 'negotiator'
import { AppError } from '../../errors.ts'
import { holdsEtag } from '../representation.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'
import { readDemoCredentials } from './demo-credentials.ts'

/** Everything comes from this service and nothing is evaluated. Swagger UI sets style attributes, and draws arrows as data. */
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

const headersOfAll = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

export function addReferencePage(app: OpenAPIHono<Edge>, services: Services): void {
  app.get('/docs', (c) => answerAsset(c, 'page.html', pageHeaders))
  app.get('/docs/', (c) => c.redirect('/docs', 308))
  app.get('/docs/demo-credentials.json', (c) => answerDemoCredentials(c, services))
  app.get('/docs/:name', (c) => answerAsset(c, c.req.param('name')))
  for (const path of ['/docs', '/docs/', '/docs/:name'])
    app.all(path, () => {
      throw new AppError('ERR-METHOD-NOT-ALLOWED', { headers: { Allow: 'GET, HEAD' } })
    })
}

async function answerAsset(
  c: Context<Edge>,
  name: string,
  ownHeaders: Record<string, string> = {},
): Promise<Response> {
  const accepted = new Negotiator(c.env.incoming).encodings(['gzip', 'identity'])
  const asset = await readAsset(name, accepted[0] === 'gzip' ? 'gzip' : 'identity')
  if (!asset) throw new AppError('ERR-NOT-FOUND')
  const headers: Record<string, string> = {
    ...headersOfAll,
    ...ownHeaders,
    ETag: asset.etag,
    'Cache-Control': 'no-cache',
    Vary: 'Accept-Encoding',
  }
  if (holdsEtag(c.req.header('if-none-match'), asset.etag)) return c.body(null, 304, headers)
  headers['Content-Type'] = asset.type
  headers['Content-Length'] = String(asset.bytes.length)
  if (asset.encoding === 'gzip') headers['Content-Encoding'] = 'gzip'
  if (c.req.method === 'HEAD') return c.body(null, 200, headers)
  return c.body(asset.bytes, 200, headers)
}

/** 204 where the reader has to type credentials: an error would appear in the console of the browser. */
async function answerDemoCredentials(c: Context<Edge>, { config }: Services): Promise<Response> {
  const headers = { ...headersOfAll, 'Cache-Control': 'no-store' }
  const credentials = readDemoCredentials(config, c.env.incoming)
  return credentials ? c.json(credentials, 200, headers) : c.body(null, 204, headers)
}

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

interface Kept {
  hash: string
  compressed: Uint8Array<ArrayBuffer>
}

const kept = new Map<string, Promise<Kept>>()

/** @returns the file and its media type, each encoding with an ETag of its own; undefined if the page has no such file */
async function readAsset(name: string, encoding: 'gzip' | 'identity') {
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
