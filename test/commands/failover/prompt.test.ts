/** What is typed at the question of `failover`, in a real terminal. */
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runInTerminal } from '../../../docs/terminal-run.ts'
import { forTests } from '../../support/for-tests.ts'
import { createTenants } from '../../support/ledgers/tenants.ts'
import { environment } from '../../support/process.ts'
import { createTestDatabase } from '../../support/servers/database.ts'
import { testMasterKey } from '../../support/service.ts'

/** Other systems have a program of this name with other options. */
const isScriptThere = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
if (!isScriptThere) console.warn('No tests of the question of failover: script of util-linux is not there')

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))

/** @returns what the terminal shows. @throws {Error} with the exit code and what it shows, if that is not 0 */
async function typed(keys: string): Promise<string> {
  const shown = await runInTerminal({
    command: `exec "${process.execPath}" src/cli.ts failover`,
    columns: 120,
    rows: 24,
    steps: [{ when: 'Go on? Type yes: ', keys }],
    folder: resolve(import.meta.dirname, '../../..'),
    env: {
      ...environment,
      DATA_DIR: tmpdir(),
      DATABASE_URL: database.ownerUrl,
      MASTER_KEY: testMasterKey.toString('hex'),
    },
  })
  return String(shown)
}

/** What every failover changes. */
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
