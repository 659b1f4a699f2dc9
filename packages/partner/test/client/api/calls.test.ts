import { expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { request } from '../../../../../test/support/service.ts'
import { setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import type { Account, Exercice } from '../../../src/client/grandlivre.ts'
import { libraryOf } from '../../support/client/library.ts'

const stage = forTests(setExportStage)
const ledger = forTests(() => libraryOf(stage.company, stage.service.url))

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'no error',
    ({ code, status }) => [code, status],
  )

test('a call returns the plain answer of its route, in the current version of the API', async () => {
  const accounts: Account[] = await ledger.get('/mad/accounts')
  const { body } = await request(`${stage.service.url}/api/v1/mad/accounts?version=1.0.0`, stage.company)
  expect(accounts.length).toBeGreaterThan(3)
  expect(accounts).toEqual(body)
  const [exercice]: Exercice[] = await ledger.get('/mad/exercices')
  const some = { idExercice: exercice!.producerId, classAccount: ['6', '401'] }
  const balance = await ledger.get('/mad/balance', { query: some })
  expect(balance.length).toBeGreaterThan(0)
  expect(balance.map(({ account }) => account.number).filter((number) => !/^(6|401)/.test(number))).toEqual(
    [],
  )
})

test('a subscription can be created, read, patched, replaced and deleted', async () => {
  const made = await ledger.post('/webhook', { body: { postUrl: null, onEvents: ['document'] } })
  expect(made.signingSecret).toMatch(/^whsec_/)
  const path = { id: made.id }
  const patch = [{ op: 'replace' as const, path: '/onEvents', value: ['ledger', 'document'] }]
  expect((await ledger.patch('/webhook/{id}', { path, body: patch })).onEvents.sort()).toEqual([
    'document',
    'ledger',
  ])
  const replaced = await ledger.put('/webhook/{id}', {
    path,
    body: { postUrl: null, onEvents: ['portfolio'] },
  })
  expect(replaced.onEvents).toEqual(['portfolio'])
  const merged = await ledger.patch('/webhook/{id}', { path, body: { onEvents: ['ledger'] } })
  expect(merged.onEvents).toEqual(['ledger'])
  expect((await ledger.get('/webhook/{id}', { path })).id).toBe(made.id)
  expect(await ledger.delete('/webhook/{id}', { path })).toBeNull()
  expect(await codeOf(ledger.get('/webhook/{id}', { path }))).toEqual(['ERR-WEBHOOK-NOT-FOUND', 404])
})

test('the error of a refused call says what is wrong and what to do', async () => {
  const call = ledger.get('/mad/balance', { query: { idExercice: '1x' } })
  await expect(call).rejects.toMatchObject({
    code: 'ERR-VALIDATION',
    status: 400,
    message: expect.stringContaining('idExercice: '),
    issues: [{ parameter: 'idExercice', message: expect.any(String) }],
    remedy: expect.stringContaining('details.issues'),
    requestId: expect.any(String),
  })
  expect(await codeOf(ledger.get('/webhook/{id}', { path: { id: '' } }))).toEqual(['INVALID-OPTION', 0])
})

test('a call of a route that does not exist does not compile', async () => {
  const wrong = [
    // @ts-expect-error: no such route
    () => ledger.get('/mad/acounts'),
    // @ts-expect-error: no such parameter
    () => ledger.get('/mad/balance', { query: { idExercise: '1' } }),
    // @ts-expect-error: the route needs an id
    () => ledger.get('/webhook/{id}'),
    // @ts-expect-error: a year is read as a stream
    () => ledger.get('/mad/movements'),
    // @ts-expect-error: the body needs onEvents
    () => ledger.post('/webhook', { body: { postUrl: null } }),
  ]
  expect(wrong).toHaveLength(5)
})
