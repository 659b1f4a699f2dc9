/**
 * `/docs/`: the pages of this repository as a site. docs/site/build.ts makes it when npm has installed the development
 * dependencies. Without the site, `/docs/` says so, and the reference of the API still works. Like the reference, the site
 * is open to all and not in the document of the API.
 *
 * No file of either is read before the first request, so the start costs nothing. The compressed bytes of texts are
 * kept: 1.5 MB once every page was read. Clients without gzip are rare, so the file is read again for them; pictures
 * are read again for everyone.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
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

const ownFolder = new URL('../../../site/', import.meta.url)

/** Folders, then a file with an ending. No name begins with a dot, so no path leads out of the folder. */
const fileName = /^(?:[\w@-][\w@.-]*\/)*[\w@-][\w@.-]*\.\w+$/

/** @param folder ends with a slash */
export function addSite(app: Pick<OpenAPIHono<Edge>, 'get' | 'all'>, folder = ownFolder): void {
  const answer = async (c: Context<Edge>, path: string) => {
    const name = path === '' || path.endsWith('/') ? `${path}index.html` : path
    // VitePress names these files by their content.
    const cacheControl = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    const fileOf = (named: string) => (fileName.test(named) ? new URL(named, folder) : undefined)
    const file = fileOf(name)
    const answered = file && (await answerAsset(c, file, cacheControl).catch(noSuchFile))
    if (answered) return answered
    // People type addresses without `.html`, and folders without their slash.
    for (const ending of ['.html', '/index.html']) {
      const meant = fileOf(path.replace(/\/$/, '') + ending)
      if (meant && existsSync(meant))
        return c.redirect(`/docs/${path.replace(/\/$/, '')}${ending.replace('index.html', '')}`)
    }
    if (existsSync(new URL('index.html', folder))) {
      if (!new Negotiator(c.env.incoming).mediaType(['application/json', 'text/html'])?.endsWith('html'))
        throw new AppError('ERR-NOT-FOUND')
      const { body, headers } = await answerAsset(c, new URL('404.html', folder))
      return c.newResponse(body, 404, Object.fromEntries(headers))
    }
    throw new AppError('ERR-NOT-FOUND', {
      message:
        'The documentation is not installed here: `npm ci && npm run docs -- site` makes it. The reference of the API is at /docs/api/',
    })
  }
  app.get('/', (c) => c.redirect('/docs/'))
  app.get('/llms.txt', (c) => answer(c, 'llms.txt'))
  app.get('/docs', (c) => c.redirect('/docs/', 308))
  app.get('/docs/*', (c) => answer(c, c.req.path.slice('/docs/'.length)))
  // This also refuses other methods on the addresses of the reference page.
  for (const path of ['/', '/llms.txt', '/docs', '/docs/*'])
    app.all(path, () => {
      throw new AppError('ERR-METHOD-NOT-ALLOWED', { headers: { Allow: 'GET, HEAD' } })
    })
}

function noSuchFile(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

const ownFile = (name: string) => new URL(`page/${name}`, import.meta.url)
const ofSwaggerUi = (name: string) => new URL(import.meta.resolve(`swagger-ui-dist/${name}`))

const files: Readonly<Record<string, (name: string) => URL>> = {
  'page.html': ownFile,
  'page.js': ownFile,
  'page.css': ownFile,
  'icon.svg': ownFile,
  'swagger-ui-bundle.js': ofSwaggerUi,
  'swagger-ui.css': ofSwaggerUi,
}

/**
 * `/docs/api/`: the reference of the API for browsers, made from the OpenAPI document. Readers send requests from it
 * with a token and a secret that they type. Like /files it is for people, so it is not in the document itself.
 *
 * Swagger UI draws it: two packages and 13 MB, one bundle, a release each month. It works under the policy of `pageHeaders`,
 * shows the webhooks of OpenAPI 3.1 and loads nothing from elsewhere. Scalar reads better and works under the policy
 * too, but brings 299 packages and 243 MB into the service; RapiDoc had its last release a year ago; Redoc sends no
 * requests. Scarf, which Swagger UI installs to count installations, is switched off in package.json.
 *
 * The page has files of its own, and those of Swagger UI as they are in its package. Up to version 0.2 the page was at
 * `/docs`: links to `/docs#/...` lead here.
 */
export function addReferencePage(app: OpenAPIHono<Edge>, services: Services): void {
  app.get('/docs/api', (c) => c.redirect('/docs/api/', 308))
  app.get('/docs/api/', (c) => answerAsset(c, ownFile('page.html')))
  app.get('/docs/api/demo-credentials.json', (c) => {
    const headers = { ...headersOfAll, 'Cache-Control': 'no-store' }
    const credentials = readDemoCredentials(services.config, c.env.incoming)
    // No error where there are no credentials: it would appear in the console of the browser, and the reader can type
    // them.
    return credentials ? c.json(credentials, 200, headers) : c.body(null, 204, headers)
  })
  for (const [name, locate] of Object.entries(files))
    app.get(`/docs/api/${name}`, (c) => answerAsset(c, locate(name)))
  for (const name of [...Object.keys(files), 'demo-credentials.json'])
    app.get(`/docs/${name}`, (c) => c.redirect(`/docs/api/${name}`, 308))
}

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

const headersOfAll = {
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
 * @param cacheControl given for files whose name changes with their content. Without it, browsers ask for the file again
 *   each time
 * @throws ENOENT or ENOTDIR if there is no such file
 */
async function answerAsset(c: Context<Edge>, file: URL, cacheControl = 'no-cache'): Promise<Response> {
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
