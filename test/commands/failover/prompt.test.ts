/** Answers typed to the question of `failover`, in a real terminal. */
import { describe, expect, test } from 'vitest'
import { cliInTerminal, isScriptThere } from '../../support/cli.ts'
import { forTests } from '../../support/for-tests.ts'
import { createTenants } from '../../support/ledgers/tenants.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

if (!isScriptThere) console.warn('No tests of the question of failover: script of util-linux is not there')

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))

const typed = (keys: string) =>
  cliInTerminal(database.ownerUrl, 'failover', { when: 'Go on? Type yes: ', keys })

/** Values that every failover changes. */
async function stateOfDatabase(): Promise<unknown> {
  const [state] = await staff.sql(
    `select (select last_value from epoch) as epoch, (select count from audit_head) as acts,
       (select array_agg(last_value order by sequencename) from pg_sequences where schemaname = 'grandlivre') as last`,
  )
  return state
}

describe.skipIf(!isScriptThere)('failover asks, and', () => {
  test.each([
    ['no', 'no\r'],
    ['an empty line', '\r'],
    ['Ctrl-D', '\x04'],
    ['Ctrl-C', '\x03'],
    ['Ctrl-C after yes', 'yes\x03'],
  ])('changes nothing if the answer is %s', async (_, keys) => {
    const before = await stateOfDatabase()
    await expect(typed(keys)).rejects.toThrow(/ended with code 1:[\s\S]*Nothing was changed\r\n$/)
    expect(await stateOfDatabase()).toEqual(before)
  })

  test('begins a new epoch if the answer is yes', async () => {
    expect(await typed('yes\r')).toMatch(
      /Partners compare their ledgers by digests[\s\S]*The epoch is \d+ now; before it was 1\./,
    )
    expect(await stateOfDatabase()).not.toMatchObject({ epoch: '1' })
  })
})
