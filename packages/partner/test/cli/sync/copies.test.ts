/** Copies in SQLite, NDJSON and PostgreSQL that follow a ledger: always its bytes, whatever happens to it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { changeAtRandom, randomFrom } from '../../../../../test/support/changes/random-changes.ts'
import { verifyCopy } from '../../../src/cli/sync/verify.ts'
import { openTestCopy, type SyncStage, setSyncStage, targetKinds } from '../../support/cli/sync-stage.ts'

const histories = Number(process.env['SYNC_HISTORIES'] ?? 1)
const momentsEach = 2

let stage: SyncStage
beforeAll(async () => {
  stage = await setSyncStage()
})
afterAll(() => stage.close())

const folder = 'schema_id = 100 and folder_id = 111'

describe.each(targetKinds)('a copy in %s', (kind) => {
  test('is the ledger after every step of a random history', async () => {
    for (let seed = 1; seed <= histories; seed += 1) {
      const copy = await openTestCopy(stage, stage.address(kind))
      const random = randomFrom(seed)
      expect((await copy.bring()).inFull).toBe(true)
      for (let moment = 1; moment <= momentsEach; moment += 1) {
        for (let change = random(); change < 0.8; change = random())
          await changeAtRandom(stage.staff.client, stage.ledger, random)
        // Following leaves out parts; asking all of them must find what it left.
        if (random() < 0.7)
          await copy.poll('12', () => changeAtRandom(stage.staff.client, stage.ledger, random))
        await copy.bring()
        expect(await stage.differences(copy.target), `seed ${seed}, moment ${moment}`).toEqual([])
      }
      await copy.target.close()
    }
  })

  test('follows entries that come, go, are validated or move, and accounts that are renamed, by one poll', async () => {
    const copy = await openTestCopy(stage, stage.address(kind))
    await copy.bring()
    const one = (condition: string) => `(select min(id) from entries where ${folder} and ${condition})`
    const changes = [
      `update entries set comment = 'new' where ${folder} and id = ${one('exercice_id = 12 and validated_at is null')}`,
      `update entries set validated_at = '2025-02-28' where ${folder} and id = ${one('exercice_id = 12 and validated_at is null')}`,
      `update entries set validated_at = null where ${folder} and id = ${one('exercice_id = 11 and validated_at is not null')}`,
      `delete from movements where ${folder} and entry_id = ${one('exercice_id = 11')}`,
      `delete from entries where ${folder} and id = ${one('not exists (select from movements m where m.entry_id = entries.id)')}`,
      `update accounts set name = 'Autre nom' where ${folder} and id = 103`,
    ]
    for (const change of changes) {
      await stage.change(change)
      const step = await copy.poll()
      expect(step).toMatchObject({ inFull: false })
      expect(await stage.differences(copy.target), change).toEqual([])
    }
    await copy.target.close()
  })

  test('takes entries that change once more, or move, while a step is under way', async () => {
    const copy = await openTestCopy(stage, stage.address(kind))
    await copy.bring()
    const { rows } = await stage.staff.client.query(
      `select id from grandlivre.entries where ${folder} and exercice_id = 12 and validated_at is not null order by id limit 3`,
    )
    const [first, second, third] = rows.map(({ id }) => `${folder} and id = ${id}`)
    await stage.change(`update entries set comment = 'once' where ${second}`)
    await copy.poll('12', () =>
      stage.change(
        `update entries set comment = 'twice' where ${second}; update entries set comment = 'once' where ${first}`,
      ),
    )
    expect(await stage.differences(copy.target), 'changed twice').toEqual([])
    await stage.change(`update entries set comment = 'once' where ${third}`)
    await copy.poll('12', () => stage.change(`update entries set validated_at = null where ${third}`))
    expect(await stage.differences(copy.target), 'moved').toEqual([])
    await copy.target.close()
  })

  test('takes a new exercice, and drops one that is gone', async () => {
    const copy = await openTestCopy(stage, stage.address(kind))
    await copy.bring()
    await stage.change(`insert into exercices (schema_id, folder_id, id, start_date, end_date)
      values (100, 111, 13, '2025-01-01', '2025-12-31')`)
    await copy.poll()
    expect((await copy.target.state('copy'))!.parts.map(({ exercice }) => exercice)).toContain('13')
    await stage.change(`delete from exercices where ${folder} and id = 13`)
    await copy.poll('13').catch(() => copy.bring())
    expect((await copy.target.state('copy'))!.parts.map(({ exercice }) => exercice)).not.toContain('13')
    expect(await stage.differences(copy.target)).toEqual([])
    await copy.target.close()
  })

  test('is repaired by verify, wherever it differs', async () => {
    const copy = await openTestCopy(stage, stage.address(kind))
    await copy.bring()
    const part = { exercice: '12', draft: false }
    await copy.target.change('copy', (change) => change.replace(part, [['500', '1500']], []))
    expect(await stage.differences(copy.target)).not.toEqual([])
    const verified = await verifyCopy(copy)
    expect(verified.reduce((sum, { repaired }) => sum + repaired, 0)).toBe(1)
    expect(copy.printed.error).toContain('exercice 12: 1 blocks differ and are read again')
    expect(await stage.differences(copy.target)).toEqual([])
    expect((await verifyCopy(copy)).every(({ repaired }) => repaired === 0)).toBe(true)
    await copy.target.close()
  })

  test('is read in full again, beside itself, once its cursor has expired', async () => {
    const copy = await openTestCopy(stage, stage.address(kind))
    const { cursor } = await copy.bring()
    // A restored database begins a new epoch.
    await stage.change('update service_state set epoch = epoch + 1')
    const step = await copy.bring()
    expect(step).toMatchObject({ inFull: true, since: cursor })
    expect(copy.printed.error).toContain('is read in full again, beside the copy')
    expect(await copy.target.state('next')).toBeUndefined()
    expect(await stage.differences(copy.target)).toEqual([])
    await copy.target.close()
  })
})
