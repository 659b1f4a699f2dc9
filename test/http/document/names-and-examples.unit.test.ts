/** What generators of clients make of the document depends on: names of operations and schemas, and what a schema may be. */
import { describe, expect, test } from 'vitest'
import { routes } from '../../../src/http/app.ts'
import { openApiDocument } from '../../../src/http/schemas/openapi.ts'
import { nodesOf, schemaCheck } from '../../support/document/open-api.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document
const document: any = JSON.parse(JSON.stringify(openApiDocument(routes)))

/** Written here once more: a client calls its methods by these names, so that a release may not change them. */
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

/** By path, the methods with what `value` reads of each. */
const ofOperations = <Value>(value: (operation: { operationId: string; responses: object }) => Value) =>
  Object.fromEntries(
    Object.entries<object>({ ...document.paths, ...document.webhooks }).map(([path, methods]) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, operation]) => [method, value(operation)])),
    ]),
  )

test('each operation has its name, a verb and a noun, and none has that of another', () => {
  expect(ofOperations(({ operationId }) => operationId)).toEqual(operations)
  const names = Object.values<object>(operations).flatMap((methods) => Object.values(methods))
  expect(new Set(names).size).toBe(names.length)
  for (const name of names)
    expect(name).toMatch(
      /^(get|list|start|create|update|replace|delete|rotate|replay|ping|receive)[A-Z][A-Za-z]+$/,
    )
})

test('each operation has errors of both kinds', () => {
  for (const methods of Object.values<object>(document.paths))
    for (const { responses } of Object.values(methods))
      for (const status of ['4XX', '5XX'])
        expect(responses[status].content['application/json'].schema).toEqual({
          $ref: '#/components/schemas/ErrorAnswer',
        })
})

test('says under which licence and where it is, whatever the address', () => {
  expect(document).toMatchObject({
    info: { title: 'Grandlivre', description: expect.any(String), license: { identifier: 'MIT' } },
    servers: [{ url: '/' }],
  })
})

describe('a schema', () => {
  const nodes = [...nodesOf(document)] as [string, Record<string, unknown>][]

  test('of an object, and one of several words, has a name', () => {
    const isNamed = (pointer: string) =>
      /^\/components\/schemas\/\w+(\/allOf\/\d)?$/.test(pointer) ||
      // Parameters have names of their own. What only a notification has cannot have one: see notification-schema.ts.
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

  test('of an object is never null as well: what refers to it says that there may be none', () => {
    const lists = nodes.filter(([, { type }]) => Array.isArray(type) && type.includes('object'))
    // Two answers and bodies are an array or an object.
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

  test('is no choice between an array and something else, of which clients in Java do not compile', () => {
    const resolved = ({ $ref }: { $ref?: string }) =>
      $ref && document.components.schemas[$ref.replace('#/components/schemas/', '')]
    for (const [pointer, { anyOf = [], oneOf = [] }] of nodes)
      for (const choice of [anyOf, oneOf].flat() as { $ref?: string; type?: string }[])
        expect([pointer, choice.type ?? resolved(choice).type]).not.toEqual([pointer, 'array'])
  })

  test('has examples that fit it', () => {
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
