/** Texts of partners, receivers and files reach terminals of staff only in escaped form. */
import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { cli, cliInTerminal, isScriptThere } from '../support/cli.ts'
import { expectHarmless, hostile } from '../support/fixtures/hostile-names.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'

const exportId = `export_${randomBytes(16).toString('hex')}`

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
beforeAll(async () => {
  await staff.thirdParty('HOSTILE')
  await staff.token('HOSTILE', 'api', folders.first)
  const sql = (text: string, ...values: unknown[]) => staff.sql(text, values)
  await sql(`update third_parties set name = $1, disconnected_at = now(), disconnected_reason = $1`, hostile)
  await sql(`update folders set name = $1, reference = $1`, hostile)
  await sql(
    `insert into subscriptions (id, schema_id, level, firm_id, third_party_id, post_url, on_events, folder_ids,
       start_position, enabled, disabled_at, disabled_reason)
     select 5, 100, 'api', 110, id, $1, array[$1], '{111}', 0, false, now(), $1 from third_parties`,
    hostile,
  )
  await sql(
    `insert into deliveries (schema_id, id, subscription_id, first_event, last_event, events, body, state, finished_at,
       attempts)
     values (100, 6, 5, 1, 1, 1, '', 'failed', now(), 1)`,
  )
  await sql(
    `insert into delivery_attempts (schema_id, delivery_id, number, at, latency_ms, answer, error)
     values (100, 6, 1, now(), 1, $1, $2)`,
    Buffer.from(hostile),
    hostile,
  )
  await sql(
    `insert into events (schema_id, folder_id, name, operation, scope, data)
     values (100, 111, $1, 'CREATE', '{}', $2)`,
    hostile,
    `{"id":"\u009b2J\u202e\x7f"}`,
  )
  await sql(
    `insert into exports (schema_id, id, folder_id, version, format, identity, request_id, state, finished_at, reason, notes)
     values (100, $1, 111, '1.0.0', 'JSON', $2, $3, 'failed', now(), $3, $4)`,
    exportId,
    '0'.repeat(64),
    hostile,
    JSON.stringify({ [hostile]: 1 }),
  )
  await sql(`insert into console_keys (name, key_hash) values ($1, $2)`, hostile, Buffer.alloc(32))
  const row = { act: hostile, details: JSON.stringify({ name: hostile }), outcome: hostile, code: hostile }
  await sql(`select append_audit($1, $2)`, JSON.stringify([row]), hostile)
})

const commands = [
  ['partner', 'list'],
  ['token', 'list'],
  ['webhook', 'list'],
  ['webhook', 'show', '5'],
  ['webhook', 'deliveries', '5'],
  ['webhook', 'attempts', '5', '6'],
  ['event', 'list', '--schema', '100'],
  ['export', 'list'],
  ['export', 'show', exportId],
  ['audit', 'list'],
  ['console', 'key', 'list'],
]
test.each(commands)(
  'the command %s %s shows texts of others without their control characters',
  async (...command) => {
    const { code, out, error } = await cli(database.ownerUrl, ...command)
    expect([code, error]).toEqual([0, ''])
    expect(out).toMatch(/\\x1b\[31m|\\x9b2J/)
    expectHarmless(out)
  },
)

test.each([
  ['of a command', ['export', 'show', hostile]],
  ['of an option that is none', ['token', 'list', `--${hostile}`]],
  ['of a value that is refused', ['token', 'revoke', hostile]],
])('an error %s shows texts of others without their control characters', async (_, command) => {
  const { code, out, error } = await cli(database.ownerUrl, ...command)
  expect([code, out]).toEqual([1, ''])
  expect(error).toContain('\\x1b[31m')
  expectHarmless(error.replaceAll('\nWhole:', ''))
})

test.skipIf(!isScriptThere)(
  'a real terminal gets texts of others without their control characters',
  async () => {
    const bytes = await cliInTerminal(database.ownerUrl, 'webhook show 5')
    const text = bytes.replaceAll('\r\n', '\n')
    expect(text).toContain('\\x1b[31m')
    expectHarmless(text)
  },
)
