/**
 * A sync that is killed at any moment leaves a target that the next run brings right: in the first reading, in the steps
 * that follow changes, and while a copy is replaced.
 *
 * `npm test` kills one run for each kind of target; `npm run test:partner-kills` 100 (SYNC_KILLS). SYNC_SEED chooses other moments.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { randomFrom } from '../../../../../test/support/changes/random-changes.ts'
import { createTestDatabase, type TestDatabase } from '../../../../../test/support/servers/database.ts'
import { targetPlace } from '../../../src/cli/sync/open-copy.ts'
import { everyEntry, type Part } from '../../../src/cli/sync/targets/target.ts'
import { startGrandlivre } from '../../support/cli/command-line.ts'
import { type TargetKind, targetKinds } from '../../support/cli/sync-stage.ts'
import { setYearStage, type YearStage } from '../../support/cli/year-stage.ts'

const kills = Number(process.env['SYNC_KILLS'] ?? 1)
const seed = Number(process.env['SYNC_SEED'] ?? Date.now() % 1e6)
/** After this number of kills the next target is a new one. */
const killsOfTarget = 5

let stage: YearStage
/** For copies in PostgreSQL. */
let database: TestDatabase
beforeAll(async () => {
  stage = await setYearStage()
  database = await createTestDatabase({ template: 'template1' })
})
afterAll(async () => {
  await stage.close()
  await database.drop()
})

function addressOf(kind: TargetKind, number: number): string {
  if (kind !== 'postgres') return join(stage.out, `copy-${number}.${kind}`)
  const url = new URL(database.ownerUrl)
  url.searchParams.set('schema', `copy_${number}`)
  return url.href
}

async function ledgerDigest(part: Part): Promise<string> {
  const draft = part.draft ? '&draft' : ''
  const path = `${stage.url}/api/v1/mad/movements?version=1.0.0&idExercice=${part.exercice}${draft}`
  const headers = {
    Authorization: `Bearer ${stage.env['GRANDLIVRE_TOKEN']}`,
    'X-Third-Party-Secret': stage.env['GRANDLIVRE_SECRET']!,
    Accept: 'application/x-ndjson',
  }
  const bytes = Buffer.from(await (await fetch(path, { headers })).arrayBuffer())
  return createHash('sha256').update(bytes).digest('hex')
}

/** Runs to the end, and compares every line with the ledger. */
async function expectTheLedger(address: string, moment: string): Promise<void> {
  const { ended } = startGrandlivre(stage.env, ['sync', '--to', address])
  expect(await ended, moment).toMatchObject({ code: 0 })
  const target = await targetPlace(address).open()
  try {
    expect(await target.state('next'), moment).toBeUndefined()
    const { parts } = (await target.state('copy'))!
    expect(parts.length).toBe(4)
    for (const part of parts)
      expect(await target.digests(part, everyEntry), moment).toEqual([await ledgerDigest(part)])
  } finally {
    await target.close()
  }
}

test.each(targetKinds)(
  '%s: the next run after a kill makes the copy the ledger',
  async (kind) => {
    const random = randomFrom(seed)
    /** How long a run of each sort takes, in milliseconds. */
    const usual = { first: 1_500, changes: 1_000, again: 1_500 }
    let address = ''
    let killed = 0
    for (let kill = 0; kill < kills; kill += 1) {
      const sort = kill % killsOfTarget === 0 ? 'first' : random() < 0.3 ? 'again' : 'changes'
      if (sort === 'first') address = addressOf(kind, kill)
      else await stage.change(1 + Math.floor(random() * 400))
      const words = ['sync', '--to', address, ...(sort === 'again' ? ['--again'] : [])]
      const { child, ended } = startGrandlivre(stage.env, words)
      const ms = usual[sort] * (0.3 + 0.7 * random())
      const started = performance.now()
      const timer = setTimeout(() => child.kill('SIGKILL'), ms)
      const { code } = await ended
      clearTimeout(timer)
      if (code === null) killed += 1
      // A run that came to its end shows how long they are, so that the next ones are killed before.
      else usual[sort] = performance.now() - started
      await expectTheLedger(address, `SYNC_SEED=${seed}, kill ${kill} after ${Math.round(ms)} ms: ${sort}`)
    }
    if (kills > 10) console.log(`${kind}: ${killed} of ${kills} runs were killed before their end`)
  },
  60_000 + kills * 30_000,
)
