/** Staff commands that create, list, show and move firms and folders. */
import { expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { request } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(setCallerStage)

const staff = (...words: string[]) => cli(stage.database.ownerUrl, ...words)

/** Runs a command whose output begins with `what` and a new id. @returns that id */
async function made(what: string, ...words: string[]): Promise<string> {
  const { code, out, error } = await staff(...words)
  expect({ code, error }).toEqual({ code: 0, error: '' })
  return new RegExp(`^${what} (\\d+)`).exec(out)![1]!
}

const factsOf = (out: string) => Object.fromEntries(out.split('\n').map((line) => line.split(/ {2,}/)))

async function acts(act: string) {
  return stage.staff.sql(
    'select schema_id, folder_id, details::json as details from audit_rows where act = $1 order by number',
    [act],
  )
}

test('a firm and its folder are created, listed and shown, and the audit records both acts', async () => {
  const firm = await made('Firm', 'firm', 'create', '--name', 'Cabinet  Neuf', '--siret', '732 829 320 00074')
  const named = ['--name', 'Société Neuve', '--reference', 'NEUVE-1']
  const folder = await made('Folder', 'folder', 'create', '--firm', firm, ...named)
  expect((await staff('firm', 'list')).out).toMatch(new RegExp(`^${firm} +Cabinet {2}Neuf +1 `, 'm'))
  const shown = await staff('firm', 'show', firm)
  expect(factsOf(shown.out)).toMatchObject({ firm, 'siret or siren': '73282932000074', folders: '1' })
  expect(shown.out).toMatch(new RegExp(`^${folder} +Société Neuve +NEUVE-1 `, 'm'))
  const listed = await staff('folder', 'list', '--search', 'neuve-1')
  expect(listed.out.split('\n')).toHaveLength(3)
  expect(listed.out).toMatch(new RegExp(`^${folder} .* 0 +0$`, 'm'))
  const facts = await staff('folder', 'show', folder)
  expect(factsOf(facts.out)).toMatchObject({ folder, name: 'Société Neuve', drafts: '0' })
  const [firmAct] = await acts('firm create')
  expect(firmAct.details).toEqual({ firmId: firm })
  expect(await acts('folder create')).toEqual([
    { schema_id: firmAct.schema_id, folder_id: folder, details: { firmId: firm } },
  ])
  const issued = await staff('token', 'issue', '--partner', 'ONE', '--level', 'api', '--folder', folder)
  expect(issued.code).toBe(0)
})

test('a folder shows its size, the last pull of each partner, its tokens and its subscriptions', async () => {
  const { client } = stage.staff
  await request(`${stage.service.url}/api/v1/mad/journals?version=1.0.0`, stage.signed)
  const shown = async () => (await staff('folder', 'show', folders.first.folderId)).out
  await until(async () => /^ONE +\d+ +\S+Z +GET \S+\/journals /m.test(await shown()))
  const text = await shown()
  expect(text).toMatch(/\nTokens that open it:\nID .*\n(.*\n)*?\d+ +ONE +api +folder 111 /)
  expect(text).toMatch(/\nSubscriptions that get its events:\nnone\n/)
  await client.query(
    `insert into grandlivre.subscriptions (id, schema_id, level, firm_id, third_party_id, on_events, start_position)
     select 7001, 100, 'firm', 110, id, '{ledger}', 0 from grandlivre.third_parties where code = 'ONE'`,
  )
  expect(await shown()).toMatch(/\nSubscriptions that get its events:\nID .*\n7001 +ONE +firm /)
  const line = new RegExp(`^${folders.first.folderId} .* \\d+ +1$`, 'm')
  expect((await staff('folder', 'list')).out).toMatch(line)
})

test('a folder that moves is closed to tokens of its former firm and open to those of the new one', async () => {
  const { folderId, firmId } = folders.first
  const other = await made('Firm', 'firm', 'create', '--name', 'Next door', '--beside', firmId)
  const token = /Token: (\S+)/.exec(
    (await staff('token', 'issue', '--partner', 'ONE', '--level', 'firm', '--firm', other)).out,
  )![1]!
  const secret = stage.signed['X-Third-Party-Secret']!
  const statusOf = async (headers: Record<string, string>) =>
    (await request(`${stage.service.url}/api/v1/mad/journals?version=1.0.0`, headers)).status
  const newFirm = { Authorization: `Bearer ${token}`, 'X-Third-Party-Secret': secret, 'society-id': folderId }
  expect(await statusOf(newFirm)).toBe(404)
  const moved = await staff('folder', 'move', folderId, '--firm', other)
  expect(moved).toMatchObject({ code: 0, error: '' })
  expect(moved.out).toBe(
    `Folder ${folderId} is of firm ${other} now. Tokens of firm ${firmId} no longer open it; its own do.\n`,
  )
  expect(await statusOf(newFirm)).toBe(200)
  expect(await statusOf(stage.signed), 'its own token').toBe(200)
  expect((await request(stage.service.url + keyInfo, stage.signed)).status).toBe(200)
  expect(await acts('folder move')).toEqual([
    { schema_id: '100', folder_id: folderId, details: { firmId: other, formerFirmId: firmId } },
  ])
  expect(await staff('folder', 'move', folderId, '--firm', other)).toMatchObject({
    code: 1,
    error: `Folder ${folderId} is of firm ${other} already\n`,
  })
  const rows = await stage.staff.sql('select firm_id from tokens where folder_id = 111')
  expect(new Set(rows.map((row) => row.firm_id))).toEqual(new Set([other]))
})

test.each([
  ['firm create --name A\tB', '--name must be one line of text, without control characters'],
  ['firm create --name A --siret 12345', '--siret must be a SIREN of 9 digits or a SIRET of 14'],
  ['firm create --name A --siret 732829321', '--siret has a wrong digit: its check digit does not fit'],
  ['firm create --name A --siret 000000000', '--siret must be a SIREN of 9 digits or a SIRET of 14'],
  ['firm create --name A --beside 999', 'There is no firm 999: see firm list'],
  ['firm show 999', 'There is no firm 999: see firm list'],
  ['folder create --firm 999 --name A', 'There is no firm 999: see firm list'],
  ['folder list --firm 999', 'There is no firm 999: see firm list'],
  ['folder show 999', 'There is no folder 999: see folder list'],
  ['folder move 999 --firm 110', 'There is no folder 999: see folder list'],
  ['folder move 121 --firm 999', 'There is no firm 999: see firm list'],
  ['folder move 211 --firm 110', 'Firm 110 is in another tenant than folder 211'],
])('%s is refused', async (words, says) => {
  const firms = () => stage.staff.sql('select id from firms')
  const before = await firms()
  const { code, error, out } = await staff(...words.split(' '))
  expect([code, out]).toEqual([1, ''])
  expect(error).toContain(says)
  expect(await firms()).toEqual(before)
})

test('the SIRET of a La Poste office is valid', async () => {
  await made('Firm', 'firm', 'create', '--name', 'La Poste', '--siret', '35600000049837')
})
