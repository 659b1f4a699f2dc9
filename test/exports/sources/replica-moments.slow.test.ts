/**
 * Imports and changes while the replay of the replica stops at random moments: each answer shows at least the ledger at
 * the moment of its request. MOMENTS says how many; `npm run long -- replica` takes 200.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { defaultTiming } from '../../../src/timing.ts'
import type { Download } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { downloadFile, ended, trigger } from '../../support/full-export.ts'
import { fillLedger } from '../../support/ledgers/ledger.ts'
import { setReplicatedStage, versionOf } from '../../support/replication/replicated-stage.ts'
import { connect } from '../../support/servers/database.ts'

const moments = Number(process.env['MOMENTS'] ?? 6)

const replica = { ...defaultTiming.replica, waitMs: 300, leftMs: 200 }
const stage = forTests(() => setReplicatedStage({}, { timing: { ...defaultTiming, replica } }))
/** How often the ledger of folder 111 has changed, and the version of the last change. */
let changes = { count: 0, version: 0n }
let isOver = false
const importer = forTests(() => connect(stage.primary.ownerUrl))
/** What was asked for. */
const asked = { answers: 0, files: 0, folders: 0 }

beforeAll(change)

async function change(): Promise<void> {
  const count = changes.count + 1
  changes = { count, version: await stage.change(`change ${count}.`) }
}

const year = 'version=1.0.0&idExercice=12'
const exports = [
  `/mad/movements?${year}`,
  `/mad/entries?${year}`,
  `/mad/entry?version=1.0.0&id=12`,
  `/mad/balance?${year}`,
  '/mad/accounts?version=1.0.0',
]

/** The last change that a text shows. */
function changeIn(text: string): number {
  return Math.max(...[...text.matchAll(/change (\d+)\./g)].map(([, count]) => Number(count)))
}

function expectAtLeast({ count, version }: typeof changes, answer: Download): void {
  expect(answer.status).toBe(200)
  expect(versionOf(answer)).toBeGreaterThanOrEqual(version)
  expect(changeIn(answer.text)).toBeGreaterThanOrEqual(count)
  expect(answer.trailers['x-content-sha256']).toBe(answer.sha256)
}

const random = (most: number) => Math.floor(Math.random() * most)

async function changeOn(): Promise<void> {
  while (!isOver) {
    await change()
    await delay(random(60))
  }
}

async function ask(): Promise<void> {
  while (!isOver) {
    const seen = changes
    expectAtLeast(seen, await stage.get(exports[random(exports.length)]!))
    asked.answers += 1
  }
}

async function askForFiles(): Promise<void> {
  while (!isOver) {
    await stage.onPrimary('update grandlivre.exports set latest = false')
    const seen = changes
    const { status, body } = await trigger(stage.service.url, stage.company)
    expect(status).toBe(200)
    const job = await ended(stage.service.url, stage.company, body.id)
    expect(job.status).toBe('DONE')
    expect(changeIn((await downloadFile(job.url!)).bytes.toString())).toBeGreaterThanOrEqual(seen.count)
    asked.files += 1
  }
}

/** Imports a folder, and exports it at once. */
async function askForFolder(): Promise<void> {
  const folderId = String(1_000_000 + asked.folders)
  const folder = { schemaId: '100', firmId: '110', folderId }
  await createFolder(importer, { ...folder, id: folderId, name: `Folder ${folderId}` })
  await fillLedger(importer, { ...folder, label: 'new', thirdPartyId: stage.thirdPartyId })
  const answer = await stage.get(`/mad/movements?${year}`, { ...stage.firm, 'society-id': folderId })
  expect([answer.status, answer.text.includes('new')]).toEqual([200, true])
  asked.folders += 1
}

async function stopReplayAtMoments(): Promise<void> {
  try {
    for (let i = 0; i < moments; i++) {
      await delay(random(200))
      await stage.standby.pauseReplay()
      await delay(random(100))
      await askForFolder()
      await delay(random(500))
      await stage.standby.resumeReplay()
    }
  } finally {
    isOver = true
  }
}

test(
  'no answer or file is older than the state that its request saw, wherever the replay stops',
  async () => {
    await Promise.all([stopReplayAtMoments(), changeOn(), ask(), ask(), ask(), askForFiles()])
    console.log(`${moments} moments, ${changes.count} changes: ${JSON.stringify(asked)}`)
    expect(stage.logged('request.failed')).toEqual([])
    expect(stage.logged('export.interrupted')).toEqual([])
    expect(stage.logged('export.failed')).toEqual([])
  },
  60_000 + moments * 15_000,
)
