/**
 * Kills a service again and again while it makes full exports to disk, two at a time, and restarts it each time. Checks
 * what that leaves on the disk, and that the finished files are complete.
 *
 * By default there are three kills, of paused exports, and the test does not wait until a silence is noticed. With
 * KILLS (`npm run long -- kills`: 30), larger exports run at full speed and are killed at any moment, and all waits are
 * real.
 */
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ended, type JobAnswer, trigger } from '../support/full-export.ts'
import type { ServiceProcess } from '../support/process.ts'
import { type FailingStage, folderIn, setFailingStage } from '../support/stages/failing-stage.ts'
import { until } from '../support/until.ts'

const atFullSpeed = process.env['KILLS'] !== undefined
const kills = Number(process.env['KILLS'] ?? 3)
const movements = atFullSpeed ? 100_000 : 15_000
/** Deaths per pair of exports, in rotation. After the third death the exports have failed. */
const deaths = [1, 2, 3]

test('a crash loop leaves at most one part file for a running export, and none for an ended one', {
  timeout: 120_000 + kills * 60_000,
}, async ({ onTestFinished }) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-kills-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const files = await folderIn(dataDir)
  const stage = await setFailingStage({ movements, files, isReal: atFullSpeed })
  onTestFinished(() => stage.close())
  const folder = join(dataDir, 'files')
  const parts = watchParts(folder)
  onTestFinished(() => parts.close())
  const jobs: JobAnswer[] = []
  let killed = 0
  let tooLate = 0
  let running = await start(stage)
  for (let round = 0; killed < kills; round++) {
    const ids = await triggerBoth(stage, running.service)
    const planned = Math.min(deaths[round % deaths.length]!, kills - killed)
    for (let attempt = 1; attempt <= planned; attempt++) {
      await until(() => parts.writing(attempt) >= (atFullSpeed ? 1 : 2))
      if (atFullSpeed) await delay(Math.random() * 800)
      await running.service.kill()
      const isCutOff = (await partsIn(folder)).length > 0
      if (isCutOff) killed += 1
      else tooLate += 1
      if (!atFullSpeed) await stage.noticeSilence(ids)
      running = await start(stage)
      // If nothing was cut off, both were done just before the kill, and the next pair follows.
      if (!isCutOff) break
    }
    running.open()
    for (const id of ids) {
      const job = await ended(running.service.url, stage.headers, id)
      if (job.status === 'DONE') await expectWhole(job)
      else
        expect([planned, job.reason]).toEqual([3, expect.stringContaining('interrupted during each attempt')])
      jobs.push(job)
    }
  }
  if (atFullSpeed) await delay(60_000)
  else await until(async () => (await partsIn(folder)).length === 0)
  const named = await stage.sql('select file_key from grandlivre.exports where file_key is not null')
  expect((await stage.stored()).sort()).toEqual(named.map(({ file_key }) => basename(file_key)).sort())
  const failed = jobs.filter(({ status }) => status === 'FAILED').length
  const summary = { kills: killed, tooLate, jobs: jobs.length, failed, ...parts.counts() }
  if (atFullSpeed) console.log(JSON.stringify(summary))
  expect(summary).toMatchObject({ kills, mostOfOneExport: 1 })
})

/** Starts a service that makes two exports at once. They pause until `open` is called, except at full speed. */
async function start(stage: FailingStage): Promise<{ service: ServiceProcess; open: () => void }> {
  const settings = { EXPORT_THREADS: '2' }
  if (atFullSpeed) return { service: await stage.startProcess(settings), open: () => {} }
  const { service, gate } = await stage.startGatedProcess(settings)
  return { service, open: gate.open }
}

async function triggerBoth(stage: FailingStage, service: ServiceProcess): Promise<string[]> {
  await stage.sql('update grandlivre.exports set latest = false')
  const answers = ['JSON', 'TRA'].map((format) => trigger(service.url, stage.headers, { format }))
  return (await Promise.all(answers)).map(({ body }) => body.id)
}

async function expectWhole({ url, size, sha256, rows }: JobAnswer): Promise<void> {
  const file = await (await fetch(url!)).bytes()
  expect([file.length, createHash('sha256').update(file).digest('hex'), rows]).toEqual([
    size,
    sha256,
    movements,
  ])
}

interface PartsWatch {
  /** Number of exports that had a part file of that attempt at the last poll. */
  writing(attempt: number): number
  counts(): { mostOfOneExport: number; mostAtOnce: number; polls: number }
  close(): Promise<void>
}

/** Polls the folder with pauses of 20 ms: about forty times a second. */
function watchParts(folder: string): PartsWatch {
  let paths: string[] = []
  const counts = { mostOfOneExport: 0, mostAtOnce: 0, polls: 0 }
  let closed = false
  const watching = (async () => {
    for (; !closed; await delay(20)) {
      paths = await partsIn(folder)
      const perExport = Object.values(Object.groupBy(paths, dirname)).map((found) => found!.length)
      counts.mostOfOneExport = Math.max(counts.mostOfOneExport, ...perExport)
      counts.mostAtOnce = Math.max(counts.mostAtOnce, paths.length)
      counts.polls += 1
    }
  })()
  return {
    writing: (attempt) => paths.filter((path) => basename(path).startsWith(`.${attempt}-`)).length,
    counts: () => counts,
    close: () => {
      closed = true
      return watching
    },
  }
}

/** Paths of the part files. A folder that is removed meanwhile has none. */
async function partsIn(folder: string): Promise<string[]> {
  const found = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const inside = found.map((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return partsIn(path)
    return entry.name.endsWith('.part') ? [path] : []
  })
  return (await Promise.all(inside)).flat()
}
