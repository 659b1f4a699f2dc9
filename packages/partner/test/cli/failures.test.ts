/**
 * Each exit code, and what a failure prints: prose, or with `--json` one object, which is the last line of standard error.
 */
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, describe, expect, test } from 'vitest'
import { credentials, folders } from '../../../../test/support/ledgers/tenants.ts'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { openCopy } from '../../src/sync/sync.ts'
import { accessOf, grandlivre } from '../support/cli/command-line.ts'
import { proxiedStage } from '../support/cli/proxied-stage.ts'
import type { Fault } from '../support/client/faulty-proxy.ts'

type Environment = Record<string, string>

const { its, folder, at, none } = proxiedStage()
/** The environment of a caller whose token opens exports alone. */
let exportsOnly: Environment
beforeAll(async () => {
  const { staff, company } = its.stage
  const limited = await staff.token('PARTNER', 'api', folders.first, { groups: ['exports'] })
  const secret = company['X-Third-Party-Secret']!
  exportsOnly = { ...none, ...accessOf(its.proxy.url, credentials(limited, secret)) }
  writeFileSync(at('there.ndjson'), '')
  expect((await grandlivre(its.firm, ['sync', '--to', at('copy.sqlite')])).code).toBe(0)
})

const pull = (...more: string[]) => ['pull', '--out', at('new.ndjson'), ...more]
const pullAll = ['pull', '--all', '--format', 'csv', '--out', at('new.csv')]
const answer = (status: number, code: string, headers = {}): Fault => {
  const body = JSON.stringify({ error: { code, message: 'As a test says', details: {} } })
  return { kind: 'answer', status, headers: { 'X-Request-Id': 'r-1', ...headers }, body }
}
const busy = { 'Retry-After': '3600' }
const given = (body: unknown): Fault => ({
  ...{ kind: 'answer', status: 200, headers: { 'Content-Type': 'application/json' } },
  body: JSON.stringify(body),
})
const twoExercices = given([
  { producerId: '1', name: 'N-1', period: { start: '2030-07-01', end: '2031-06-30' } },
  { producerId: '2', name: 'N', period: { start: '2031-07-01', end: '2032-06-30' } },
])
const failedExport = given({ id: 'export_1', status: 'FAILED', reason: 'The disk of the service is full' })

interface Failing {
  exit: number
  /** `code` of the object. The request id is known for the codes of the service, ERR-... */
  code: string
  words: string[]
  /** Default: the environment of the company. */
  from?: () => Environment
  fault?: Fault
  /** Matches the message and, in the lines below it, what to do. */
  says?: RegExp
}

const { failed, usage, refused, unreachable, expired, local } = exitCodes
const ends = (
  exit: number,
  code: string,
  words: string[],
  more: Pick<Failing, 'from' | 'fault' | 'says'> = {},
): Failing => ({ exit, code, words, ...more })
const wrong = (words: string[], says = /\w/) => ends(usage, 'USAGE', words, { says })
/** Makes the environment of the company with some variables changed. */
const companyWith = (changed: Environment) => () => ({ ...its.company, ...changed })
const inFolder = { from: companyWith({ GRANDLIVRE_SOCIETY: '111' }), fault: twoExercices }
const cases: Record<string, Failing> = {
  'an unknown command': wrong(['frobnicate']),
  'a misspelt option': wrong(
    pull('--exercise', '11'),
    /^There is no option --exercise; is --exercice meant\?\ngrandlivre help pull shows/,
  ),
  'a missing option': wrong(['pull', '--exercice', '11']),
  'no selection': wrong(
    pull(),
    /^Name what to pull: --exercice <id or year>, or --from and --to, or --all\n/,
  ),
  'half a period': wrong(pull('--from', '2025-01-01'), /^--from and --to belong together; --to is missing\n/),
  'an exercice and a day': wrong(
    pull('--exercice', '1', '--to', '2025-01-01'),
    /^--exercice and --to exclude each other\n/,
  ),
  'an exercice and a date filter': wrong(
    pull('--exercice', '1', '--date-filter', 'document'),
    /^--exercice and --date-filter exclude each other\n/,
  ),
  'a format without --all': wrong(
    pull('--exercice', '11', '--format', 'csv'),
    /^--format is of a full export: add --all\n/,
  ),
  'an invalid value': wrong(
    pull('--exercice', '11', '--lettering', 'x'),
    /^--lettering takes none, partial, complete, not "x"\n/,
  ),
  '--all without a format': wrong(pull('--all'), /^--all needs --format: json, tra, fec, csv, parquet\n/),
  'a FEC without an exercice': wrong(
    pull('--all', '--format', 'fec'),
    /^A FEC is of one exercice: add --exercice <id or year>\n/,
  ),
  'an option for movements with a full export': wrong(
    pull('--all', '--format', 'csv', '--draft'),
    /^--draft selects movements, and --all pulls a full export\n/,
  ),
  'an unknown encoding': wrong(
    pull('--exercice', '11', '--wire', 'br'),
    /^--wire takes identity, gzip, zstd, not "br"\n/,
  ),
  // Other users of the machine could see the command line.
  'a token in an option': wrong(['login', '--token', 'glv_x'], /^There is no option --token/),
  'a secret in an option': wrong(['login', '--secret', 'glv_x'], /^There is no option --secret/),
  'a password in an address': wrong(['sync', '--to', 'postgres://a:b@h/c']),
  'an invalid name of a profile': wrong(['folders', '--profile', 'a b']),
  'an invalid id': wrong(['webhook', 'doctor', 'x']),
  'a receiver elsewhere': wrong(['listen', 'http://192.0.2.1/']),
  'no answer to login': wrong(['login', '--url', 'https://x']),
  'several folders': { ...wrong(pull('--exercice', '11')), from: () => its.firm },
  'a year that several exercices share': {
    ...wrong(
      pull('--exercice', '2031'),
      /^--exercice 2031 may mean any of these; give the id of one:\n {2}1 {2}2030-07-01 to 2031-06-30 .*\n {2}2 /,
    ),
    ...inFolder,
  },
  'an option before the command': wrong(['--quiet', 'folders']),
  'an invalid address': ends(usage, 'INVALID-OPTION', ['folders'], {
    from: companyWith({ GRANDLIVRE_URL: 'ftp://x' }),
  }),
  'a wrong token': ends(refused, 'ERR-API-TOKEN-NOT-FOUND', ['folders'], {
    from: companyWith({ GRANDLIVRE_TOKEN: 'glv_api_wrong' }),
    says: /^The access token .*\nCheck that token and secret belong together\./,
  }),
  'a wrong secret': ends(refused, 'ERR-INVALID-SECRET', ['folders'], {
    from: companyWith({ GRANDLIVRE_SECRET: 'wrong' }),
  }),
  'a group that the token lacks': ends(refused, 'ERR-FORBIDDEN-ROUTE', ['folders'], {
    from: () => exportsOnly,
  }),
  'a folder of another firm': ends(
    refused,
    'ERR-FOLDER-NOT-FOUND',
    pull('--exercice', '11', '--society', '121'),
    { from: () => its.firm },
  ),
  'a year that no exercice contains': ends(refused, 'REFUSED', pull('--exercice', '1990'), {
    ...inFolder,
    says: /^The folder has no exercice 1990\nIt has:\n {2}1 {2}2030-07-01 to 2031-06-30 .*\n {2}2 {2}2031/,
  }),
  'too long a period': ends(refused, 'ERR-VALIDATION', pull('--from', '2025-01-01', '--to', '2026-06-30'), {
    says: /^--to: must be less than 12 months after --from\nCorrect --to\.$/,
  }),
  'an unknown source and invalid days': ends(
    refused,
    'ERR-VALIDATION',
    pull('--from', '2025-13-01', '--to', 'x', '--source', '?'),
    { says: /--source: .*\nCorrect --from and --to and --source\.$/ },
  ),
  'invalid days, with the result on standard output': ends(
    refused,
    'ERR-VALIDATION',
    ['pull', '--from', '2025-13-01', '--to', 'x', '--out', '-'],
    { says: /--from: .*--to: / },
  ),
  'an unknown subscription': ends(refused, 'ERR-WEBHOOK-NOT-FOUND', ['webhook', 'doctor', '9']),
  'a port on which nothing listens': ends(unreachable, 'CONNECTION-FAILED', ['folders'], {
    from: companyWith({ GRANDLIVRE_URL: 'http://127.0.0.1:1' }),
    says: /ECONNREFUSED 127.0.0.1:1\nCheck the address.*\nAddress: http:\/\/127.0.0.1:1, from the environment$/,
  }),
  'a port without TLS': ends(unreachable, 'CONNECTION-FAILED', ['folders'], {
    from: () => ({ ...its.company, GRANDLIVRE_URL: its.proxy.url.replace('http:', 'https:') }),
  }),
  'another site': ends(unreachable, 'UNEXPECTED-ANSWER', ['folders'], {
    fault: { kind: 'answer', status: 404, body: '<h1>Not here</h1>' },
    says: /status 404 and no error code\n.*\nAddress: http:.*, from the environment$/,
  }),
  'a redirect': ends(unreachable, 'UNEXPECTED-ANSWER', ['folders'], {
    fault: { kind: 'answer', status: 302, headers: { Location: 'https://example.com/' } },
  }),
  'a busy service': ends(unreachable, 'ERR-TOO-MANY-REQUEST', ['folders'], {
    fault: answer(429, 'ERR-TOO-MANY-REQUEST', busy),
  }),
  maintenance: ends(unreachable, 'ERR-API-UNDER-MAINTENANCE', ['folders'], {
    fault: answer(503, 'ERR-API-UNDER-MAINTENANCE', busy),
  }),
  'an export whose file has expired': ends(expired, 'ERR-EXPORT-EXPIRED', pullAll, {
    fault: answer(410, 'ERR-EXPORT-EXPIRED'),
  }),
  'a fault of the service': ends(failed, 'ERR-INTERNAL', ['folders'], {
    fault: answer(500, 'ERR-INTERNAL'),
  }),
  'an export that failed': ends(failed, 'EXPORT-FAILED', pullAll, { fault: failedExport }),
  'no access': ends(local, 'LOCAL', ['folders'], {
    from: () => none,
    says: /^There is no access to a ledger yet\nRun grandlivre login, or set GRANDLIVRE_URL, GRANDLIVRE_TOKEN and GRANDLIVRE_SECRET\.$/,
  }),
  'an access without token and secret': ends(local, 'LOCAL', ['folders'], {
    from: () => ({ ...none, GRANDLIVRE_URL: its.proxy.url }),
  }),
  'an unknown profile': ends(local, 'LOCAL', ['profiles', 'remove', 'x']),
  'an existing file': ends(local, 'LOCAL', ['pull', '--exercice', '11', '--out', at('there.ndjson')]),
  'a folder in place of a file': ends(local, 'LOCAL', ['pull', '--exercice', '11', '--out', folder], {
    says: /^(.*) is a folder\nName a file in it: --out \1\/2025.ndjson$/,
  }),
  'a missing folder for the file': ends(
    local,
    'LOCAL',
    ['pull', '--exercice', '11', '--out', at('none/new.ndjson')],
    { says: /^There is no folder (.*)\nRun mkdir -p '\1' first\.$/ },
  ),
  'a file without credentials': ends(local, 'LOCAL', ['login', '--from', at('there.ndjson')]),
  'a file that is no copy': ends(local, 'COPY-REFUSED', ['sync', '--to', at('copy.ndjson')], {
    says: /grandlivre pull/,
  }),
  'a database that does not answer': ends(unreachable, 'COPY-REFUSED', [
    ...['sync', '--to', 'postgres://127.0.0.1:1/books'],
  ]),
  'no copy': ends(local, 'COPY-REFUSED', ['verify', '--to', at('none.sqlite')], {
    says: /grandlivre sync --to .*none\.sqlite/,
  }),
}

/** @returns the object, which is the last line of standard error and the only one that is an object */
async function failing(words: string[], from: Environment, signal?: AbortSignal) {
  const { code, out, error } = await grandlivre(from, [...words, '--json'], signal ? { signal } : {})
  const lines = error.trimEnd().split('\n')
  expect(lines.filter((line) => line.startsWith('{'))).toEqual([lines.at(-1)])
  for (const line of out.split('\n')) if (line !== '') JSON.parse(line)
  const object = JSON.parse(lines.at(-1)!)
  expect(Object.keys(object).toSorted()).toEqual(['code', 'message', 'remedy', 'requestId'])
  expect(object.message).toMatch(/\w/)
  return { exit: code, ...object }
}

const seen = new Set<number>()

describe('--json and the exit code report', () => {
  test.each(Object.keys(cases))('%s', async (name) => {
    const { exit, code, words, from, fault, says = /\w/ } = cases[name]!
    if (fault)
      its.proxy.fault = (path) => (words === pullAll && !path.includes('/mad/all') ? undefined : fault)
    const object = await failing(words, from?.() ?? its.company)
    const requestId = code.startsWith('ERR-') ? expect.any(String) : null
    expect(object).toMatchObject({ exit, code, requestId })
    expect(`${object.message}\n${object.remedy}`).toMatch(says)
    expect(existsSync(at('new.ndjson'))).toBe(false)
    seen.add(object.exit)
  })

  test('a login file that others can read', async () => {
    const home = { HOME: at('home'), XDG_CONFIG_HOME: at('home') }
    const input = `${its.company['GRANDLIVRE_TOKEN']}\n${its.company['GRANDLIVRE_SECRET']}\n`
    expect((await grandlivre(home, ['login', '--url', its.proxy.url], { input })).code).toBe(0)
    const file = at('home/grandlivre/access.json')
    chmodSync(file, 0o644)
    expect(await failing(['folders'], home)).toMatchObject({
      exit: local,
      remedy: `Run chmod 600 '${file}'.`,
    })
  })

  test('a copy that another process holds, a copy with rows that differed, and an interruption', async () => {
    const to = at('copy.sqlite')
    const held = await openCopy(to)
    await held.lock([folders.first.firmId])
    const locked = await failing(['sync', '--to', to], its.firm)
    expect(locked).toMatchObject({ exit: local, code: 'COPY-LOCKED' })
    await held.close()
    const database = new DatabaseSync(to)
    database.exec(`update journals set journal_name = 'Other' where society_id = 111`)
    database.close()
    const differing = await failing(['verify', '--to', to], its.firm)
    expect(differing).toMatchObject({
      exit: exitCodes.differs,
      code: 'DIFFERS',
      remedy: 'They are equal now.',
    })
    const done = await grandlivre(its.firm, ['verify', '--to', to])
    const stopped = await failing(['folders'], its.company, AbortSignal.abort(new Error('Ctrl-C')))
    expect(stopped).toMatchObject({ exit: exitCodes.interrupted, code: 'INTERRUPTED' })
    for (const code of [locked.exit, differing.exit, done.code, stopped.exit]) seen.add(code)
  })

  test('these tests cover exactly the documented exit codes', () => {
    expect(Object.keys(cases).length).toBeGreaterThan(30)
    expect([...seen].toSorted((one, other) => one - other)).toEqual(Object.values(exitCodes))
  })
})

test('--quiet prints nothing but the error, which is prose without --json', async () => {
  const words = ['pull', '--exercice', '11', '--out', at('new.ndjson'), '--force']
  const loud = await grandlivre(its.company, words)
  expect(loud).toMatchObject({ code: 0, error: expect.stringContaining('Exercice 11,') })
  expect(await grandlivre(its.company, [...words, '--quiet'])).toMatchObject({ code: 0, error: '' })
  its.proxy.fault = (path) => (path.includes('/mad/movements?') ? answer(500, 'ERR-INTERNAL') : undefined)
  const { error } = await grandlivre(its.company, [...words, '--quiet'])
  expect(error).toMatch(/^As a test says \(ERR-INTERNAL\)\nSend `details.requestId` .*\nRequest id: r-1\n$/)
})
