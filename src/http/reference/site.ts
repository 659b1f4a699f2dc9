/**
 * `/docs/`: the pages of this repository as a site, which docs/site/build.ts makes when npm has installed the development
 * dependencies. An installation without it says so there, and has the reference of the API anyway. Open to all, and for
 * people, as that is.
 */
import { existsSync } from 'node:fs'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { AppError } from '../../errors.ts'
import type { Edge } from '../route.ts'
import { answerAsset } from './asset.ts'

const ownFolder = new URL('../../../site/', import.meta.url)

/** Folders and a file with an ending. No name begins with a dot, so none leads out of the folder. */
const fileName = /^(?:[\w@-][\w@.-]*\/)*[\w@-][\w@.-]*\.\w+$/

/** @param folder with a slash at its end */
export function addSite(app: Pick<OpenAPIHono<Edge>, 'get' | 'all'>, folder = ownFolder): void {
  const answer = async (c: Context<Edge>, path: string) => {
    const name = path === '' || path.endsWith('/') ? `${path}index.html` : path
    // VitePress names these by their content.
    const cacheControl = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    const isName = fileName.test(name)
    const answered = isName && (await answerAsset(c, new URL(name, folder), cacheControl).catch(noSuchFile))
    if (answered) return answered
    if (existsSync(new URL('index.html', folder))) throw new AppError('ERR-NOT-FOUND')
    throw new AppError('ERR-NOT-FOUND', {
      message:
        'The documentation is not installed here: `npm ci && npm run docs:site` makes it. The reference of the API is at /docs/api/',
    })
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

function noSuchFile(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}
