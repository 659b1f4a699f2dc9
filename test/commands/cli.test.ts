import { beforeAll, describe, expect, test } from 'vitest'
import { type CommandResult, cli as commandLine, startCli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, credentials } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { request, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const service = forTests(() => startTestService(database))

const cli = (...words: string[]) => commandLine(database.ownerUrl, ...words)

function shown({ out }: CommandResult): string {
  return /^(?:Secret|Token): (\S+)$/m.exec(out)![1]!
}

function keyInfo(headers: Record<string, string>) {
  return request(`${service.url}/api/v1/key/info?mode=extended`, headers)
}

describe('a token', () => {
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)
  const issue = (...limits: string[]) =>
    cli('token', 'issue', '--partner', 'ENDING', '--level', 'api', '--folder', '111', ...limits)
  const lineOf = async (token: string) =>
    (await cli('token', 'list')).out.split('\n').find((text) => text.includes(token.slice(-4)))!

  test('takes groups and an end date; the list shows both, and marks an end within 14 days', async () => {
    const secret = await staff.thirdParty('ENDING')
    const day = inDays(400).toISOString().slice(0, 10)
    const far = await issue('--only', 'movements, resources,movements', '--expires', day)
    expect(far.out).toContain(`of ENDING, for movements, resources, until ${day}T00:00:00.000Z.`)
    expect(await lineOf(shown(far))).toMatch(
      new RegExp(`movements, resources +not yet used +${day}T00:00:00Z `),
    )
    const { routes } = (await keyInfo(credentials(shown(far), secret))).body
    const paths = routes.map(({ path }: { path: string }) => path)
    expect(paths).toContain('/api/v1/mad/movements')
    expect(paths).not.toContain('/api/v1/mad/all')
    const near = await issue('--expires', '14')
    expect(near.out).toMatch(/ for everything, until /)
    expect(await lineOf(shown(near))).toMatch(/everything +not yet used +soon: /)
    await staff.client.query('update grandlivre.tokens set expires_at = now() where hint = $1', [
      shown(near).slice(-4),
    ])
    expect(await lineOf(shown(near))).toMatch(/everything +expired +\d{4}-/)
    const not = await issue('--expires', '15')
    expect(await lineOf(shown(not))).not.toContain('soon')
  })

  test.each([
    ['--only', ' ', 'must be some of these, with commas between them: movements, exports,'],
    ['--only', 'movements,', 'must be some of these'],
    ['--only', 'movements,everything', 'must be some of these'],
    ['--only', 'Movements', 'must be some of these'],
    ['--expires', ' ', 'must be 1 to 1825 days, or a later day or moment'],
    ['--expires', '0', 'must be 1 to 1825 days'],
    ['--expires', '-1', 'must be 1 to 1825 days'],
    ['--expires', '1826', 'must be 1 to 1825 days'],
    ['--expires', '2.5', 'must be 1 to 1825 days'],
    ['--expires', '2020-01-31', 'must be 1 to 1825 days'],
    ['--expires', '2031-02-30', 'must be 1 to 1825 days'],
    ['--expires', '2031-01-31T08:00', 'must be 1 to 1825 days'],
    ['--expires', '9999-12-31T23:30:00-01:00', 'must be 1 to 1825 days'],
    ['--expires', '10000-01-01', 'must be 1 to 1825 days'],
    ['--expires', 'tomorrow', 'must be 1 to 1825 days'],
  ])('is refused with %s %j', async (option, value, message) => {
    const { code, out, error } = await issue(`${option}=${value}`)
    expect([code, out]).toEqual([1, ''])
    expect(error.startsWith(`${option} ${message}`)).toBe(true)
  })
})

describe('a partner', () => {
  test('is created, and its tokens work until they are revoked', async () => {
    const created = await cli('partner', 'create', '--code', 'ACME', '--name', 'Acme & Söhne')
    expect(created).toMatchObject({ code: 0, error: '' })
    expect(created.out).toContain('shown only once')
    const secret = shown(created)
    expect(secret).toMatch(/^glv_secret_[\w-]{43}$/)

    const issued = await cli('token', 'issue', '--partner', 'ACME', '--level', 'api', '--folder', '111')
    expect(issued.out).toContain('shown only once')
    expect(shown(issued)).toMatch(/^glv_api_[\w-]{43}$/)
    const firm = shown(await cli('token', 'issue', '--partner', 'ACME', '--level', 'firm', '--firm', '110'))
    expect(firm).toMatch(/^glv_firm_[\w-]{43}$/)
    const company = credentials(shown(issued), secret)
    expect((await keyInfo(company)).body.target).toMatchObject({ type: 'api', schemaId: 100, societyId: 111 })
    expect((await keyInfo(credentials(firm, secret))).body.target).toMatchObject({
      type: 'firm',
      societyId: 110,
    })

    const list = (await cli('token', 'list')).out
    const line = list.split('\n').find((text) => text.includes(shown(issued).slice(-4)))!
    expect(line).toMatch(/ACME +api +folder 111 .* activated /)
    for (const text of [secret, shown(issued), firm]) {
      expect(list).not.toContain(text)
      expect((await cli('partner', 'list')).out).not.toContain(text)
    }

    const id = line.split(' ')[0]!
    expect(await cli('token', 'revoke', id)).toEqual({
      code: 0,
      out: `Token ${id} of ACME is revoked: it is refused from now on.\n`,
      error: '',
    })
    expect((await keyInfo(company)).body.error.code).toBe('ERR-API-TOKEN-NOT-FOUND')
    expect((await keyInfo(credentials(firm, secret))).status).toBe(200)
    expect(await cli('token', 'revoke', id)).toMatchObject({
      code: 1,
      error: expect.stringContaining('token list'),
    })
  })

  test('is disconnected with a reason, and connected again', async () => {
    const secret = shown(await cli('partner', 'create', '--code', 'GO', '--name', 'Go', '--kind', 'customer'))
    const token = shown(await cli('token', 'issue', '--partner', 'GO', '--level', 'api', '--folder', '111'))
    expect((await cli('partner', 'disconnect', '--code', 'GO', '--reason', 'unpaid bills')).code).toBe(0)
    const { status, body } = await keyInfo(credentials(token, secret))
    expect([status, body.error.message]).toEqual([403, expect.stringContaining('unpaid bills')])
    expect((await cli('partner', 'list')).out).toMatch(/GO +customer +disconnected: unpaid bills/)
    expect((await cli('partner', 'reconnect', '--code', 'GO')).code).toBe(0)
    expect((await keyInfo(credentials(token, secret))).status).toBe(200)
  })
})

test('maintenance can be switched on and off', async () => {
  const secret = await staff.thirdParty('MAINTAINED')
  const token = await staff.token('MAINTAINED', 'api', { schemaId: '100', firmId: '110', folderId: '111' })
  expect((await cli('maintenance', 'on')).out).toBe('Maintenance is on.\n')
  expect((await keyInfo(credentials(token, secret))).body.error.code).toBe('ERR-API-UNDER-MAINTENANCE')
  expect((await cli('maintenance', 'off')).code).toBe(0)
  expect((await keyInfo(credentials(token, secret))).status).toBe(200)
})

test('the process ends with the exit code of its command, and writes results to stdout and errors to stderr', async () => {
  // One after the other: both migrate, so if they ran at once, one might print that it waits.
  const done = await startCli(database.ownerUrl, 'migrate').ended
  const mistaken = await startCli(database.ownerUrl, 'token', 'revoke', '5').ended
  expect(done).toEqual({ code: 0, out: expect.stringContaining('at version'), error: '' })
  expect(mistaken).toEqual({ code: 1, out: '', error: 'There is no token 5 in use: see token list\n' })
})

test('migrate prints the version of the database', async () => {
  expect((await cli('migrate')).out).toMatch(/^The database is at version \d+, that of this code\.\n$/)
})

test('Ctrl-C interrupts a command that waits for another migration', async () => {
  await staff.client.query('begin; select pg_advisory_lock(7301001)')
  try {
    const { child, ended } = startCli(database.ownerUrl, 'migrate')
    await until(async () => {
      const waiting = `select from pg_locks where locktype = 'advisory' and objid = 7301001 and not granted
        and database = (select oid from pg_database where datname = current_database())`
      return (await staff.client.query(waiting)).rows.length > 0
    })
    child.kill('SIGINT')
    expect((await ended).code).toBe(130)
  } finally {
    await staff.client.query('rollback; select pg_advisory_unlock(7301001)')
  }
})

describe('a mistake prints one line that says what to do, and exits with 1', () => {
  const long = 'x'.repeat(501)
  const taken = /^There is a third party TAKEN already: choose another code$/
  beforeAll(() => staff.thirdParty('TAKEN'))

  test.each<[words: string, message: RegExp]>([
    ['partner create --code acme --name x', /^--code takes up to 32 of/],
    ['partner create --code TAKEN --name x', taken],
    ['partner create --code LINES --name a\nb', /^--name must be one line of text/],
    ['partner create --name x', /^--code <code> is missing: /],
    [`partner create --code LONG --name ${long}`, /^--name takes at most 500 characters, not 501/],
    ['partner disconnect --code TAKEN --reason x\x1b[31m', /^--reason must be one line of text/],
    ['partner disconnect --code TAKEN --reason \t', /^--reason must not be empty/],
    ['partner disconnect --code NO --reason x', /no third party NO: see/],
    ['partner reconnect --code NO', /no third party NO: see/],
    ['seed --movements 10 --folder-reference a\nb', /--folder-reference must be one line of text/],
    [`import fec ledger.txt --name ${long}`, /--name takes at most 500 characters, not 501/],
    [`export cancel export_x --reason ${long}`, /^--reason takes at most 500 characters, not 501/],
    ['export cancel 7', /^<id> must be an id of an export/],
    ['token issue --partner NO --level api --folder 111', /no third party NO: see partner list/],
    ['token issue --partner no --level api --folder 111', /^--partner takes up to 32 of/],
    ['token issue --partner NO --level api --folder 999', /no folder 999/],
    ['token issue --partner NO --level firm --firm 111', /no firm 111/],
    ['token issue --partner NO --level api --firm 110', /takes --folder/],
    ['token issue --partner NO --level firm --firm 110 --folder 111', /takes --firm <id> and no other scope/],
    ['token revoke 9007199254740992', /There is no token 9007199254740992 in use/],
    ['token revoke', /^<id> is missing: as token list shows it$/],
    ['token list --al', /^There is no option --al$/],
    ['token isue', /^There is no command "token isue"; is "token issue" meant\?$/],
    ['nonsense', /^There is no command "nonsense"; npm run cli -- --help lists all$/],
    ['event replay --subscription 1 --from 2999-01-01', /^--from must be before to/],
  ])('%s', async (words, message) => {
    const { code, out, error } = await cli(...words.split(' '))
    expect([code, out]).toEqual([1, ''])
    const [line, ...hints] = error.trimEnd().split('\n')
    expect(line).toMatch(message)
    expect(hints.filter((hint) => !/^npm run cli -- help [a-z -]+ shows its options\.$/.test(hint))).toEqual(
      [],
    )
  })

  test.each([
    ['token revoke first', '<id> takes an id'],
    ['token revoke 11111111111111111', '<id> takes an id'],
    ['export list --folder 0', '--folder takes an id'],
    ['webhook attempts 1 -', '<delivery> takes an id'],
    ['audit list --most 0', '--most takes a number from 1 to 999999'],
    ['maintenance perhaps', '<state> takes on, off'],
    ['console key create --name -x', '--name has no value'],
    ['console key create --name=-x', '--name takes 1 to 64 letters'],
    ['partner rotate-secret --code NO --keep long', '--keep takes a number of hours from 0 to 9999'],
    ['partner limits NO --concurrent 0', '--concurrent takes a number from 1 to'],
    ['event replay --subscription 5 --from yesterday', '--from takes a day'],
    ['event replay --subscription 5 --from 2026-01-31T08:00', '--from takes a day'],
  ])('a wrong value is reported with the name of its option or argument: %s', async (words, message) => {
    const { code, out, error } = await cli(...words.split(' '))
    expect([code, out, error.startsWith(message)]).toEqual([1, '', true])
    expect(error).toContain(words.split(/[ =]/).at(-1)!)
    expect(error).toMatch(/\nnpm run cli -- help [a-z -]+ shows its options\.\n$/)
  })
})
