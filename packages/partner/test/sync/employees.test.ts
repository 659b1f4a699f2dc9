/** Copies by tokens with and without the group `employees`: each run leaves the rows that its token shows. */
import { describe, expect, test } from 'vitest'
import { mark, setEmployeesStage } from '../../../../test/support/employees/stage.ts'
import { forTests } from '../../../../test/support/for-tests.ts'
import { type Copy, openCopy, type SyncEvent, syncCopy, verifyCopy } from '../../src/sync/sync.ts'
import { accessOf, grandlivre } from '../support/cli/command-line.ts'
import { libraryOf } from '../support/client/library.ts'
import { expectRows, setCopyPlaces } from '../support/sync/copies.ts'
import { type CopyKind, copyKinds, linesIn } from '../support/sync/rows.ts'

type Headers = Record<string, string>

const stage = forTests(setEmployeesStage)
const places = forTests(setCopyPlaces)
const newCopy = (kind: CopyKind): Promise<Copy> => openCopy(places.newAddress(kind))

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
async function expectRowsOf(copy: Copy, caller: Headers): Promise<string> {
  const { folderId } = stage.folder
  await expectRows(copy, { url: stage.service.url, caller }, [folderId])
  return String(await linesIn(copy, folderId, 'accounts'))
}

const level = { ledgers: 1, copied: 0, rows: 0, failed: [] }

describe.each(copyKinds)('in %s', (kind) => {
  test('each sync completes a copy for its token, and verify proves it, also after a change of token', async () => {
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

  test('verify proves exactly the rows that its own token sees', async () => {
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

  test('a copy whose cursor is refused is repaired by the digests that its token sees', async () => {
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

test('`changes` and changed_at show that accounts were replaced, and `folders --to` that they will be', async () => {
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
