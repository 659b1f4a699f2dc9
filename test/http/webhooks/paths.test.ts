/** The webhook routes: their methods, ids and documentation. */
import { describe, expect, test } from 'vitest'
import { request } from '../../support/service.ts'
import { codeOf, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const routes = setWebhookRoutes()

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

describe('the webhook routes', () => {
  test('answer 405 with the methods that they allow', async () => {
    const { firm, webhook } = routes
    for (const [path, allowed] of [
      ['', 'POST, GET, HEAD'],
      ['/7', 'GET, HEAD, PATCH, PUT, DELETE'],
      ['/7/deliveries', 'GET, HEAD'],
      ['/7/replay', 'POST'],
      ['/7/ping', 'POST'],
      ['/7/rotate-secret', 'POST'],
      ['/event/document', 'GET, HEAD'],
      ['/event/document/111', 'GET, HEAD'],
    ] as const) {
      const answer = await request(webhook(path), firm, 'OPTIONS')
      expect([path, codeOf(answer), answer.headers.get('allow')]).toEqual([
        path,
        [405, 'ERR-METHOD-NOT-ALLOWED'],
        allowed,
      ])
    }
    expect(codeOf(await request(webhook('/7/8'), firm))).toEqual([404, 'ERR-NOT-FOUND'])
    expect(codeOf(await request(webhook(), {}, 'POST'))).toEqual([401, 'ERR-INVALID-AUTH-HEADER'])
  })

  test('accept ids of 1 to 16 digits', async () => {
    const { firm, webhook, make } = routes
    const id = String(await make(firm))
    const answers = async (path: string) => codeOf(await request(webhook(path), firm))
    expect(await answers(`/${id.padStart(16, '0')}`)).toEqual([200, undefined])
    expect(await answers(`/event/document/${'111'.padStart(16, '0')}`)).toEqual([200, undefined])
    for (const none of ['0', '9007199254740992', id.padStart(17, '0')])
      expect(await answers(`/${none}`)).toEqual([404, 'ERR-WEBHOOK-NOT-FOUND'])
    for (const none of ['0', '9007199254740992', '111'.padStart(17, '0')])
      expect(await answers(`/event/document/${none}`)).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
  })

  test('are documented, with their request bodies and the notification to subscribers', async () => {
    const { service } = routes
    const { body } = await request(`${service.url}/api/v1/openapi.json`)
    const { schemas } = body.components
    const create = body.paths['/api/v1/webhook'].post
    expect(create.requestBody.content['application/json'].schema).toEqual(reference('SubscriptionFields'))
    expect(schemas.SubscriptionFields.required).toEqual(['postUrl', 'onEvents'])
    const { postUrl: address, onEvents } = schemas.SubscriptionFields.properties
    expect(address).toMatchObject({ format: 'uri', maxLength: 2048 })
    expect(onEvents.items).toEqual(reference('EventKind'))
    expect(schemas.EventKind.enum).toEqual(expect.arrayContaining(['connector', 'taxReturnSent']))
    expect(create.responses['201'].headers).toHaveProperty('Location')
    const patch = body.paths['/api/v1/webhook/{id}'].patch
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
    // Either of them.
    const { items, properties } = schemas.SubscriptionChange
    expect(schemaOf('application/json')).toEqual(reference('SubscriptionChange'))
    expect({ items, properties }).toEqual({
      items: schemas.SubscriptionPatch.items,
      properties: merge.properties,
    })
    expect(patch.parameters.map(({ name }: { name: string }) => name)).toEqual(['id'])
    const notification = body.webhooks.notification.post
    expect(notification.requestBody.content['application/json'].schema.items).toEqual(
      reference('Notification'),
    )
  })
})
