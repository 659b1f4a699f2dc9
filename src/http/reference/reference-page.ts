/**
 * `/docs/api/`: the reference of the API for browsers, made from the OpenAPI document. Readers send requests from it with a
 * token and a secret that they type. Like /files it is for people, so it is not in the document itself.
 *
 * Swagger UI draws it: two packages and 13 MB, one bundle, a release each month. It runs below the policy of asset.ts, shows
 * the webhooks of OpenAPI 3.1 and loads nothing from elsewhere. Scalar reads better and runs below
 * the policy too, but brings 299 packages and 243 MB into the service; RapiDoc had its last release a year ago; Redoc
 * sends no requests. Scarf, which Swagger UI installs to count installations, is switched off in package.json.
 *
 * The files of the page are its own, and those of Swagger UI as its package has them. Up to version 0.2 they were at
 * `/docs`, which leads here.
 */
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'
import { answerAsset, headersOfAll } from './asset.ts'
import { readDemoCredentials } from './demo-credentials.ts'

const own = (name: string) => new URL(`page/${name}`, import.meta.url)
const ofSwaggerUi = (name: string) => new URL(import.meta.resolve(`swagger-ui-dist/${name}`))

const files: Readonly<Record<string, (name: string) => URL>> = {
  'page.html': own,
  'page.js': own,
  'page.css': own,
  'icon.svg': own,
  'swagger-ui-bundle.js': ofSwaggerUi,
  'swagger-ui.css': ofSwaggerUi,
}

export function addReferencePage(app: OpenAPIHono<Edge>, services: Services): void {
  app.get('/docs/api', (c) => c.redirect('/docs/api/', 308))
  app.get('/docs/api/', (c) => answerAsset(c, own('page.html')))
  app.get('/docs/api/demo-credentials.json', (c) => {
    const headers = { ...headersOfAll, 'Cache-Control': 'no-store' }
    const credentials = readDemoCredentials(services.config, c.env.incoming)
    // Where the reader has to type credentials, an error would appear in the console of the browser.
    return credentials ? c.json(credentials, 200, headers) : c.body(null, 204, headers)
  })
  for (const [name, locate] of Object.entries(files))
    app.get(`/docs/api/${name}`, (c) => answerAsset(c, locate(name)))
  for (const name of [...Object.keys(files), 'demo-credentials.json'])
    app.get(`/docs/${name}`, (c) => c.redirect(`/docs/api/${name}`, 308))
}
