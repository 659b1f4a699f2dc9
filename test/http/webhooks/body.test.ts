/** Request bodies: content type, charset and length. */
import { once } from 'node:events'
import { request as rawRequest } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { codeOf, postUrl, setWebhookRoutes } from '../../support/stages/webhook-routes.ts'

const routes = setWebhookRoutes()

describe('a request body', () => {
  const small = { postUrl, onEvents: ['document'] }

  test('must be JSON in UTF-8, whether its type declares this or not', async () => {
    const { firm, webhook, send, post, patch, make } = routes
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json-patch+json',
      'text/json',
      ';charset=utf-8',
    ])
      expect([type, codeOf(await post(firm, small, type))]).toEqual([
        type,
        [415, 'ERR-UNSUPPORTED-MEDIA-TYPE'],
      ])
    expect(codeOf(await post(firm, small, 'application/json; charset=iso-8859-1'))).toEqual([
      415,
      'ERR-UNSUPPORTED-MEDIA-TYPE',
    ])
    expect((await post(firm, small, 'Application/JSON;charset="UTF-8"')).status).toBe(201)
    const compressed = await send('POST', webhook(), { ...firm, 'Content-Encoding': 'gzip' }, small)
    expect(compressed.status).toBe(415)
    const latin1 = await fetch(webhook(), {
      method: 'POST',
      headers: { ...firm, 'Content-Type': 'application/json' },
      body: Buffer.from(JSON.stringify({ ...small, postUrl: 'https://hooks.test/é' }), 'latin1'),
    })
    expect(latin1.status).toBe(400)
    const id = await make(firm)
    const patched = await patch(firm, id, [], 'text/plain')
    expect(patched.status).toBe(415)
    expect(patched.headers.get('accept-patch')).toBe(
      'application/json-patch+json, application/merge-patch+json, application/json',
    )
  })

  test('is accepted without a Content-Type, or with an empty one', async () => {
    const { firm, webhook, make } = routes
    const id = await make(firm)
    const untyped = async (method: string, url: string, body: unknown, type: Record<string, string> = {}) => {
      const sent = rawRequest(url, { method, headers: { ...firm, ...type }, agent: false })
      sent.end(typeof body === 'string' ? body : JSON.stringify(body))
      const [response] = await once(sent, 'response')
      return [response.statusCode, JSON.parse(String(Buffer.concat(await response.toArray())))]
    }
    for (const type of [{}, { 'Content-Type': '' }, { 'Content-Type': ' ' }]) {
      expect(await untyped('POST', webhook(), small, type)).toMatchObject([201, small])
      const patch = [{ op: 'replace', path: '/onEvents', value: ['exercice'] }]
      const patched = await untyped('PATCH', webhook(`/${id}`), patch, type)
      expect(patched).toMatchObject([200, { id, onEvents: ['exercice'] }])
    }
    const [status, { error }] = await untyped('POST', webhook(), 'postUrl=x')
    expect([status, error.code]).toEqual([400, 'ERR-VALIDATION'])
  })

  test('may have exactly up to 64 KiB, with Content-Length or chunked', async () => {
    const { firm, webhook, post } = routes
    const filled = (bytes: number) => {
      const text = JSON.stringify(small)
      return `${text.slice(0, -1)}${' '.repeat(bytes - text.length)}}`
    }
    for (const [bytes, status] of [
      [65_536, 201],
      [65_537, 413],
    ] as const) {
      expect((await post(firm, filled(bytes))).status).toBe(status)
      const chunked = rawRequest(webhook(), {
        method: 'POST',
        headers: { ...firm, 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' },
        agent: false,
      })
      chunked.end(filled(bytes))
      const [response] = await once(chunked, 'response')
      const chunks = await response.toArray()
      expect(response.statusCode).toBe(status)
      if (status === 413)
        expect(JSON.parse(String(Buffer.concat(chunks))).error.code).toBe('ERR-PAYLOAD-TOO-LARGE')
    }
  })

  test('that never ends is answered with 413, and the connection is closed', async () => {
    const { firm, service } = routes
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.on('error', () => {})
    const head = [`POST /api/v1/webhook HTTP/1.1`, 'Host: here', 'Content-Type: application/json']
    const lines = [...head, ...Object.entries(firm).map(([name, value]) => `${name}: ${value}`)]
    socket.write(`${lines.join('\r\n')}\r\nTransfer-Encoding: chunked\r\n\r\n`)
    const chunk = `4000\r\n${' '.repeat(0x4000)}\r\n`
    const pour = setInterval(() => socket.writable && socket.write(chunk), 5)
    let answer = ''
    socket.on('data', (bytes) => {
      answer += bytes
    })
    await once(socket, 'close')
    clearInterval(pour)
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('ERR-PAYLOAD-TOO-LARGE')
  })
})
