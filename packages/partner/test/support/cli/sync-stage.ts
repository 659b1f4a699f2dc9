/** A service with a small ledger of two exercices, and copies of it in each kind of target. */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fillRandomLedger, type RandomLedger } from '../../../../../test/support/changes/random-ledger.ts'
import {
  createTenants,
  credentials,
  folders,
  type Staff,
} from '../../../../../test/support/ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../../../../../test/support/servers/database.ts'
import { startTestService, type TestService } from '../../../../../test/support/service.ts'
import { bringUpToDate, type Step } from '../../../src/cli/sync/bring-up-to-date.ts'
import type { Copying } from '../../../src/cli/sync/folder.ts'
import { type Folder, readChanges } from '../../../src/cli/sync/folder.ts'
import { targetPlace } from '../../../src/cli/sync/open-copy.ts'
import { everyEntry, type Part, partName, type Target } from '../../../src/cli/sync/targets/target.ts'
import { Grandlivre } from '../../../src/client/grandlivre.ts'
import { accessOf, testTerminal } from './command-line.ts'

export const targetKinds = ['sqlite', 'ndjson', 'postgres'] as const
export type TargetKind = (typeof targetKinds)[number]

export interface SyncStage {
  database: TestDatabase
  staff: Staff
  service: TestService
  ledger: RandomLedger
  env: Record<string, string>
  folder: Folder
  /** For files of targets. */
  out: string
  /** The address of a new target. */
  address(kind: TargetKind): string
  /** Runs statements on the ledger, as one transaction. */
  change(sql: string): Promise<void>
  /** Names of the parts in which a copy differs from the ledger. */
  differences(target: Target): Promise<string[]>
  close(): Promise<void>
}

export async function setSyncStage(): Promise<SyncStage> {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const headers = credentials(await staff.token('ONE', 'api', folders.first), secret)
  const { rows } = await staff.client.query(`select id from grandlivre.third_parties where code = 'ONE'`)
  const ledger = { ...folders.first, thirdPartyId: rows[0].id as string }
  await fillRandomLedger(staff.client, ledger)
  const service = await startTestService(database)
  const out = await mkdtemp(join(tmpdir(), 'grandlivre-sync-'))
  const env = accessOf(service.url, headers)
  const client = new Grandlivre({ baseUrl: service.url, token: env['GRANDLIVRE_TOKEN']!, secret })
  const source = { baseUrl: service.url, folder: ledger.folderId }
  let targets = 0
  const linesOf = async (part: Part): Promise<string> => {
    const draft = part.draft ? '&draft' : ''
    const path = `/api/v1/mad/movements?version=1.0.0&idExercice=${part.exercice}${draft}`
    const answer = await fetch(`${service.url}${path}`, {
      headers: { ...headers, Accept: 'application/x-ndjson' },
    })
    return answer.text()
  }
  return {
    ...{ database, staff, service, ledger, env, out },
    folder: { ledger: client, source, signal: new AbortController().signal },
    address: (kind) => {
      targets += 1
      if (kind !== 'postgres') return join(out, `copy-${targets}.${kind}`)
      const url = new URL(database.ownerUrl)
      url.searchParams.set('schema', `copy_${targets}`)
      return url.href
    },
    change: async (sql) => {
      await staff.client.query(`begin; set local search_path = grandlivre; ${sql}; commit`)
    },
    differences: async (target) => {
      const different: string[] = []
      for (const exercice of ['11', '12', '13'])
        for (const draft of [false, true]) {
          const part = { exercice, draft }
          const lines = exercice === '13' ? '' : await linesOf(part)
          const [digest] = await target.digests(part, everyEntry)
          if (digest !== createHash('sha256').update(lines).digest('hex')) different.push(partName(part))
        }
      return different
    },
    close: async () => {
      client.close()
      await service.stop()
      await staff.end()
      await database.drop()
      await rm(out, { recursive: true })
    },
  }
}

export interface OpenedCopy extends Copying {
  /** What was printed. */
  printed: { out: string; error: string }
  /** Asks every part of the folder. */
  bring(): Promise<Step>
  /**
   * What following does after a change: waits for it, and asks as few parts as possible.
   * @param meanwhile comes between the answer to the poll and the other requests of the step
   */
  poll(exercice?: string, meanwhile?: () => Promise<void>): Promise<Step>
}

export async function openTestCopy(stage: SyncStage, address: string): Promise<OpenedCopy> {
  const target = await targetPlace(address).open()
  const printed = { out: '', error: '' }
  const { folder } = stage
  const copying = { folder, target, terminal: testTerminal(printed) }
  return {
    ...{ ...copying, printed },
    bring: async () => bringUpToDate(copying, await target.state('copy')),
    poll: async (exercice = '12', meanwhile) => {
      const state = (await target.state('copy'))!
      const part = state.parts.find((one) => one.exercice === exercice && !one.draft)!
      const changes = await readChanges(folder, part, state.extended, part.cursor!)
      await meanwhile?.()
      return bringUpToDate(copying, state, { part, changes })
    },
  }
}
