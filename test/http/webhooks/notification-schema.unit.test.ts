/** The document of the API describes the events that the service publishes. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { kinds } from '../../../src/events/kinds.ts'
import { routes } from '../../../src/http/app.ts'
import { Notification } from '../../../src/http/schemas/notification-schema.ts'
import { openApiDocument } from '../../../src/http/schemas/openapi.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document
const document: any = openApiDocument(routes)
const { schemas } = document.components
const resolved = ({ $ref }: { $ref: string }) => schemas[$ref.replace('#/components/schemas/', '')]
const itemsOf = (webhook: string) =>
  document.webhooks[webhook].post.requestBody.content['application/json'].schema.items

const example = { scope: { schemaId: 1 }, webhookId: '5c1f7f0e-0000-5000-8000-000000000000', createdAt: 1 }

test('every kind of event has one schema for each of its operations', () => {
  const described = resolved(itemsOf('notification')).anyOf.map(resolved)
  // biome-ignore lint/suspicious/noExplicitAny: a JSON schema
  const wordsOf = (schema: any): string[] =>
    schema.$ref ? wordsOf(resolved(schema)) : (schema.enum ?? [schema.const])
  const operations = Object.entries(kinds).flatMap(([name, of]) =>
    Object.keys(of).map((operation) => ({ name, operation })),
  )
  expect(operations.length).toBeGreaterThan(20)
  for (const { name, operation } of operations) {
    const found = described.filter(
      // biome-ignore lint/suspicious/noExplicitAny: a JSON schema
      ({ properties }: any) =>
        wordsOf(properties.name).includes(name) && wordsOf(properties.operation).includes(operation),
    )
    expect([name, operation, found.length]).toEqual([name, operation, 1])
    expect(Object.keys(resolved(found[0].properties.data).properties)).toContain(
      firstFieldOf(name, operation),
    )
    expect(found[0].required).toEqual(Object.keys(found[0].properties))
  }
  expect(described).toHaveLength(Object.keys(kinds).length + 3)
})

/** Repeated here, so that the test notices data of another kind. */
function firstFieldOf(name: string, operation: string): string {
  const others: Record<string, string> = {
    thirdParty: 'code',
    adminMessage: 'event',
    ledger: 'cursor',
    visitedPage: 'path',
    taxReturnSent: 'idDepot',
  }
  if (name === 'accountingFolder' && operation === 'UPDATE') return 'currentState'
  return others[name] ?? 'id'
}

test('a ping has its own schema, and is not among the events of a subscription', () => {
  expect(itemsOf('ping').properties).toMatchObject({
    name: { const: 'ping' },
    operation: { const: 'VOID' },
    data: { additionalProperties: false },
  })
  expect(Notification.safeParse({ ...example, name: 'ping', operation: 'VOID', data: {} }).success).toBe(
    false,
  )
})

test('only the events of a delivery fit the schemas', () => {
  const delivered = JSON.parse(readFileSync('fixtures/events.json', 'utf8')) as object[]
  expect(delivered.length).toBeGreaterThan(5)
  for (const event of delivered) expect(Notification.parse(event)).toEqual(event)
  const wrong = [
    { name: 'cloudDocument', operation: 'DELETE', data: { id: 'x', status: 'completed' } },
    { name: 'cloudDocument', operation: 'CREATE', data: { id: 'x' } },
    { name: 'ledger', operation: 'UPDATE', data: { id: 'x' } },
  ]
  for (const event of wrong) expect(Notification.safeParse({ ...example, ...event }).success).toBe(false)
})
