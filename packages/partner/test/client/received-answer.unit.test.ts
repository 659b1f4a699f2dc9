/** An answer whose connection fails in the middle of its body. */
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { isLost } from '../../src/client/http/connection.ts'
import { receivedAnswer } from '../../src/client/http/received-answer.ts'
import { errorOf, joined } from '../support/client/chunks.ts'

test('a TLS error in the middle of a body counts as a lost connection, so the reader resumes', async () => {
  const response = Object.assign(new PassThrough(), { headers: {}, statusCode: 200, complete: false })
  const limits = { stallMs: 10_000, wholeBytesMax: 1 }
  const { body } = receivedAnswer(response as unknown as IncomingMessage, 'GET /', limits, undefined)
  const read = errorOf(joined(body))
  const cause = Object.assign(new Error('bad record mac'), { code: 'ERR_SSL_BAD_RECORD_MAC' })
  response.destroy(cause)
  const error = await read
  expect([isLost(error), error]).toEqual([
    true,
    expect.objectContaining({ message: 'bad record mac', cause }),
  ])
})
