/** `login`, `doctor` and `profiles` as their users meet them. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { forTests } from '../../../../test/support/for-tests.ts'
import { folderReference, setExportStage } from '../../../../test/support/stages/export-stage.ts'
import { accessOf, grandlivre, jsonLines, logIn, writeCredentials } from '../support/cli/command-line.ts'

const stage = forTests(setExportStage)
let home: string
let company: Record<string, string>
let firm: Record<string, string>
beforeAll(() => {
  company = accessOf(stage.service.url, stage.company)
  firm = accessOf(stage.service.url, stage.firm)
})
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'grandlivre-login-'))
  return () => rmSync(home, { recursive: true })
})

const file = () => join(home, '.config/grandlivre/access.json')
const folder = `111  Folder 111 (${folderReference})`

test('login checks the credentials before it saves them, and doctor can read them', async () => {
  const { GRANDLIVRE_URL: url, GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret } = company
  const done = await logIn({ HOME: home }, company)
  expect(done).toMatchObject({ code: 0, error: 'Access token (not shown): \nPartner secret (not shown): \n' })
  expect(done.out).toContain(`Folder:  ${folder}`)
  expect(done.out).toContain(`Kept in ${file()}`)
  expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({ baseUrl: url, token, secret })
  const seen = await grandlivre({ HOME: home }, ['doctor'])
  expect(seen).toMatchObject({ code: 0, error: '' })
  expect(seen.out).toContain(
    'token: of a company; movements, exports, webhooks, resources, employees; without end',
  )
  expect(seen.out).toContain(`access: from ${file()}`)
  expect(seen.out + done.out).not.toContain(token)
})

test('login accepts the credentials of the demo, and warns that the environment takes precedence', async () => {
  const credentials = join(home, 'credentials.json')
  writeCredentials(credentials, company, firm)
  const done = await grandlivre({ HOME: home, ...company }, ['login', '--from', credentials])
  expect(done.code).toBe(0)
  expect(done.error).toContain('of this environment win over the file')
  expect(JSON.parse(readFileSync(file(), 'utf8')).token).toBe(company['GRANDLIVRE_TOKEN'])
  // --society takes the token of the firm.
  await grandlivre({ HOME: home }, ['login', '--from', credentials, '--society', '112', '--replace'])
  expect(JSON.parse(readFileSync(file(), 'utf8'))).toMatchObject({
    token: firm['GRANDLIVRE_TOKEN'],
    society: '112',
  })
  await grandlivre({ HOME: home }, ['login', '--from', credentials, '--firm'])
  const whole = JSON.parse(readFileSync(file(), 'utf8'))
  expect([whole.token, whole.society]).toEqual([firm['GRANDLIVRE_TOKEN'], undefined])
  const alone = await grandlivre({ HOME: home }, ['login', '--firm'])
  expect([alone.code, alone.error]).toEqual([2, expect.stringMatching(/^--firm chooses a token of --from/)])
})

test('a wrong address is refused and quoted as typed, before token and secret are asked for', async () => {
  const is = 'is not an address such as'
  const url = await grandlivre({ HOME: home }, ['login', '--url', 'ledger.example'], { input: 'a\nb\n' })
  expect(url).toMatchObject({ code: 2, error: expect.stringMatching(new RegExp(`^--url ${is}`)) })
  const variable = await grandlivre({ ...company, GRANDLIVRE_URL: 'x' }, ['folders'])
  expect(variable).toMatchObject({
    code: 2,
    error: expect.stringMatching(new RegExp(`^GRANDLIVRE_URL ${is}`)),
  })
  const from = join(home, 'credentials.json')
  writeCredentials(from, { ...company, GRANDLIVRE_URL: 'x' })
  const read = await grandlivre({ HOME: home }, ['login', '--from', from])
  expect(read).toMatchObject({ code: 2, error: expect.stringContaining(`baseUrl in ${from} ${is}`) })
})

test('--from replaces a saved login of the same demo without asking, but no login of another service', async () => {
  const from = join(home, 'credentials.json')
  writeCredentials(from, company, firm)
  await logIn({ HOME: home }, firm)
  expect(await grandlivre({ HOME: home }, ['login', '--from', from])).toMatchObject({ code: 0 })
  writeCredentials(from, { ...company, GRANDLIVRE_URL: 'http://127.0.0.1:1' })
  const { code, error } = await grandlivre({ HOME: home }, ['login', '--from', from])
  expect([code, error]).toEqual([7, expect.stringContaining('The profile default holds another access')])
})

test('a token that the service refuses is not saved, and the error says what to do', async () => {
  const refused = await logIn({ HOME: home }, { ...company, GRANDLIVRE_TOKEN: 'glv_api_wrong' })
  expect(refused).toMatchObject({ code: 4, out: '' })
  expect(refused.error).toMatch(
    /\nThe access token is not known, .*\(ERR-API-TOKEN-NOT-FOUND\)\nCheck that token and secret belong together\..*\nRequest id: .+\n$/s,
  )
  expect(() => readFileSync(file())).toThrow(expect.objectContaining({ code: 'ENOENT' }))
})

describe('a firm token', () => {
  test('without a folder: the command folders lists all, and pull explains how to choose one', async () => {
    const listed = await grandlivre(firm, ['folders'])
    expect(listed.out).toMatch(/^id +name +reference +cursor\n111 +Folder 111 .*\n112 +Folder 112 .*\n$/)
    const pulled = await grandlivre(firm, ['pull', '--exercice', '11', '--out', join(home, 'a.ndjson')])
    expect(pulled.code).toBe(2)
    expect(pulled.error).toContain(`The token opens several folders\n  ${folder}\n`)
    expect(pulled.error).toContain('or give --society <id> to a command')
  })

  test('with a folder from an option or the environment: doctor names the folder', async () => {
    expect((await grandlivre(firm, ['doctor', '--society', '112'])).out).toContain('folder: 112  Folder 112')
    const { out } = await grandlivre({ ...firm, GRANDLIVRE_SOCIETY: '111' }, ['doctor'])
    expect(out).toContain(`folder: ${folder}`)
  })

  test('with a folder of another firm: doctor lists the folders that the token opens', async () => {
    const { code, out } = await grandlivre(firm, ['doctor', '--society', '121'])
    expect(code).toBe(4)
    expect(out).toMatch(/^FAULT {2}token: The token does not open the folder 121\n +It opens:\n +111 /m)
  })
})

test('several profiles can be saved, and one is overwritten only on request', async () => {
  const run = (...all: string[]) => grandlivre({ HOME: home }, all)
  await logIn({ HOME: home }, company)
  expect((await logIn({ HOME: home }, firm, '--profile', 'firm')).out).toContain(`${file()}, profile firm`)
  expect((await run('doctor')).out).toContain('token: of a company')
  expect((await run('doctor', '--profile', 'firm')).out).toContain('token: of a firm')
  // --profile wins over the environment.
  const { out } = await grandlivre({ HOME: home, ...company }, ['doctor', '--profile', 'firm'])
  expect(out).toContain('token: of a firm')
  const before = readFileSync(file(), 'utf8')
  const refused = await logIn({ HOME: home }, firm)
  expect(refused).toMatchObject({
    code: 7,
    error: expect.stringContaining('The profile default holds another access'),
  })
  expect(readFileSync(file(), 'utf8')).toBe(before)
  expect((await logIn({ HOME: home }, company, '--profile', 'firm', '--replace')).code).toBe(0)
  expect((await run('doctor', '--profile', 'firm')).out).toContain('token: of a company')
  const unknown = await run('folders', '--profile', 'other')
  expect(unknown.error).toContain('has no profile other\nIt has: default, firm\n')
})

test('`profiles` lists the profiles without their secrets, and removes the named one', async () => {
  const run = (...all: string[]) => grandlivre({ HOME: home }, all)
  await logIn({ HOME: home }, company)
  await logIn({ HOME: home }, firm, '--profile', 'firm', '--society', '112')
  const { GRANDLIVRE_URL: url, GRANDLIVRE_SECRET: secret } = company
  const listed = await run('profiles')
  expect(listed).toEqual({
    code: 0,
    out: expect.stringMatching(
      /^profile +address +level +folder\ndefault +http.* +company\nfirm +http.* +firm +112\n$/,
    ),
    error: '',
  })
  const { out: lines } = await run('profiles', '--json')
  expect(jsonLines(lines)).toEqual([
    { profile: 'default', baseUrl: url, level: 'company', society: null },
    { profile: 'firm', baseUrl: url, level: 'firm', society: '112' },
  ])
  for (const hidden of [secret, company['GRANDLIVRE_TOKEN'], firm['GRANDLIVRE_TOKEN']])
    expect(listed.out + lines).not.toContain(hidden)
  expect((await run('profiles', 'remove', 'default')).out).toBe(`Removed profile default from ${file()}\n`)
  expect((await run('folders')).error).toContain('has no profile default')
  expect((await run('doctor', '--profile', 'firm')).code).toBe(0)
})
