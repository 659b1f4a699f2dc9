/** The default bound of a slow transfer. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { Grandlivre } from '../../src/client/grandlivre.ts'

test('a transfer of one byte a second is given up after a minute', async () => {
  const server = createServer((_, answer) => {
    answer.writeHead(200, { 'Content-Type': 'application/json' })
    const timer = setInterval(() => answer.write(' '), 1_000)
    answer.on('close', () => clearInterval(timer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ledger = new Grandlivre({ baseUrl, token: 't', secret: 's', attemptsMax: 1 })
  await expect(ledger.get('/mad/accounts')).rejects.toThrow('Less than 1 KB arrived in 60 seconds')
  ledger.close()
  server.close()
})
