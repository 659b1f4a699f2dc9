/** Each exit code, and what `--json` prints of a failure: one object as the last line of standard error. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { credentials, folders } from '../../../../test/support/ledgers/tenants.ts'
import { type ExportStage, setExportStage } from '../../../../test/support/stages/export-stage.ts'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { openCopy } from '../../src/sync/sync.ts'
import { accessOf, grandlivre } from '../support/cli/command-line.ts'
import { type Fault, type FaultyProxy, startFaultyProxy } from '../support/client/faulty-proxy.ts'

type Environment = Record<string, string>

/** Home, and place of files. */
const folder = mkdtempSync(join(tmpdir(), 'grandlivre-failures-'))
const at = (name: string) => join(folder, name)
let stage: ExportStage
let proxy: FaultyProxy
const env: Record<'company' | 'firm' | 'exportsOnly' | 'none', Environment> = {
  company: {},
  firm: {},
  exportsOnly: {},
  none: {},
}
beforeAll(async () => {
  stage = await setExportStage()
  proxy = await startFaultyProxy(stage.service.url)
  const { staff } = stage
  const limited = await staff.token('PARTNER', 'api', folders.first, { groups: ['exports'] })
  const secret = stage.company['X-Third-Party-Secret']!
  env.none = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder }
  env.company = { ...env.none, ...accessOf(proxy.url, stage.company) }
  env.firm = { ...env.none, ...accessOf(proxy.url, stage.firm) }
  env.exportsOnly = { ...env.none, ...accessOf(proxy.url, credentials(limited, secret)) }
  writeFileSync(at('there.ndjson'), '')
  expect((await grandlivre(env.firm, ['sync', '--to', at('copy.sqlite')])).code).toBe(0)
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await proxy?.close()
  await stage?.close()
})
beforeEach(() => {
  proxy.fault = () => undefined
})

const pull = (...more: string[]) => ['pull', '--out', at('new.ndjson'), ...more]
const pullAll = ['pull', '--all', '--format', 'csv', '--out', at('new.csv')]
const answer = (status: number, code: string, headers = {}): Fault => {
  const body = JSON.stringify({ error: { code, message: 'As a test says', details: {} } })
  return { kind: 'answer', status, headers: { 'X-Request-Id': 'r-1', ...headers }, body }
}
const busy = { 'Retry-After': '3600' }
const failedExport: Fault = {
  kind: 'answer',
  status: 200,
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ id: 'export_1', status: 'FAILED', reason: 'The disk of the service is full' }),
}

interface Failing {
  exit: number
  /** `code` of the object. */
  code: string
  words: string[]
  /** Default: that of the company. */
  from?: () => Environment
  fault?: Fault
  /** Whether the request id of the service is known. */
  isAnswered?: true
}

const { failed, usage, refused, unreachable, expired, local } = exitCodes
const cases: Record<string, Failing> = {
  'no such command': { exit: usage, code: 'USAGE', words: ['frobnicate'] },
  'a misspelt option': { exit: usage, code: 'USAGE', words: pull('--exercise', '11') },
  'a missing option': { exit: usage, code: 'USAGE', words: ['pull', '--exercice', '11'] },
  'no selection': { exit: usage, code: 'USAGE', words: pull() },
  'half a period': { exit: usage, code: 'USAGE', words: pull('--from', '2025-01-01') },
  'a format without --all': {
    exit: usage,
    code: 'USAGE',
    words: pull('--exercice', '11', '--format', 'csv'),
  },
  'a value that is none': { exit: usage, code: 'USAGE', words: pull('--exercice', '11', '--lettering', 'x') },
  'a password in an address': { exit: usage, code: 'USAGE', words: ['sync', '--to', 'postgres://a:b@h/c'] },
  'a profile that is none': { exit: usage, code: 'USAGE', words: ['folders', '--profile', 'a b'] },
  'a receiver elsewhere': { exit: usage, code: 'USAGE', words: ['listen', 'http://192.0.2.1/'] },
  'no answer to login': { exit: usage, code: 'USAGE', words: ['login', '--url', 'https://x'] },
  'several folders': { exit: usage, code: 'USAGE', words: pull('--exercice', '11'), from: () => env.firm },
  'an address that is none': {
    ...{ exit: usage, code: 'INVALID-OPTION', words: ['folders'] },
    from: () => ({ ...env.company, GRANDLIVRE_URL: 'ftp://x' }),
  },
  'a wrong token': {
    ...{ exit: refused, code: 'ERR-API-TOKEN-NOT-FOUND', words: ['folders'], isAnswered: true },
    from: () => ({ ...env.company, GRANDLIVRE_TOKEN: 'glv_api_wrong' }),
  },
  'a wrong secret': {
    ...{ exit: refused, code: 'ERR-INVALID-SECRET', words: ['folders'], isAnswered: true },
    from: () => ({ ...env.company, GRANDLIVRE_SECRET: 'wrong' }),
  },
  'a group that the token lacks': {
    ...{ exit: refused, code: 'ERR-FORBIDDEN-ROUTE', words: ['folders'], isAnswered: true },
    from: () => env.exportsOnly,
  },
  'a folder of another firm': {
    ...{ exit: refused, code: 'ERR-FOLDER-NOT-FOUND', isAnswered: true, from: () => env.firm },
    words: pull('--exercice', '11', '--society', '121'),
  },
  'no such exercice': { exit: refused, code: 'REFUSED', words: pull('--exercice', '1990') },
  'too long a period': {
    ...{ exit: refused, code: 'ERR-VALIDATION', isAnswered: true },
    words: pull('--from', '2025-01-01', '--to', '2026-06-30'),
  },
  'no such subscription': {
    ...{ exit: refused, code: 'ERR-WEBHOOK-NOT-FOUND', words: ['webhook', 'doctor', '9'], isAnswered: true },
  },
  'nothing that listens': {
    ...{ exit: unreachable, code: 'CONNECTION-FAILED', words: ['folders'] },
    from: () => ({ ...env.company, GRANDLIVRE_URL: 'http://127.0.0.1:1' }),
  },
  'no TLS at the port': {
    ...{ exit: unreachable, code: 'CONNECTION-FAILED', words: ['folders'] },
    from: () => ({ ...env.company, GRANDLIVRE_URL: proxy.url.replace('http:', 'https:') }),
  },
  'another site': {
    ...{ exit: unreachable, code: 'UNEXPECTED-ANSWER', words: ['folders'] },
    fault: { kind: 'answer', status: 404, body: '<h1>Not here</h1>' },
  },
  'a redirect': {
    ...{ exit: unreachable, code: 'UNEXPECTED-ANSWER', words: ['folders'] },
    fault: { kind: 'answer', status: 302, headers: { Location: 'https://example.com/' } },
  },
  'a service that is busy': {
    ...{ exit: unreachable, code: 'ERR-TOO-MANY-REQUEST', words: ['folders'], isAnswered: true },
    fault: answer(429, 'ERR-TOO-MANY-REQUEST', busy),
  },
  maintenance: {
    ...{ exit: unreachable, code: 'ERR-API-UNDER-MAINTENANCE', words: ['folders'], isAnswered: true },
    fault: answer(503, 'ERR-API-UNDER-MAINTENANCE', busy),
  },
  'a file that is gone': {
    ...{ exit: expired, code: 'ERR-EXPORT-EXPIRED', words: pullAll, isAnswered: true },
    fault: answer(410, 'ERR-EXPORT-EXPIRED'),
  },
  'a fault of the service': {
    ...{ exit: failed, code: 'ERR-INTERNAL', words: ['folders'], isAnswered: true },
    fault: answer(500, 'ERR-INTERNAL'),
  },
  'an export that failed': { exit: failed, code: 'EXPORT-FAILED', words: pullAll, fault: failedExport },
  'no access': { exit: local, code: 'LOCAL', words: ['folders'], from: () => env.none },
  'half an access': {
    ...{ exit: local, code: 'LOCAL', words: ['folders'] },
    from: () => ({ ...env.none, GRANDLIVRE_URL: proxy.url }),
  },
  'no such profile': { exit: local, code: 'LOCAL', words: ['profiles', 'remove', 'x'] },
  'a file that is there': {
    ...{ exit: local, code: 'LOCAL', words: ['pull', '--exercice', '11', '--out', at('there.ndjson')] },
  },
  'no folder for a file': {
    ...{ exit: local, code: 'LOCAL', words: ['pull', '--exercice', '11', '--out', at('none/new.ndjson')] },
  },
  'credentials that are none': {
    ...{ exit: local, code: 'LOCAL', words: ['login', '--from', at('there.ndjson')] },
  },
  'no kind of copy': { exit: local, code: 'COPY-REFUSED', words: ['sync', '--to', at('copy.txt')] },
  'a database that does not answer': {
    ...{ exit: unreachable, code: 'COPY-REFUSED', words: ['sync', '--to', 'postgres://127.0.0.1:1/books'] },
  },
  'an option before the command': { exit: usage, code: 'USAGE', words: ['--quiet', 'folders'] },
  'no copy': { exit: local, code: 'COPY-REFUSED', words: ['verify', '--to', at('none.sqlite')] },
}

/** @returns the object, which is the last line of standard error and the only one that is an object */
async function failing(words: string[], from: Environment, signal?: AbortSignal) {
  const { code, out, error } = await grandlivre(from, [...words, '--json'], signal ? { signal } : {})
  const lines = error.trimEnd().split('\n')
  expect(lines.filter((line) => line.startsWith('{'))).toEqual([lines.at(-1)])
  for (const line of out.split('\n')) if (line !== '') JSON.parse(line)
  const told = JSON.parse(lines.at(-1)!)
  expect(Object.keys(told).toSorted()).toEqual(['code', 'message', 'remedy', 'requestId'])
  expect(told.message).toMatch(/\w/)
  return { exit: code, ...told }
}

const seen = new Set<number>()

describe('--json and the exit code of', () => {
  test.each(Object.keys(cases))('%s', async (name) => {
    const { exit, code, words, from, fault, isAnswered } = cases[name]!
    if (fault) proxy.fault = (path) => (words === pullAll && !path.includes('/mad/all') ? undefined : fault)
    const told = await failing(words, from?.() ?? env.company)
    expect(told).toMatchObject({ exit, code, requestId: isAnswered ? expect.any(String) : null })
    seen.add(told.exit)
  })

  test('a login file that others can read', async () => {
    const home = { HOME: at('home'), XDG_CONFIG_HOME: at('home') }
    const input = `${env.company['GRANDLIVRE_TOKEN']}\n${env.company['GRANDLIVRE_SECRET']}\n`
    expect((await grandlivre(home, ['login', '--url', proxy.url], { input })).code).toBe(0)
    const file = at('home/grandlivre/access.json')
    chmodSync(file, 0o644)
    expect(await failing(['folders'], home)).toMatchObject({
      exit: local,
      remedy: `Run chmod 600 '${file}'.`,
    })
  })

  test('a copy that another process holds, whose rows differed, and an interruption', async () => {
    const to = at('copy.sqlite')
    const held = await openCopy(to)
    await held.lock([folders.first.firmId])
    const locked = await failing(['sync', '--to', to], env.firm)
    expect(locked).toMatchObject({ exit: local, code: 'COPY-LOCKED' })
    await held.close()
    const database = new DatabaseSync(to)
    database.exec(`update journals set journal_name = 'Other' where society_id = 111`)
    database.close()
    const differing = await failing(['verify', '--to', to], env.firm)
    expect(differing).toMatchObject({
      exit: exitCodes.differs,
      code: 'DIFFERS',
      remedy: 'They are equal now.',
    })
    const done = await grandlivre(env.firm, ['verify', '--to', to])
    const stopped = await failing(['folders'], env.company, AbortSignal.abort(new Error('Ctrl-C')))
    expect(stopped).toMatchObject({ exit: exitCodes.interrupted, code: 'INTERRUPTED' })
    for (const code of [locked.exit, differing.exit, done.code, stopped.exit]) seen.add(code)
  })

  test('no exit code is missing here, and none is unknown', () => {
    expect(Object.keys(cases).length).toBeGreaterThan(30)
    expect([...seen].toSorted((one, other) => one - other)).toEqual(Object.values(exitCodes))
  })
})

test('--quiet leaves the error alone, and without --json it is prose', async () => {
  const words = ['pull', '--exercice', '11', '--out', at('new.ndjson'), '--force']
  const loud = await grandlivre(env.company, words)
  expect(loud).toMatchObject({ code: 0, error: expect.stringContaining('Exercice 11,') })
  expect(await grandlivre(env.company, [...words, '--quiet'])).toMatchObject({ code: 0, error: '' })
  proxy.fault = (path) => (path.includes('/mad/movements?') ? answer(500, 'ERR-INTERNAL') : undefined)
  const { error } = await grandlivre(env.company, [...words, '--quiet'])
  expect(error).toMatch(/^As a test says \(ERR-INTERNAL\)\nSend `details.requestId` .*\nRequest id: r-1\n$/)
})
