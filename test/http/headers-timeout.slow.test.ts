/** By default the headers of a request may take ten seconds. listener.test.ts tests shorter limits. */
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from 'vitest'
import { createListener } from '../../src/http/listener.ts'
import { createLog } from '../../src/log.ts'
import { noTelemetry } from '../../src/telemetry/telemetry.ts'
import { defaultTiming } from '../../src/timing.ts'

test('a request whose headers take more than ten seconds gets an error that states the limits', async ({
  onTestFinished,
}) => {
  const server = createListener(
    () => new Response('there'),
    { log: createLog('silent'), telemetry: noTelemetry },
    defaultTiming.listener,
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: a\r\n')
  let answer = ''
  for await (const chunk of socket) answer += chunk
  const [head, body] = answer.split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1.1 400 /)
  expect(JSON.parse(body!).error.details.issues).toEqual([
    { parameter: 'request', message: 'must be sent within 10 seconds, and 30 with its body' },
  ])
})
