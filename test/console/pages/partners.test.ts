/** What staff do with partners and tokens in the console, by the forms of its pages. */
import { expect, test } from 'vitest'
import { setConsoleStage, signInStaff } from '../../support/console/console-stage.ts'
import { forTests } from '../../support/for-tests.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { request } from '../../support/service.ts'

const stage = forTests(setConsoleStage)
const staff = forTests(() => signInStaff(stage))

/** The only secret or token on a page. */
function secretIn(text: string): string {
  const found = [...text.matchAll(/glv_(?:secret|api|firm)_[\w-]{43}/g)].map(([secret]) => secret)
  expect(found).toHaveLength(1)
  return found[0]!
}

async function register(code: string, name = 'A partner'): Promise<string> {
  const shown = await staff.submit('/partners', '/partners', { code, name, kind: 'partner' })
  expect(shown.status).toBe(200)
  return secretIn(shown.text)
}

const infoOf = (token: string, secret: string) =>
  request(`${stage.service.url}/api/v1/key/info`, credentials(token, secret))

/** The acts that the audit has of a third party. */
async function acts(code: string): Promise<string[]> {
  const rows = await stage.staff.sql(
    `select act, staff from audit_rows r join third_parties p on p.id = r.third_party_id
     where p.code = $1 and r.details like '%"partner":"' || p.code || '"%' order by number`,
    [code],
  )
  return rows.map(({ act, staff: who }) => `${act} by ${who.split(' as ')[0]}`)
}

test('a partner that staff register reads its folder with the token they issue, until they revoke it', async () => {
  const secret = await register('FRESH')
  const { folderId } = folders.first
  const issued = await staff.submit('/partners/FRESH', '/partners/FRESH/tokens', {
    level: 'api',
    id: folderId,
  })
  expect(issued.headers.get('cache-control')).toBe('no-store')
  const token = secretIn(issued.text)
  expect((await infoOf(token, secret)).status).toBe(200)
  const page = await staff.open('/partners/FRESH')
  expect(page.text).not.toContain(token)
  expect(page.text).not.toContain(secret)
  const id = /\/console\/tokens\/(\d+)\/revoke/.exec(page.text)![1]!
  const revoked = await staff.submit(`/tokens/${id}/revoke`, `/tokens/${id}/revoke`)
  expect(revoked.text).toContain('is revoked: it is refused from now on')
  expect((await infoOf(token, secret)).status).toBe(401)
  expect(await acts('FRESH')).toEqual([
    'partner create by console alice',
    'token issue by console alice',
    'token revoke by console alice',
  ])
  expect((await staff.open(`/tokens/${id}/revoke`)).status).toBe(409)
})

test('a token limited to some groups and a time shows both limits on the pages of its partner and folder', async () => {
  const secret = await register('SOME')
  const form = await staff.formOf('/partners/SOME', '/partners/SOME/tokens')
  const boxes = [
    ['only', 'movements'],
    ['only', 'webhooks'],
  ]
  const fields = [...Object.entries({ ...form, level: 'api', id: '111', expires: '3' }), ...boxes]
  const issued = await stage.ask('/console/partners/SOME/tokens', {
    method: 'POST',
    headers: { Cookie: staff.cookie },
    body: new URLSearchParams(fields),
  })
  const token = secretIn(await issued.text())
  const routes = (await infoOf(token, secret)).body.map(({ path }: { path: string }) => path)
  expect(routes).toContain('/api/v1/webhook')
  expect(routes).not.toContain('/api/v1/mad/accounts')
  for (const page of ['/partners/SOME', '/folders/111'])
    expect((await staff.open(page)).text).toMatch(
      /<td>movements, webhooks<\/td>\s*<td>activated .*<\/td>\s*<td><strong>soon: <\/strong><time/,
    )
  await stage.staff.sql(`update tokens set expires_at = now() where hint = $1`, [token.slice(-4)])
  expect((await staff.open('/partners/SOME')).text).toContain('<td>expired</td>')
  expect((await staff.open('/folders/111')).text).not.toContain('movements, webhooks')
})

test('staff disconnect a partner, connect it again, renew its secrets, and limit it', async () => {
  await register('FORMS')
  const page = '/partners/FORMS'
  const submit = async (act: string, fields: Record<string, string>) =>
    (await staff.submit(`${page}/${act}`, `${page}/${act}`, fields)).text
  expect(await submit('disconnect', { reason: 'Contract ended' })).toContain('<bdi>Contract ended</bdi>')
  const connected = await staff.submit(page, `${page}/reconnect`)
  expect(connected.text).toContain('Third party FORMS is connected')
  const secrets = [await submit('rotate-secret', { keep: '1' }), await submit('rotate-secret', { keep: '0' })]
  expect(secretIn(secrets[0]!)).not.toBe(secretIn(secrets[1]!))
  expect(secrets[0]).toContain('is accepted in requests for 1 more hours')
  expect(secrets[1]).toContain('The previous one is refused')
  const empty = { requests: '', 'window-ms': '', concurrent: '' }
  expect(await submit('limits', { ...empty, requests: '7' })).toContain(
    '<dd>7 requests in RATE_LIMIT_WINDOW_MS',
  )
  expect(await submit('limits', { ...empty, requests: '0' })).toContain('requests must be a whole number')
  expect(await submit('limits', empty)).toContain('<dd>RATE_LIMIT_REQUESTS requests in')
  const done = [
    'create',
    'disconnect',
    'reconnect',
    ...Array(2).fill('rotate-secret'),
    ...Array(2).fill('limits'),
  ]
  expect(await acts('FORMS')).toEqual(done.map((act) => `partner ${act} by console alice`))
})

test('a form that is sent twice takes effect once; a form without its hidden fields changes nothing', async () => {
  await register('TWICE')
  const fields: Record<string, string> = {
    ...(await staff.formOf('/partners/TWICE', '/partners/TWICE/tokens')),
    level: 'api',
    id: '111',
  }
  const answers = [
    await staff.send('/partners/TWICE/tokens', fields),
    await staff.send('/partners/TWICE/tokens', fields),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 409])
  expect(answers[1]!.text).not.toMatch(/glv_api_/)
  const { once: _, ...without } = fields
  expect((await staff.send('/partners/TWICE/tokens', without)).status).toBe(400)
  expect((await staff.send('/partners/TWICE/tokens', { ...fields, once: '', csrf: 'x' })).status).toBe(403)
  expect(await acts('TWICE')).toEqual(['partner create by console alice', 'token issue by console alice'])
})

const forms = {
  register: ['/partners', '/partners'],
  issue: ['/partners/PARTNER', '/partners/PARTNER/tokens'],
  disconnect: ['/partners/PARTNER/disconnect', '/partners/PARTNER/disconnect'],
  rotate: ['/partners/PARTNER/rotate-secret', '/partners/PARTNER/rotate-secret'],
} as const
const partner = { code: 'REFUSED', name: 'N', kind: 'partner' }
const token = { level: 'api', id: '111' }

test.each<[keyof typeof forms, string, number, Record<string, string>]>([
  ['register', 'code takes up to 32', 400, { ...partner, code: 'lower' }],
  ['register', 'name must not be empty', 400, { ...partner, name: '' }],
  ['register', 'must be one line', 400, { ...partner, name: 'a\nb' }],
  ['register', 'at most 500', 400, { ...partner, name: 'x'.repeat(501) }],
  ['register', 'must be one of', 400, { ...partner, kind: 'other' }],
  ['register', 'choose another code', 409, { ...partner, code: 'PARTNER' }],
  ['issue', 'must be an id', 400, { ...token, id: 'x' }],
  ['issue', 'no folder 110', 404, { ...token, id: '110' }],
  ['issue', 'no firm 111', 404, { ...token, level: 'firm' }],
  ['issue', 'level must be', 400, { ...token, level: '' }],
  ['issue', 'only must be some of these', 400, { ...token, only: 'movements,none' }],
  ['issue', 'expires must be 1 to 1825 days', 400, { ...token, expires: 'x' }],
  ['disconnect', 'must not be empty', 400, { reason: '  ' }],
  ['rotate', 'whole number', 400, { keep: '-1' }],
])('the form sent to %s refuses a wrong field: %s', async (form, says, status, fields) => {
  const [page, action] = forms[form]
  const shown = await staff.submit(page, action, fields)
  expect([shown.status, shown.text.includes(says), /glv_/.test(shown.text)]).toEqual([status, true, false])
})

test.each([
  '/partners/NOBODY',
  '/partners/%3Cb%3E',
  '/partners/%00',
  '/tokens/999/revoke',
  '/tokens/x/revoke',
])('the page %s is not found', async (path) => {
  const { status, text } = await staff.open(path)
  expect([status, text.includes('<b>')]).toEqual([404, false])
})

test.each<readonly [string, string]>([
  ['/partners/NOBODY/reconnect', 'There is no third party NOBODY<'],
  ['/tokens/999/revoke', 'There is no token 999 in use<'],
  ['/exports/export_none/cancel', 'There is no export export_none<'],
  ...[
    ...[
      '/partners/%00/disconnect',
      '/partners/a%00/reconnect',
      '/partners/%00/rotate-secret',
      '/partners/%00/tokens',
    ],
    ...['/exports/%00/cancel', '/exports/x/cancel', '/tokens/x/revoke', '/subscriptions/x/enable'],
    ...['/subscriptions/0/disable', '/subscriptions/x/replay'],
  ].map((path) => [path, 'There is no such page.<'] as const),
])('a form sent to %s is 404, and the answer names no command: %s', async (path, says) => {
  const form = await staff.formOf('/partners', '/partners')
  const { status, text } = await staff.send(path, { ...form, reason: 'r' })
  expect([status, text.includes(says)]).toEqual([404, true])
})

test('partners are found by part of their code or name, and listed page by page', async () => {
  await stage.staff.sql(`insert into third_parties (id, code, name, kind)
    select 700000 + i, 'LIST' || lpad(i::text, 3, '0'), 'Number ' || i, 'customer' from generate_series(1, 60) i`)
  const first = await staff.open('/partners?search=list')
  expect(first.text).toContain('LIST050')
  expect(first.text).not.toContain('LIST051')
  const second = await staff.next(first)
  expect(second.text).toContain('LIST051')
  expect(second.text).not.toContain('LIST050')
  expect(second.text).not.toContain('rel="next"')
  expect((await staff.open('/partners?search=number+37')).text).toContain('LIST037')
})

test('hostile names are shown as text', async () => {
  const name = `<script>alert(1)</script> "quoted" 'single' & \u202egnp.exe ${'x'.repeat(400)}`
  await register('HOSTILE', name)
  for (const path of ['/partners/HOSTILE', '/partners?search=HOSTILE', '/partners/HOSTILE/disconnect']) {
    const { text } = await staff.open(path)
    expect(text, path).not.toContain('<script>alert')
    expect(text, path).toContain('&lt;script&gt;alert(1)&lt;/script&gt; &quot;quoted&quot;')
    expect(text, path).not.toContain('\u202e')
  }
})
