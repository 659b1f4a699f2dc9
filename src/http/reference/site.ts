/**
 * `/docs/`: the pages of this repository as a site, which docs/site/build.ts makes when npm has installed the development
 * dependencies. An installation without it says so there, and has the reference of the API anyway. Open to all, and for
 * people, as that is.
 *
 * The names of its files are read once, so a path of a request never becomes a path of a file. A site that is built again has
 * other names: restart the service then.
 */
import { readdir } from 'node:fs/promises'
import { sep } from 'node:path'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { AppError } from '../../errors.ts'
import type { Edge } from '../route.ts'
import { answerAsset } from './asset.ts'

const ownFolder = new URL('../../../site/', import.meta.url)

/** @param folder with a slash at its end */
export function addSite(app: Pick<OpenAPIHono<Edge>, 'get' | 'all'>, folder = ownFolder): void {
  let names: Promise<ReadonlySet<string>> | undefined
  const answer = async (c: Context<Edge>, path: string) => {
    names ??= namesIn(folder)
    const known = await names
    if (known.size === 0) {
      names = undefined
      throw new AppError('ERR-NOT-FOUND', {
        message:
          'The documentation is not installed here: `npm ci && npm run docs:site` makes it. The reference of the API is at /docs/api/',
      })
    }
    const name = path === '' || path.endsWith('/') ? `${path}index.html` : path
    if (!known.has(name)) throw new AppError('ERR-NOT-FOUND')
    // VitePress names these by their content.
    return answerAsset(
      c,
      new URL(name, folder),
      name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : undefined,
    )
  }
  app.get('/', (c) => c.redirect('/docs/'))
  app.get('/llms.txt', (c) => answer(c, 'llms.txt'))
  app.get('/docs', (c) => c.redirect('/docs/', 308))
  app.get('/docs/*', (c) => answer(c, c.req.path.slice('/docs/'.length)))
  // Those of the reference, too, which is added before.
  for (const path of ['/', '/llms.txt', '/docs', '/docs/*'])
    app.all(path, () => {
      throw new AppError('ERR-METHOD-NOT-ALLOWED', { headers: { Allow: 'GET, HEAD' } })
    })
}

/** None if the folder is not there. */
async function namesIn(folder: URL): Promise<ReadonlySet<string>> {
  try {
    const entries = await readdir(folder, { recursive: true })
    return new Set(entries.filter((name) => /\.\w+$/.test(name)).map((name) => name.replaceAll(sep, '/')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Set()
    throw error
  }
}
