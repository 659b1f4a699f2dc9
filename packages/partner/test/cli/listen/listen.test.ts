/** Listen forwards the events of a real service to a real receiver. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { verifyWebhook } from 'grandlivre/webhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { answerWith } from '../../../../../test/support/receiver.ts'
import { closedPort } from '../../../../../test/support/receivers/planted.ts'
import { setReceivingStage } from '../../../../../test/support/stages/receiving-stage.ts'
import { documentEvent, documents, namesOf } from '../../../../../test/support/stages/webhooks.ts'
import { until } from '../../../../../test/support/until.ts'
import { createTerminal } from '../../../../terminal/src/terminal.ts'
import { run } from '../../../src/cli/run.ts'
import { accessOf, grandlivre, jsonLines, startGrandlivre } from '../../support/cli/command-line.ts'
import { startFaultyProxy } from '../../support/client/faulty-proxy.ts'

const stage = forTests(setReceivingStage)
let home: string
let env: Record<string, string>

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'grandlivre-listen-'))
  env = { ...accessOf(stage.service.url, stage.own), XDG_STATE_HOME: home }
})

afterAll(() => rm(home, { recursive: true }))

/** Starts listen on a terminal, and waits until its subscription is there. */
async function listening(path: string, ...options: string[]) {
  const written = { out: '', error: '' }
  const stop = new AbortController()
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} })
  const terminal = createTerminal({
    input,
    out: { write: (text) => (written.out += text) },
    err: { write: (text) => (written.error += text) },
    interrupt: () => stop.abort(new Error('Interrupted')),
  })
  const target = path.startsWith('/') ? stage.receiver.url + path : path
  const words = ['listen', target, '--events', 'document', ...options]
  const ended = run(words, { env, terminal, signal: stop.signal })
  await until(() => written.error.includes('q ends'))
  /** `written`: what it has printed so far. `press` types a key. `ended`: its exit code. */
  return { written, press: (key: string) => void input.write(key), ended }
}

const publish = (...names: string[]) => stage.publish(names.map((name) => documentEvent(name, '111')))
const subscriptions = async () =>
  (await stage.call('GET', '')).body as { id: number; postUrl: string | null }[]
const pullOnly = async () => (await subscriptions()).filter(({ postUrl }) => postUrl === null)

describe('an event', () => {
  test('arrives with the body, headers and signatures of a delivery', async () => {
    const { id } = await stage.subscribe('/delivered')
    const { written, ended } = await listening('/forwarded', '--count', '1')
    await publish('Facture n° 12 – "été" \u2028😀')
    expect(await ended).toBe(0)
    await until(() => stage.receiver.requests('/delivered').length === 1)
    await stage.call('DELETE', `/${id}`)
    const [delivered] = stage.receiver.requests('/delivered')
    const [forwarded] = stage.receiver.requests('/forwarded')
    // These headers differ, because the two are signed at different times and with different secrets.
    const signed = ['date', 'signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
    const own = Object.fromEntries(signed.map((name) => [name, '']))
    const ofBody = { 'content-digest': '', connection: '' }
    expect({ ...forwarded!.headers, ...own, ...ofBody }).toEqual({ ...delivered!.headers, ...own, ...ofBody })
    // Each subscription has its own webhookId for an event.
    const body = String(forwarded!.body).replace(/[0-9a-f-]{36}/, delivered!.events[0]!.webhookId)
    expect(body).toBe(String(delivered!.body))
    const signingSecret = written.error.match(/whsec_\S+/)![0]
    const { headers, body: bytes } = forwarded!
    const verified = verifyWebhook({ secret: stage.partnerSecret, signingSecret, headers, body: bytes })
    expect(verified).toMatchObject({ valid: true, sequence: { first: 1, last: 1 } })
  })

  test('is shown with its kind, id and number, and with the status and response time of the receiver', async () => {
    stage.receiver.behave('/shown', answerWith(202))
    const { written, ended } = await listening('/shown', '--count', '2')
    await publish('a', 'b')
    expect(await ended).toBe(0)
    const line = (id: string, number: number) =>
      `\\d\\d:\\d\\d:\\d\\d  document CREATE ${id}  #${number}  202 in \\d+ ms\n`
    expect(written.out).toMatch(new RegExp(`^${line('a', 1)}${line('b', 2)}$`))
  })

  test('is printed as one JSON object with --json', async () => {
    const { written, ended } = await listening('/json', '--count', '2', '--json')
    await publish('a', 'b')
    expect(await ended).toBe(0)
    const received = stage.receiver.accepted('/json')
    expect(jsonLines(written.out)).toEqual(
      received.map((event, index) => ({
        sequence: index + 1,
        status: 204,
        milliseconds: expect.any(Number),
        attempts: 1,
        isReplay: false,
        event,
      })),
    )
  })

  test('waits for a receiver that fails or is down, and the key r retries it at once', async () => {
    stage.receiver.behave('/failing', (response, _, attempt) =>
      attempt < 3
        ? response.writeHead(503, { 'retry-after': '3600' }).end('restarting\n')
        : response.writeHead(204).end(),
    )
    const { written, press, ended } = await listening('/failing', '--count', '2')
    await publish('a')
    for (const attempt of [1, 2]) {
      await until(() => stage.receiver.requests('/failing').length === attempt)
      await until(
        () => written.error.split('answers 503: restarting. Trying again in 60 s.').length === attempt + 1,
      )
      await publish(...(attempt === 2 ? ['b'] : []))
      press('r')
    }
    expect(await ended).toBe(0)
    const requests = stage.receiver.requests('/failing')
    expect(requests.map(({ headers }) => headers['webhook-sequence'])).toEqual(['1-1', '1-1', '1-1', '2-2'])
    expect(new Set(requests.slice(0, 3).map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(namesOf(stage.receiver.accepted('/failing'))).toEqual(['a', 'b'])
  })

  test('that is lost is reported, even with --quiet', async () => {
    const proxy = await startFaultyProxy(stage.service.url)
    try {
      // A service that has lost the second event would answer like this.
      const body = (whole: Uint8Array) =>
        Buffer.from(String(whole).replaceAll('"sequence":"2"', '"sequence":"3"'))
      proxy.fault = (path) => (path.includes('/events') ? { kind: 'rewrite', body } : undefined)
      const address = `${stage.receiver.url}/losing`
      const words = ['listen', address, '--events', 'document', '--count', '2', '--quiet']
      const ended = grandlivre({ ...env, GRANDLIVRE_URL: proxy.url }, words)
      await until(async () => (await pullOnly()).length === 1)
      await publish('a', 'b')
      const { code, error } = await ended
      expect([code, error]).toEqual([0, 'Numbers 2 to 2 are left out: lost, or erased with their folder.\n'])
    } finally {
      await proxy.close()
    }
  })

  test('is sent again by the key r, with the same body and a new delivery id', async () => {
    const { written, press, ended } = await listening('/again')
    press('r')
    await until(() => written.error.includes('There is no delivery yet to send again'))
    await publish('a')
    await until(() => stage.receiver.requests('/again').length === 1 && written.out !== '')
    press('r')
    await until(() => written.out.includes(', again'))
    press('q')
    expect(await ended).toBe(0)
    const [first, second, ...others] = stage.receiver.requests('/again')
    expect(others).toEqual([])
    expect(second!.body).toEqual(first!.body)
    expect(second!.headers['webhook-sequence']).toBe('1-1')
    expect(second!.headers['webhook-id']).not.toBe(first!.headers['webhook-id'])
  })

  test('stays on this machine if the target is a name below localhost, whatever name servers answer', async () => {
    const { port } = new URL(stage.receiver.url)
    const { ended } = await listening(`http://app.localhost:${port}/below`, '--count', '1')
    await publish('a')
    expect(await ended).toBe(0)
    expect(stage.receiver.requests('/below')[0]!.headers['host']).toBe(`app.localhost:${port}`)
  })

  test('arrives in order, in deliveries of at most a hundred', async () => {
    const { ended } = await listening('/many', '--count', '150')
    await stage.publish(documents(Array.from({ length: 150 }, (_, index) => `n${index}`)).map(inFolder))
    expect(await ended).toBe(0)
    expect(stage.receiver.requests('/many').map(({ headers }) => headers['webhook-sequence'])).toEqual([
      '1-100',
      '101-150',
    ])
  })
})

const inFolder = <Event extends object>(event: Event) => ({ ...event, folderId: '111' })

describe('the subscription of listen', () => {
  test('exists while listen runs, for the requested kinds, and is deleted by the key q', async () => {
    const { press, ended } = await listening('/')
    const [own, ...others] = await pullOnly()
    expect([own, others]).toMatchObject([{ onEvents: ['document'], accountingFolderId: ['111'] }, []])
    press('q')
    expect(await ended).toBe(0)
    expect(await pullOnly()).toEqual([])
    expect(await readdir(join(home, 'grandlivre/listening'))).toEqual([])
  })

  test('receives all kinds if none is named; an unknown kind is refused', async () => {
    const stop = new AbortController()
    const target = `${stage.receiver.url}/`
    const ended = grandlivre(env, ['listen', target], { signal: stop.signal })
    await until(async () => (await pullOnly()).length === 1)
    expect((await pullOnly())[0]).toMatchObject({
      onEvents: expect.arrayContaining(['ledger', 'cloudDocument', 'accountingLineEntry', 'visitedPage']),
    })
    stop.abort(new Error('Interrupted'))
    expect((await ended).code).toBe(130)
    const refused = await grandlivre(env, ['listen', target, '--events', 'ledgers'])
    expect([refused.code, refused.error]).toEqual([4, expect.stringContaining('onEvents')])
    expect(await pullOnly()).toEqual([])
  })

  test('is deleted after Ctrl-C, even while the receiver is down', async () => {
    const { written, press, ended } = await listening(await closedPort())
    await publish('a')
    await until(() => written.error.includes('ECONNREFUSED'))
    press('\x03')
    expect(await ended).toBe(130)
    expect(await pullOnly()).toEqual([])
  })

  test('is deleted after SIGTERM', async () => {
    const { child, soFar, ended } = startGrandlivre(env, ['listen', `${stage.receiver.url}/term`])
    await until(() => soFar.error.includes('Listening'))
    child.kill('SIGTERM')
    expect((await ended).code).toBe(130)
    expect(await pullOnly()).toEqual([])
  })

  test('is deleted by the next listen if its process was killed; other subscriptions stay', async () => {
    const killed = startGrandlivre(env, ['listen', `${stage.receiver.url}/killed`])
    await until(() => killed.soFar.error.includes('Listening'))
    const [left] = await pullOnly()
    const running = startGrandlivre(env, ['listen', `${stage.receiver.url}/running`])
    await until(() => running.soFar.error.includes('Listening'))
    const ofContainer = (await stage.call('POST', '', { postUrl: null, onEvents: ['document'] })).body
    const program = (await stage.call('POST', '', { postUrl: null, onEvents: ['document'] })).body
    killed.child.kill('SIGKILL')
    await killed.ended
    // A note about another service, and a file that is no note.
    const notes = join(home, 'grandlivre/listening')
    const note = JSON.parse(await readFile(join(notes, `${left!.id}.json`), 'utf8'))
    await writeFile(
      join(notes, '1.json'),
      JSON.stringify({ ...note, id: program.id, baseUrl: 'http://other' }),
    )
    await writeFile(join(notes, '2.json'), 'null')
    // A note with our own process number: in a container the next process has the same number.
    await writeFile(
      join(notes, `${ofContainer.id}.json`),
      JSON.stringify({ ...note, id: ofContainer.id, pid: process.pid }),
    )
    const next = await listening('/next')
    expect(next.written.error).toContain('Deleted subscriptions that a killed listen left: 2')
    const ids = (await pullOnly()).map(({ id }) => id)
    expect([ids.length, ids.includes(left!.id), ids.includes(program.id)]).toEqual([3, false, true])
    next.press('q')
    expect(await next.ended).toBe(0)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(130)
    expect((await pullOnly()).map(({ id }) => id)).toEqual([program.id])
  })
})

test('a remote address or an invalid count is refused before anything is created', async () => {
  for (const [words, message] of [
    [['http://192.0.2.1/'], 'is not this machine'],
    [[], '<address> is missing: address of your receiver, such as http://localhost:3000/hook'],
    [['http://localhost/', '--count', '0'], '--count takes a number of events from 1 to 999999999, not "0"'],
    [['http://localhost/', '--folders', ' '], '--folders is empty'],
    [['http://localhost/', '--events', ','], '--events is empty'],
  ] as const) {
    const { code, error } = await grandlivre(env, ['listen', ...words])
    expect([code, error]).toEqual([2, expect.stringContaining(message)])
  }
})
