import { describe, expect, test } from 'vitest'
import { createApp, routes } from '../../../src/http/app.ts'
import type { Services } from '../../../src/http/services.ts'
import { createLog } from '../../../src/log.ts'
import { forTests } from '../../support/for-tests.ts'
import { type Answer, request } from '../../support/service.ts'
import { keyInfo, setCallerStage } from '../../support/stages/caller-stage.ts'

const stage = forTests(setCallerStage)

describe('the OpenAPI document', () => {
  test('lists every route that the app serves but /files, whose addresses are signed, and the documentation', async () => {
    const { status, body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    expect(status).toBe(200)
    expect(body.openapi).toBe('3.1.0')
    const listed = Object.entries<object>(body.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    )
    // Only its routes are read: no request reaches it.
    const app = createApp({ log: createLog('silent') } as Services)
    const served = app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
    const ofApi = served.filter((route) => !/^get \/(?:docs(?:\/.*)?|llms\.txt|files\/\*|)$/.test(route))
    expect(new Set(ofApi)).toEqual(new Set(listed))
    expect(listed.length).toBeGreaterThan(20)
    const { body: opened } = await request(stage.service.url + keyInfo, stage.signed)
    for (const { path, method } of opened) expect(body.paths[path][method].security[0]).toBeDefined()
  })

  test('describes the parameters and answers of movements, each parameter once', async () => {
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    const { parameters, responses } = body.paths['/api/v1/mad/movements'].get
    const names = parameters.map((parameter: { name: string }) => parameter.name)
    expect(names).toEqual(expect.arrayContaining(['version', 'idExercice', 'classAccount', 'society-id']))
    expect(new Set(names).size).toBe(names.length)
    expect(responses['200'].content['application/json'].schema).toBeDefined()
  })

  test('puts every route into a group, and no group is empty', async () => {
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    const operations = Object.values<Record<string, { tags: string[] }>>(body.paths).flatMap((methods) =>
      Object.values(methods),
    )
    const used = operations.map(({ tags }) => tags.join())
    expect(new Set(used)).toEqual(new Set(body.tags.map(({ name }: { name: string }) => name)))
    for (const { description } of body.tags) expect(description).toMatch(/^[A-Z].*\.$/)
  })

  test('shows bodies that their routes take', async () => {
    const shown = routes.filter(({ body }) => body?.example !== undefined)
    expect(shown.map(({ method }) => method)).toEqual(['post', 'post', 'post', 'patch', 'put'])
    for (const { body } of shown) expect(body?.schema.safeParse(body.example).error).toBeUndefined()
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    const { content } = body.paths['/api/v1/webhook/{id}'].patch.requestBody
    expect(content['application/json'].example).toEqual(
      shown.find(({ method }) => method === 'patch')!.body!.example,
    )
  })

  test('states which values each parameter accepts', async () => {
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    interface Parameter {
      name: string
      schema: {
        enum?: unknown
        const?: unknown
        pattern?: unknown
        format?: unknown
        maximum?: unknown
        items?: Parameter['schema']
      }
    }
    const parameters = Object.values(body.paths)
      .flatMap((methods) => Object.values(methods as Record<string, { parameters?: Parameter[] }>))
      .flatMap((route) => route.parameters ?? [])
    expect(parameters.length).toBeGreaterThan(20)
    const isStated = ({
      enum: words,
      const: word,
      pattern,
      format,
      maximum,
      items,
    }: Parameter['schema']): boolean =>
      Boolean(words ?? word ?? pattern ?? format ?? maximum) || (items !== undefined && isStated(items))
    // `draft` accepts any text; ETags are copied; unknown preferences have no effect; an invalid export id gets 404.
    const free = ['draft', 'if-match', 'if-none-match', 'want-content-digest', 'exportId']
    const unstated = parameters.filter(({ schema }) => !isStated(schema)).map(({ name }) => name)
    expect(unstated.filter((name) => !free.includes(name))).toEqual([])
  })

  test('names, where it describes the parameters of a route, no parameter that the route lacks', async () => {
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    const routes = Object.entries<Record<string, { parameters?: { name: string; description?: string }[] }>>(
      body.paths,
    ).flatMap(([path, methods]) =>
      Object.values(methods).map(({ parameters = [] }) => ({
        path,
        names: parameters.map(({ name }) => name),
        text: parameters.map(({ description }) => description).join('\n'),
      })),
    )
    const known = new Set(routes.flatMap(({ names }) => names))
    // A name that is also a word of the language counts in backquotes alone.
    const isNamed = (name: string, text: string) =>
      new RegExp(/[A-Z-]/.test(name) ? `\\b${name}\\b` : `\`${name}\``, 'i').test(text)
    const named = routes.map(({ path, names, text }) => [
      path,
      [...known].filter((name) => isNamed(name, text) && !names.includes(name)),
    ])
    expect(named).toEqual(routes.map(({ path }) => [path, []]))
    expect(routes.some(({ names, text }) => names.some((name) => isNamed(name, text)))).toBe(true)
  })

  test('says which formats of a full export take a parameter, and which require it', async () => {
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    const { parameters } = body.paths['/api/v1/mad/all'].get
    const described = (name: string) =>
      parameters.find((parameter: { name: string }) => parameter.name === name).description
    expect(described('idExercice')).toMatch(/; only with TRA, FEC, CSV or PARQUET; required with FEC$/)
    expect(described('journalIds')).toMatch(/; only with TRA, CSV or PARQUET$/)
  })

  test('describes every header of the answers of movements', async () => {
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    const { parameters, responses } = body.paths['/api/v1/mad/movements'].get
    expect(parameters.map((parameter: { name: string }) => parameter.name)).toEqual(
      expect.arrayContaining(['if-none-match', 'if-match', 'want-content-digest']),
    )
    const ask = (headers: Record<string, string>, method?: string) => {
      const query = 'version=1.0.0&startDate=2026-01-01&endDate=2026-01-31'
      return request(`${stage.service.url}/api/v1/mad/movements?${query}`, headers, method)
    }
    const whole = await ask({ ...stage.signed, 'Accept-Encoding': 'gzip' })
    const etag = whole.headers.get('etag')!
    const answers: [Answer, number, string][] = [
      [whole, 200, '200'],
      [await ask({ ...stage.signed, 'Accept-Encoding': 'gzip', 'If-None-Match': etag }), 304, '304'],
      [await ask({ ...stage.signed, 'If-Match': '"another"' }), 412, '4XX'],
      [await ask({}), 401, '4XX'],
      [await ask(stage.signed, 'POST'), 405, '4XX'],
    ]
    const ofHttp = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding']
    for (const [{ status, headers }, expected, described] of answers) {
      expect(status).toBe(expected)
      const named = Object.keys(responses[described].headers).map((name) => name.toLowerCase())
      expect(named).toEqual(
        expect.arrayContaining([...headers.keys()].filter((name) => !ofHttp.includes(name))),
      )
    }
  })

  test('has no dangling reference', async () => {
    const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1]!)
    expect(references.length).toBeGreaterThan(0)
    for (const reference of references) {
      const found = reference.split('/').reduce((node, key) => node?.[key], body)
      expect(found, reference).toBeDefined()
    }
  })
})
