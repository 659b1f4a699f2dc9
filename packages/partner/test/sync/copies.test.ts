/** Runs of a copy of two folders of a firm, from the real service. What depends on the database is in copy-tests.ts. */
import { expect, test } from 'vitest'
import { folders } from '../../../../test/support/ledgers/tenants.ts'
import { until } from '../../../../test/support/until.ts'
import { syncCopy, verifyCopy } from '../../src/sync/sync.ts'
import { accessOf, type RunningCommand, startGrandlivre } from '../support/cli/command-line.ts'
import { firstFolder, secondFolder, syncStageForTests } from '../support/sync/sync-stage.ts'

const stage = syncStageForTests()

test('the token of one folder leaves the others of its firm as they are', async () => {
  const address = stage.newAddress('PostgreSQL')
  const run = await stage.open(address)
  await syncCopy(run)
  await stage.endRuns()
  const one = await stage.open(address, stage.company)
  expect(await syncCopy(one)).toMatchObject({ ledgers: 1, copied: 0 })
  expect(one.kinds()).toEqual([])
  expect((await one.copy.folders()).map(({ gone_at }) => gone_at)).toEqual([null, null])
})

test('folders shows the state of the copy of each folder', async () => {
  const address = stage.newAddress('PostgreSQL')
  const env = accessOf(stage.proxy.url, stage.firm)
  const states = async () => {
    const { code, out } = await startGrandlivre(env, ['folders', '--json', '--to', address]).ended
    expect(code).toBe(0)
    return out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map(({ society, copy }) => [society, copy])
  }
  const run = await stage.open(address)
  await syncCopy({ ...run, societies: [firstFolder] })
  expect(await states()).toEqual([
    [firstFolder, 'current'],
    [secondFolder, 'not copied'],
  ])
  await syncCopy(run)
  await stage.rename('1000009', `montré ${stage.count()}`)
  expect(await states()).toEqual([
    [firstFolder, 'behind'],
    [secondFolder, 'current'],
  ])
  await stage.whileGone(async () => {
    await syncCopy(run)
    expect(await states()).toEqual([
      [firstFolder, 'current'],
      [secondFolder, 'gone'],
    ])
  })
})

test('a ledger whose cursor is refused is compared, and only what differs is read', async () => {
  const run = await stage.copied('PostgreSQL')
  await run.copy.note([firstFolder], { cursor: 'not.a.cursor' })
  await stage.rename('1003000', `comparé ${stage.count()}`)
  expect(await syncCopy(run)).toMatchObject({ copied: 1, rows: 1000, failed: [] })
  expect(run.events.at(-1)).toMatchObject({ society: firstFolder, since: 'not.a.cursor', rows_before: 1000 })
  await run.expectTheLedgers()
})

test('a folder that the access does not open is named, and the others are copied', async () => {
  const run = await stage.open(stage.newAddress('PostgreSQL'))
  const societies = [secondFolder, folders.otherTenant.folderId]
  expect(await syncCopy({ ...run, societies })).toMatchObject({ copied: 1, failed: [societies[1]] })
  expect(run.events).toContainEqual(
    expect.objectContaining({ kind: 'failed', society: societies[1], code: 'ERR-FOLDER-NOT-FOUND' }),
  )
  expect((await run.copy.folders()).map(({ society }) => society)).toEqual([secondFolder])
})

test('verify brings a copy to the state of the digests, and proves nothing of a folder that is gone', async () => {
  const run = await stage.copied('PostgreSQL')
  await stage.rename('1000009', `prouvé ${stage.count()}`)
  expect(await verifyCopy(run)).toMatchObject({ proven: 2, differed: [], unproven: [] })
  await stage.whileGone(async () => {
    expect(await verifyCopy(run)).toMatchObject({ proven: 1, differed: [], unproven: [secondFolder] })
  })
})

test('following copies a change as it comes, until it is stopped', async () => {
  const address = stage.newAddress('PostgreSQL')
  const env = accessOf(stage.proxy.url, stage.firm)
  const following = startGrandlivre(env, ['sync', '--json', '--follow', '--to', address])
  await until(
    () => kindsOf(following).includes('done') && stage.askedFor().at(-1) === 'GET /api/v1/mad/ledgers',
  )
  await stage.rename('1003000', `suivi ${stage.count()}`)
  await until(() => kindsOf(following).at(-1) === 'copied' && kindsOf(following).length === 4)
  const run = await stage.open(address)
  await run.expectTheLedgers()
  await stage.endRuns()
  following.child.kill('SIGINT')
  expect(await following.ended).toMatchObject({ code: 0, error: expect.stringContaining('Stopped.') })
})

const kindsOf = ({ soFar }: RunningCommand): string[] =>
  soFar.out
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line).kind)
