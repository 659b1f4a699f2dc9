/** Copies by tokens with and without the group `employees`: each run leaves what its token shows, and proves it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EmployeesStage, mark, setEmployeesStage } from '../../../../test/support/employees/stage.ts'
import { createTestDatabase, type TestDatabase } from '../../../../test/support/servers/database.ts'
import { type LedgerTableName, ledgerTables } from '../../../contract/src/ledger-tables.ts'
import { type Copy, openCopy, type SyncEvent, syncCopy, verifyCopy } from '../../src/sync/sync.ts'
import { accessOf, grandlivre } from '../support/cli/command-line.ts'
import { libraryOf } from '../support/client/library.ts'
import { tablesOf } from '../support/sync/service-rows.ts'

type Headers = Record<string, string>

let stage: EmployeesStage
let target: TestDatabase
let out: string
beforeAll(async () => {
  stage = await setEmployeesStage()
  target = await createTestDatabase({ template: 'template1' })
  out = await mkdtemp(join(tmpdir(), 'grandlivre-employees-'))
})
afterAll(async () => {
  await stage?.close()
  await target?.drop()
  await rm(out, { recursive: true })
})

let copies = 0
async function newCopy(kind: 'SQLite' | 'PostgreSQL'): Promise<Copy> {
  copies += 1
  if (kind === 'SQLite') return openCopy(join(out, `copy-${copies}.sqlite`))
  const url = new URL(target.ownerUrl)
  url.searchParams.set('schema', `copy_${copies}`)
  return openCopy(url.href)
}

async function inRun<Result>(
  copy: Copy,
  headers: Headers,
  use: (run: Parameters<typeof syncCopy>[0]) => Promise<Result>,
) {
  const ledger = libraryOf(headers, stage.service.url)
  const events: SyncEvent[] = []
  try {
    return { result: await use({ copy, ledger, onEvent: (event) => events.push(event) }), events }
  } finally {
    ledger.close()
  }
}
const sync = (copy: Copy, headers: Headers) => inRun(copy, headers, (run) => syncCopy(run))

/** @returns the rows of accounts */
async function expectRowsOf(copy: Copy, headers: Headers): Promise<string> {
  const { folderId } = stage.folder
  const truth = await tablesOf(stage.service.url, headers, folderId)
  for (const table of Object.keys(ledgerTables) as LedgerTableName[]) {
    let text = ''
    for await (const lines of copy.lines(folderId, table)) text += Buffer.from(lines)
    expect([table, text === truth[table]]).toEqual([table, true])
  }
  return truth['accounts']!
}

const level = { ledgers: 1, copied: 0, rows: 0, failed: [] }

describe.each(['SQLite', 'PostgreSQL'] as const)('in %s', (kind) => {
  test('a copy is level and proven for its token; with another it becomes so at its next sync, both ways', async () => {
    const copy = await newCopy(kind)
    expect((await sync(copy, stage.hidden)).result).toMatchObject({ copied: 1 })
    const cursors = new Set<string | null>()
    for (const headers of [stage.hidden, stage.opened, stage.hidden, stage.opened]) {
      const { result, events } = await sync(copy, headers)
      if (cursors.size > 0) {
        expect(result).toMatchObject({ copied: 1, rows: 0, failed: [] })
        expect(events.at(-1)).toMatchObject({ kind: 'copied', entries: [] })
      } else expect(result).toEqual(level)
      expect((await expectRowsOf(copy, headers)).includes(mark)).toBe(headers === stage.opened)
      expect((await sync(copy, headers)).result).toEqual(level)
      const { result: verified } = await inRun(copy, headers, (run) => verifyCopy(run, { repair: false }))
      expect(verified).toMatchObject({ proven: 1, differed: [], unproven: [] })
      cursors.add((await copy.folders())[0]!.cursor)
    }
    expect(cursors.size).toBe(1)
    await copy.close()
  })

  test('verify takes the rows of its own token for right, and nothing else', async () => {
    const copy = await newCopy(kind)
    await sync(copy, stage.opened)
    const society = stage.folder.folderId
    // The note is wrong: the rows are those of the other token.
    await copy.note([society], { employees: 'hidden' })
    const without = await inRun(copy, stage.hidden, (run) => verifyCopy(run, { repair: false }))
    expect(without.result).toMatchObject({ proven: 0, differed: [society] })
    const mended = await inRun(copy, stage.hidden, (run) => verifyCopy(run))
    expect(mended.result).toMatchObject({ proven: 1, differed: [society] })
    expect(await expectRowsOf(copy, stage.hidden)).not.toContain(mark)
    await copy.close()
  })

  test('where the cursor is refused, too: by the digests of the token', async () => {
    const copy = await newCopy(kind)
    await sync(copy, stage.opened)
    const society = stage.folder.folderId
    for (const headers of [stage.opened, stage.hidden, stage.hidden]) {
      await copy.note([society], { cursor: '1.1.AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA', employees: null })
      await sync(copy, headers)
      await expectRowsOf(copy, headers)
      expect((await sync(copy, headers)).result).toEqual(level)
    }
    await copy.close()
  })
})

test('the row of changes and changed_at tell that accounts came otherwise; folders --to that they will', async () => {
  const copy = await newCopy('SQLite')
  await sync(copy, stage.hidden)
  const [before] = await copy.folders()
  const state = async (headers: Headers) => {
    return (await grandlivre(accessOf(stage.service.url, headers), ['folders', '--to', copy.name])).out
  }
  expect(await state(stage.hidden)).toContain('current')
  expect(await state(stage.opened)).toContain('behind')
  await sync(copy, stage.opened)
  const [after] = await copy.folders()
  expect(after).toMatchObject({ cursor: before!.cursor, employees: 'shown' })
  expect(after!.changed_at).not.toBe(before!.changed_at)
  await copy.close()
})
