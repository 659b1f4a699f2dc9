/** The document of the API: what clients and their generators find in it. */
import { describe, expect, test } from 'vitest'
import { routes } from '../../../src/http/app.ts'
import { openApiDocument } from '../../../src/http/schemas/openapi.ts'
import { nodesOf, schemaCheck } from '../../support/document/open-api.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document
const document: any = JSON.parse(JSON.stringify(openApiDocument(routes)))

/** Repeated here, because generated clients name their methods by them: no release may change them. */
const operations = {
  '/api/v1/key/info': { get: 'getTokenInformation' },
  '/api/v1/society': { get: 'listSocieties' },
  '/api/v1/mad/movements': { get: 'listMovements' },
  '/api/v1/mad/movements/blocks': { get: 'listMovementBlocks' },
  '/api/v1/mad/entries': { get: 'listEntries' },
  '/api/v1/mad/entry': { get: 'getEntry' },
  '/api/v1/mad/balance': { get: 'listBalances' },
  '/api/v1/mad/all': { get: 'startExport' },
  '/api/v1/mad/all/status': { get: 'getExport' },
  '/api/v1/mad/ledgers': { get: 'listLedgers' },
  '/api/v1/mad/ledgers/changes': { post: 'listLedgerChanges' },
  '/api/v1/mad/ledgers/blocks': { post: 'listLedgerBlocks' },
  '/api/v1/mad/accountingFolder': { get: 'getAccountingFolder' },
  '/api/v1/mad/accountingFirm': { get: 'getAccountingFirm' },
  '/api/v1/mad/payments': { get: 'listPayments' },
  '/api/v1/mad/vats': { get: 'listVatCodes' },
  '/api/v1/mad/banks': { get: 'listBanks' },
  '/api/v1/mad/journals': { get: 'listJournals' },
  '/api/v1/mad/accounts': { get: 'listAccounts' },
  '/api/v1/mad/exercices': { get: 'listExercices' },
  '/api/v1/mad/analytics': { get: 'listAnalyticalAxes' },
  '/api/v1/webhook': { post: 'createSubscription', get: 'listSubscriptions' },
  '/api/v1/webhook/{id}': {
    get: 'getSubscription',
    patch: 'updateSubscription',
    put: 'replaceSubscription',
    delete: 'deleteSubscription',
  },
  '/api/v1/webhook/{id}/rotate-secret': { post: 'rotateSigningSecret' },
  '/api/v1/webhook/{id}/events': { get: 'listEvents' },
  '/api/v1/webhook/{id}/deliveries': { get: 'listDeliveries' },
  '/api/v1/webhook/{id}/replay': { post: 'replayDeliveries' },
  '/api/v1/webhook/{id}/ping': { post: 'pingSubscription' },
  '/api/v1/webhook/event/{name}': { get: 'listSubscriptionsToEvent' },
  '/api/v1/webhook/event/{name}/{accountingFolderId}': { get: 'listSubscriptionsToEventOfFolder' },
  '/api/v1/openapi.json': { get: 'getOpenApiDocument' },
  '/healthz': { get: 'getHealth' },
  '/readyz': { get: 'getReadiness' },
  notification: { post: 'receiveEvents' },
  ping: { post: 'receivePing' },
}

/** What `value` returns for each operation, by path and method. */
const ofOperations = <Value>(value: (operation: { operationId: string; responses: object }) => Value) =>
  Object.fromEntries(
    Object.entries<object>({ ...document.paths, ...document.webhooks }).map(([path, methods]) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, operation]) => [method, value(operation)])),
    ]),
  )

test('each operation has a unique name of a verb and a noun', () => {
  expect(ofOperations(({ operationId }) => operationId)).toEqual(operations)
  const names = Object.values<object>(operations).flatMap((methods) => Object.values(methods))
  expect(new Set(names).size).toBe(names.length)
  for (const name of names)
    expect(name).toMatch(
      /^(get|list|start|create|update|replace|delete|rotate|replay|ping|receive)[A-Z][A-Za-z]+$/,
    )
})

test('each operation documents errors of the client and of the service', () => {
  for (const methods of Object.values<object>(document.paths))
    for (const { responses } of Object.values(methods))
      for (const status of ['4XX', '5XX'])
        expect(responses[status].content['application/json'].schema).toEqual({
          $ref: '#/components/schemas/ErrorAnswer',
        })
})

test('the document names its licence and its location, whatever the address', () => {
  expect(document).toMatchObject({
    info: { title: 'Grandlivre', description: expect.any(String), license: { identifier: 'MIT' } },
    servers: [{ url: '/' }],
  })
})

describe('a schema', () => {
  const nodes = [...nodesOf(document)] as [string, Record<string, unknown>][]

  test('has a name if it is an object or a choice of several words', () => {
    const isNamed = (pointer: string) =>
      /^\/components\/schemas\/\w+(\/allOf\/\d)?$/.test(pointer) ||
      // Parameters have names of their own. A schema that only a ping has gets no name (notification-schema.ts).
      /\/parameters\/\d+\/schema/.test(pointer) ||
      pointer.startsWith('/webhooks/ping/')
    const nameless = nodes.filter(
      ([pointer, { type, properties, enum: words }]) =>
        ((type === 'object' && properties) || (Array.isArray(words) && typeof type === 'string')) &&
        !isNamed(pointer),
    )
    expect(nameless.map(([pointer]) => pointer)).toEqual([])
    expect(Object.keys(document.components.schemas).length).toBeGreaterThan(100)
  })

  test('of an object does not include null: the property that refers to it does', () => {
    const lists = nodes.filter(([, { type }]) => Array.isArray(type) && type.includes('object'))
    // One answer and one body are an array or an object.
    expect(lists.map(([pointer]) => pointer)).toEqual([
      '/components/schemas/TokenInformation',
      '/components/schemas/SubscriptionChange',
    ])
    for (const [, { type }] of lists) expect(type).toEqual(['array', 'object'])
    expect(document.components.schemas.Bank.properties.account).toEqual({
      anyOf: [{ $ref: '#/components/schemas/SimplifiedAccount' }, { type: 'null' }],
    })
    expect(document.components.schemas.Account.properties.employee).toEqual({
      anyOf: [{ $ref: '#/components/schemas/Employee' }, { type: 'null' }],
    })
  })

  test('is never a choice between an array and another type, as clients in Java would not compile', () => {
    const resolved = ({ $ref }: { $ref?: string }) =>
      $ref && document.components.schemas[$ref.replace('#/components/schemas/', '')]
    for (const [pointer, { anyOf = [], oneOf = [] }] of nodes)
      for (const choice of [anyOf, oneOf].flat() as { $ref?: string; type?: string }[])
        expect([pointer, choice.type ?? resolved(choice).type]).not.toEqual([pointer, 'array'])
  })

  test('has examples that are valid', () => {
    const wrong = schemaCheck(document)
    const shown = nodes.filter(([pointer, node]) => 'example' in node && !pointer.endsWith('/properties'))
    expect(shown.length).toBeGreaterThan(50)
    const bad = shown.flatMap(([pointer, node]) => {
      const problem = wrong('schema' in node ? `${pointer}/schema` : pointer, node['example'])
      return problem === undefined ? [] : [[pointer, problem]]
    })
    expect(bad).toEqual([])
  })
})

test('the document puts every route into a group, and no group is empty', () => {
  const operations = Object.values<Record<string, { tags: string[] }>>(document.paths).flatMap((methods) =>
    Object.values(methods),
  )
  const used = operations.map(({ tags }) => tags.join())
  expect(new Set(used)).toEqual(new Set(document.tags.map(({ name }: { name: string }) => name)))
  for (const { description } of document.tags) expect(description).toMatch(/^[A-Z].*\.$/)
})

test('the document states which values each parameter accepts', () => {
  type Schema = Record<string, unknown> & { items?: Schema }
  const parameters = Object.values<Record<string, { parameters?: { name: string; schema: Schema }[] }>>(
    document.paths,
  ).flatMap((methods) => Object.values(methods).flatMap((route) => route.parameters ?? []))
  expect(parameters.length).toBeGreaterThan(20)
  const isStated = (schema: Schema): boolean =>
    ['enum', 'const', 'pattern', 'format', 'maximum'].some((word) => schema[word]) ||
    (schema.items !== undefined && isStated(schema.items))
  // `draft` accepts any text; ETags are copied; unknown preferences have no effect; an invalid export id gets 404.
  const free = ['draft', 'if-match', 'if-none-match', 'want-content-digest', 'exportId']
  const unstated = parameters.filter(({ schema }) => !isStated(schema)).map(({ name }) => name)
  expect(unstated.filter((name) => !free.includes(name))).toEqual([])
})

test('descriptions name only parameters that their route has', () => {
  const routes = Object.entries<Record<string, { parameters?: { name: string; description?: string }[] }>>(
    document.paths,
  ).flatMap(([path, methods]) =>
    Object.values(methods).map(({ parameters = [] }) => ({
      path,
      names: parameters.map(({ name }) => name),
      text: parameters.map(({ description }) => description).join('\n'),
    })),
  )
  const known = new Set(routes.flatMap(({ names }) => names))
  // A name that is also an English word counts only in backquotes.
  const isNamed = (name: string, text: string) =>
    new RegExp(/[A-Z-]/.test(name) ? `\\b${name}\\b` : `\`${name}\``, 'i').test(text)
  const named = routes.map(({ path, names, text }) => [
    path,
    [...known].filter((name) => isNamed(name, text) && !names.includes(name)),
  ])
  for (const { path, names } of routes) expect([path, new Set(names).size]).toEqual([path, names.length])
  expect(named).toEqual(routes.map(({ path }) => [path, []]))
  expect(routes.some(({ names, text }) => names.some((name) => isNamed(name, text)))).toBe(true)
})

test('the document says which formats of a full export accept a parameter, and which require it', () => {
  const { parameters } = document.paths['/api/v1/mad/all'].get
  const described = (name: string) =>
    parameters.find((parameter: { name: string }) => parameter.name === name).description
  expect(described('idExercice')).toMatch(/; only with TRA, FEC, CSV or PARQUET; required with FEC$/)
  expect(described('journalIds')).toMatch(/; only with TRA, CSV or PARQUET$/)
})

test('the document has no dangling reference', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1]!)
  expect(references.length).toBeGreaterThan(0)
  for (const reference of references) {
    const found = reference.split('/').reduce((node, key) => node?.[key], document)
    expect(found, reference).toBeDefined()
  }
})

test('example bodies are accepted by their routes', () => {
  const shown = routes.filter(({ body }) => body?.example !== undefined)
  expect(shown.map(({ method }) => method)).toEqual(['post', 'post', 'post', 'patch', 'put'])
  for (const { body } of shown) expect(body?.schema.safeParse(body.example).error).toBeUndefined()
  const { content } = document.paths['/api/v1/webhook/{id}'].patch.requestBody
  expect(content['application/json'].example).toEqual(
    shown.find(({ method }) => method === 'patch')!.body!.example,
  )
})

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

test('the document describes the routes of webhooks, with their request bodies and the notification to subscribers', () => {
  const { schemas } = document.components
  const create = document.paths['/api/v1/webhook'].post
  expect(create.requestBody.content['application/json'].schema).toEqual(reference('SubscriptionFields'))
  expect(schemas.SubscriptionFields.required).toEqual(['postUrl', 'onEvents'])
  const { postUrl: address, onEvents } = schemas.SubscriptionFields.properties
  expect(address).toMatchObject({ format: 'uri', maxLength: 2048 })
  expect(onEvents.items).toEqual(reference('EventKind'))
  expect(schemas.EventKind.enum).toEqual(expect.arrayContaining(['connector', 'taxReturnSent']))
  expect(create.responses['201'].headers).toHaveProperty('Location')
  const patch = document.paths['/api/v1/webhook/{id}'].patch
  expect(Object.keys(patch.requestBody.content)).toEqual([
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/json',
  ])
  const schemaOf = (type: string) => patch.requestBody.content[type].schema
  expect(schemaOf('application/merge-patch+json')).toEqual(reference('SubscriptionMergePatch'))
  const merge = schemas.SubscriptionMergePatch
  expect([Object.keys(merge.properties), merge.required]).toEqual([
    ['postUrl', 'onEvents', 'accountingFolderId'],
    undefined,
  ])
  expect(schemaOf('application/json-patch+json')).toEqual(reference('SubscriptionPatch'))
  expect(schemas.SubscriptionPatch.items).toEqual(reference('PatchStep'))
  expect(schemas.PatchStep.oneOf).toHaveLength(6)
  // A body of plain JSON may be either of the two.
  const { items, properties } = schemas.SubscriptionChange
  expect(schemaOf('application/json')).toEqual(reference('SubscriptionChange'))
  expect({ items, properties }).toEqual({
    items: schemas.SubscriptionPatch.items,
    properties: merge.properties,
  })
  expect(patch.parameters.map(({ name }: { name: string }) => name)).toEqual(['id'])
  const notification = document.webhooks.notification.post
  expect(notification.requestBody.content['application/json'].schema.items).toEqual(reference('Notification'))
})
