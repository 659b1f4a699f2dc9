/** Waits that the service asks for, told where there is no terminal. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { logIn } from '../../support/cli/command-line.ts'

test('a login that has to wait says so every ten seconds where there is no terminal', async () => {
  let asked = 0
  const busy = createServer((_, answer) => {
    asked += 1
    const body = { error: { code: 'ERR-TOO-MANY-REQUEST', message: 'Busy', details: {} } }
    answer.writeHead(asked === 1 ? 429 : 400, { 'Content-Type': 'application/json', 'Retry-After': '11' })
    answer.end(JSON.stringify(body))
  })
  await once(busy.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`
  const { code, error } = await logIn(
    {},
    { GRANDLIVRE_URL: url, GRANDLIVRE_TOKEN: 'glv_api_1', GRANDLIVRE_SECRET: 'glv_secret_1' },
  )
  busy.close()
  expect([code, error]).toEqual([4, expect.stringMatching(/\nWaiting 1\d\.\d s: Busy\nBusy \(ERR-/)])
}, 30_000)
