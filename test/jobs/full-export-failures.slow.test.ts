/**
 * Full exports while their process, database or store fails: each ends DONE with the right file, or FAILED with a
 * reason, and nothing else is left. Exports read through a gate, so that a test can stop them at an exact point.
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, type TestContext } from 'vitest'
import { type Progress, statusUrl, trigger, triggerAmongMany } from '../support/full-export.ts'
import { request } from '../support/service.ts'
import { concurrently, exportAt, failingStageOf, storeUnrecorded } from '../support/stages/failing-stage.ts'
import { until } from '../support/until.ts'

const test = concurrently(failingStageOf)

test('an export fails when its process is killed in the last attempt', async (stage) => {
  const { service, id } = await exportAt(stage, 0.3, stage.startGatedProcess())
  await stage.sql('update pgboss.job set retry_count = retry_limit')
  await service.kill()
  await stage.noticeSilence([id])
  const successor = await stage.start()
  await stage.expectFailed(successor, id, /interrupted during each attempt.* request [\w-]{36} /, 1)
  expect(successor.logged('export.abandoned', id)).toBe(true)
  await until(async () => (await stage.stored()).length === 0)
})

test('the file of a killed process is removed even if its export was cancelled meanwhile', async (scene) => {
  const { service, id } = await exportAt(scene, 0.3, scene.startGatedProcess())
  await service.kill()
  expect(await scene.stored()).toHaveLength(1)
  await scene.sql(
    `update grandlivre.exports set state = 'failed', finished_at = now(), reason = 'reason' where id = $1`,
    [id],
  )
  await scene.noticeSilence([id])
  const successor = await scene.start()
  await until(async () => (await scene.stored()).length === 0)
  expect(successor.logged('export.started', id)).toBe(false)
})

test('a frozen process that has lost its export cannot complete that export', async (stage) => {
  const { service, gate, id } = await exportAt(stage, 0.5, stage.startGatedProcess())
  service.child.kill('SIGSTOP')
  await stage.noticeSilence([id])
  const successor = await stage.start()
  const { sha256 } = await stage.expectRightFile(successor, id)
  // The file that the frozen process has open is already removed for all others.
  expect(await stage.stored()).toEqual([expect.stringMatching(/^2-[0-9a-f]{16}\.json$/)])
  gate.open()
  service.child.kill('SIGCONT')
  await until(() => service.logged('export.lost', id))
  expect(service.logged('export.done', id)).toBe(false)
  await until(async () => (await stage.stored()).length === 1)
  expect((await request(statusUrl(service.url, id), stage.headers)).body).toMatchObject({
    status: 'DONE',
    sha256,
  })
  await stage.expectRow(id, 'done', 2)
})

test('an export stops when its attempt is no longer the latest, and leaves no file', async (stage) => {
  const { service, gate, id } = await exportAt(stage, 0.5, stage.startGated())
  await stage.sql('update grandlivre.exports set attempt = attempt + 1 where id = $1', [id])
  // The process learns this from its next renewal, while it waits for the database.
  await until(() => service.logged('export.lost', id))
  gate.open()
  expect(await stage.stored()).toEqual([])
  await stage.expectRow(id, 'running', 2)
  expect(service.logged('export.done', id)).toBe(false)
})

test('an export loses its file if another process claims it while the file is being completed', async (stage) => {
  const { service, gate, id } = await exportAt(stage, 0.5, stage.startGated())
  // The locked row cannot be renewed, either: the process learns of its loss only after the last byte.
  await storeUnrecorded(stage, gate, id)
  await stage.sql('update grandlivre.exports set attempt = attempt + 1 where id = $1', [id])
  await stage.sql('commit')
  await until(() => service.logged('export.lost', id))
  await until(async () => (await stage.stored()).length === 0)
  await stage.expectRow(id, 'running', 2)
})

test('SIGTERM requeues an export without using up an attempt', async (stage) => {
  const seen: Progress[] = []
  let id: string | undefined
  // The test stops a process four times, although there are only three attempts.
  for (let i = 0; i < 4; i++) {
    const { service, gate } = await stage.startGatedProcess()
    const current = id ?? (await stage.begin(service))
    id = current
    await until(() => service.logged('export.started', current))
    seen.push(await stage.readUpTo(0.2, gate, service, current))
    service.child.kill('SIGTERM')
    expect(await service.ended).toEqual([0, null])
    expect(service.logged('export.requeued', current)).toBe(true)
    await stage.expectRow(current, 'queued', i + 1)
    expect(await stage.stored()).toEqual([])
  }
  const successor = await stage.start()
  await stage.expectRightFile(successor, id!, seen)
  expect(successor.logged('export.interrupted')).toBe(false)
  expect(await stage.stored()).toHaveLength(1)
})

test('an export survives the loss of all database connections', async (stage) => {
  const { service, gate, id, seen } = await exportAt(stage, 0.5, stage.startGated())
  await stage.terminateConnections()
  gate.open()
  await stage.expectRightFile(service, id, seen)
  expect(service.logged('export.interrupted', id)).toBe(true)
  await stage.expectRow(id, 'done', 2)
  expect(await stage.stored()).toHaveLength(1)
})

test('an export whose sessions are cut at each attempt finally fails, even if the database is up', async (stage, context) => {
  const service = await stage.start()
  const cutting = setInterval(() => {
    const sessions = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
      and query ilike 'copy%' and pid <> pg_backend_pid()`
    stage.sql(sessions).catch(() => {})
  }, 3)
  context.onTestFinished(() => clearInterval(cutting))
  const id = await stage.begin(service)
  const row = async () =>
    (await stage.sql('select state, attempt from grandlivre.exports where id = $1', [id]))[0]
  await until(async () => (await row()).state === 'failed')
  expect((await row()).attempt).toBeGreaterThan(30)
})

test('an export fails when the store fails three times', async (stage, context) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-nowhere-'))
  context.onTestFinished(() => rm(dataDir, { recursive: true }))
  // A file is in the place of the folder of files.
  await writeFile(join(dataDir, 'files'), '')
  const service = await stage.start({ DATA_DIR: dataDir })
  const id = await stage.begin(service)
  await stage.expectFailed(service, id, /^(?!.*grandlivre-nowhere).*could not be stored, despite retries/, 3)
})

/** Puts the data folder of a service on a disk of 4 MB. */
async function onSmallDisk(context: TestContext) {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-small-disk-'))
  context.onTestFinished(() => rm(dataDir, { recursive: true }))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', dataDir], { stdio: 'ignore' })
  } catch {
    context.skip('only root can mount a small disk')
  }
  context.onTestFinished(() => void execFileSync('umount', ['-l', dataDir]))
  return { stage: await failingStageOf(context), dataDir }
}

concurrently(onSmallDisk)(
  'an export fails at once when the disk is full, and leaves nothing on it',
  async ({ stage, dataDir }) => {
    const service = await stage.start({ DATA_DIR: dataDir })
    const id = await stage.begin(service)
    await stage.expectFailed(service, id, /free space/, 1)
    const used = execFileSync('find', [dataDir, '-type', 'f'], { encoding: 'utf8' })
    expect(used).toBe('')
  },
)

test('100 identical triggers at once, by two tokens across two processes, make one export and one file', async (stage) => {
  const settings = { RATE_LIMIT_CONCURRENT: '100' }
  const services = [await stage.start(settings), await stage.startProcess(settings)]
  // A lock stops all triggers at the insert of the export, and releases them at the same instant.
  await stage.sql('begin')
  await stage.sql('lock table grandlivre.exports in share mode')
  const triggers = Array.from({ length: 100 }, (_, i) =>
    triggerAmongMany(services[i % 2]!.url, i % 3 ? stage.headers : stage.firmHeaders),
  )
  const waiting = async () =>
    (
      await stage.sql(
        `select count(*)::int as n from pg_locks
         where not granted and relation = 'grandlivre.exports'::regclass
         and database = (select oid from pg_database where datname = current_database())`,
      )
    )[0].n
  // A process has eight connections for such statements, so if more than eight wait, both processes have some.
  await until(async () => (await waiting()) > 8)
  await stage.sql('commit')
  const answers = await Promise.all(triggers)
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  const ids = new Set(answers.map(({ body }) => body.id))
  expect(ids.size).toBe(1)
  const id = answers[0]!.body.id
  for (const service of services) await stage.expectRightFile(service, id)
  expect(services.filter(({ logged }) => logged('export.started'))).toHaveLength(1)
  expect(
    await stage.sql(
      `select (select count(*)::int from grandlivre.exports) as rows,
              (select count(*)::int from pgboss.job where name = 'exports') as entries`,
    ),
  ).toEqual([{ rows: 1, entries: 1 }])
  await stage.expectRow(id, 'done', 1)
  expect(await stage.stored()).toHaveLength(1)
})

test('two processes share the exports, and one takes over when the other is killed', async (stage) => {
  const [one, other] = [await stage.startGatedProcess(), await stage.startGated()]
  const begun = [await stage.begin(one.service), await stage.begin(other.service)]
  const ofProcess = ({ service }: typeof other) => begun.filter((id) => service.logged('export.started', id))
  expect([ofProcess(one).length, ofProcess(other).length]).toEqual([1, 1])
  const [lost, kept] = [ofProcess(one)[0]!, ofProcess(other)[0]!]
  const seen: Progress[] = [await stage.readUpTo(0.5, one.gate, one.service, lost)]
  await stage.readUpTo(0.5, other.gate, other.service, kept)
  await one.service.kill()
  // The other process gets another trigger before the death is noticed.
  await stage.sql('update grandlivre.exports set latest = false')
  const further = (await trigger(other.service.url, stage.headers)).body.id
  await stage.noticeSilence([lost])
  other.gate.open()
  await Promise.all([
    stage.expectRightFile(other.service, kept),
    stage.expectRightFile(other.service, further),
    stage.expectRightFile(other.service, lost, seen),
  ])
  await stage.expectRow(kept, 'done', 1)
  await stage.expectRow(further, 'done', 1)
  await stage.expectRow(lost, 'done', 2)
  expect(await stage.sweepLater()).toMatchObject({ orphans: 0, unfinished: 0 })
})
