/** Two folders of a firm at the real service, behind a proxy that spoils answers, and places for copies of them. */
import { afterEach, beforeEach } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { openCopy, type SyncEvent, syncCopy } from '../../../src/sync/sync.ts'
import { setLedgersStage, twoFolders } from '../client/ledgers-stage.ts'
import { libraryOf } from '../client/library.ts'
import { expectRows, setCopyPlaces } from './copies.ts'
import type { CopyKind } from './rows.ts'

export const [firstFolder, secondFolder] = twoFolders

/** The stage for all tests of a file. Copies are closed after each test. */
export function syncStageForTests() {
  const stage = forTests(setSyncStage)
  beforeEach(() => {
    stage.proxy.fault = () => undefined
    stage.proxy.asked.length = 0
  })
  afterEach(() => stage.endRuns())
  return stage
}

async function setSyncStage() {
  const stage = await setLedgersStage(6_000)
  const { proxy, change } = stage
  const places = await setCopyPlaces()
  const open: (() => Promise<void>)[] = []
  let counted = 0
  const own = {
    ...{ proxy, change, firm: stage.firm, company: stage.company },
    newAddress: places.newAddress,
    /** Another number at each call. */
    count: () => {
      counted += 1
      return counted
    },
    rename: (id: string, to: string) =>
      change(
        `update movements set description = '${to}' where schema_id = 100 and folder_id = 111 and id = ${id}`,
      ),
    /** Moves the second folder to another firm while `run` runs. */
    async whileGone(run: () => Promise<void>): Promise<void> {
      await change(`update folders set firm_id = 120 where id = ${secondFolder}`)
      try {
        await run()
      } finally {
        await change(`update folders set firm_id = 110 where id = ${secondFolder}`)
      }
    },
    askedFor: () => proxy.asked.map(({ method, path }) => `${method} ${path.replace(/\?.*/, '')}`),
    /** A run of a copy, with its events. */
    async open(address: string, headers = stage.firm, locked?: Set<string>) {
      const events: SyncEvent[] = []
      const copy = await openCopy(address, { locked })
      const ledger = libraryOf(headers, proxy.url)
      const end = async () => {
        await copy.close()
        ledger.close()
      }
      open.push(end)
      return {
        ...{ copy, ledger, events },
        onEvent: (event: SyncEvent) => events.push(event),
        kinds: () =>
          events.map(({ kind }) => kind).filter((kind) => !['rows', 'listed', 'compared'].includes(kind)),
        async expectTheLedgers(societies: readonly string[] = twoFolders): Promise<void> {
          await expectRows(copy, { url: stage.url, caller: stage.firm }, societies)
        },
      }
    },
    /** A run of a new copy, which has both ledgers. */
    async copied(kind: CopyKind) {
      const run = await own.open(places.newAddress(kind))
      await syncCopy(run)
      return run
    },
    async endRuns(): Promise<void> {
      for (const end of open.splice(0)) await end()
    },
    async close(): Promise<void> {
      await stage.close()
      await places.close()
    },
  }
  return own
}
