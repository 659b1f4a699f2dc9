/** Partners' programs that live through failovers: `sync --follow`, pulls that are killed and go on, full exports. */
import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import {
  type RunningCommand,
  startGrandlivre,
} from '../../../packages/partner/test/support/cli/command-line.ts'
import type { Random } from '../../../packages/sample/src/made-up/random.ts'
import { type Loop, repeat, Unanswered } from './findings.ts'
import type { Year } from './followers.ts'
import { type Caller, expected, read } from './read.ts'

export interface Sync {
  start(): void
  /**
   * Ends the program, brings the copy to the present state, and proves its rows. Call it only while nothing changes.
   */
  check(): Promise<void>
  stop(): Promise<void>
}

/**
 * Follows the whole firm.
 * @param env environment of the partner
 */
export function syncOf({ findings }: Caller, env: Record<string, string>, out: string): Sync {
  const to = ['--to', join(out, 'firm.sqlite')]
  let following: RunningCommand | undefined
  const stop = async () => {
    following?.child.kill('SIGINT')
    const { code, error } = (await following?.ended) ?? { code: 0, error: '' }
    following = undefined
    if (code !== 0)
      findings.add('followers that ended', `sync --follow ended with ${code}: ${error.slice(0, 300)}`)
  }
  return {
    start: () => {
      following = startGrandlivre(env, ['sync', '--json', '--follow', ...to])
    },
    check: async () => {
      await stop()
      for (const command of ['sync', 'verify']) {
        const { code, out: said, error } = await startGrandlivre(env, [command, '--json', ...to]).ended
        if (code === 0) continue
        findings.add(
          'copies that are wrong',
          `${command} of the firm ended with ${code}: ${error} ${said.slice(-400)}`,
        )
      }
    },
    stop,
  }
}

/** Pulls an exercice again and again. Half of the runs are killed, and the next run resumes. */
export function startPulls(
  caller: Caller,
  env: Record<string, string>,
  year: Year,
  out: string,
  random: Random,
): Loop {
  const { findings } = caller
  const file = join(out, 'year.ndjson')
  const words = ['pull', '--json', '--exercice', year.exerciceId, '--society', year.folderId, '--out', file]
  return repeat(
    2_000,
    async () => {
      await rm(file, { force: true })
      let run = startGrandlivre(env, words)
      if (random.fraction() < 0.5) {
        const timer = setTimeout(() => run.child.kill('SIGKILL'), random.integer(300, 1_500))
        const { code } = await run.ended
        clearTimeout(timer)
        if (code === 0) return note(run)
        run = startGrandlivre(env, words)
      }
      await note(run)
    },
    (error) => findings.note(`pulls: ${error.message.slice(0, 120)}`),
  )
  async function note(run: RunningCommand): Promise<void> {
    const { code, out: said, error } = await run.ended
    findings.note(code === 0 ? 'pulls' : `pulls: ${error.slice(0, 100)}`)
    if (code !== 0) throw new Unanswered(error)
    const { cursor, sha256 } = JSON.parse(said) as { cursor: string; sha256: string }
    const text = await readFile(file, 'utf8')
    const name = `exercice ${year.exerciceId}, cursor ${cursor}`
    if (createHash('sha256').update(text).digest('hex') !== sha256)
      findings.add('short streams that look whole', `pull at ${cursor}: ${sha256}`)
    findings.name('cursors that name two contents', name, text)
  }
}

/** @param owner its connection retires earlier exports, so that none of them answers the next trigger */
export function startExports(caller: Caller, owner: Pool, folderId: string): Loop {
  const { findings } = caller
  const headers = { 'society-id': folderId }
  const job = async (path: string) => {
    const answer = await expected(read(caller, path, { headers }), 200, 404)
    return { ...(JSON.parse(answer.text) as Job), isUnknown: answer.status === 404 }
  }
  return repeat(
    1_000,
    async () => {
      await owner.query('update grandlivre.exports set latest = false where latest').catch(unanswered)
      const { id } = await job('/api/v1/mad/all?version=1.0.0&format=JSON')
      for (const since = performance.now(); ; ) {
        await delay(400)
        if (performance.now() - since > exportMsMax)
          return findings.add('exports that failed', `${id} has not ended after ${exportMsMax / 1000} s`)
        const path = `/api/v1/mad/all/status?version=1.0.0&exportId=${id}`
        const state = await job(path).catch(() => undefined)
        if (state === undefined || state.status === 'INIT') continue
        if (state.isUnknown) return findings.note('exports lost with their server')
        if (state.status === 'FAILED')
          return findings.add('exports that failed', `${id}: ${state.reason ?? ''}`)
        const file = await expected(read({ ...caller, headers: {} }, state.url!), 200)
        const digest = createHash('sha256').update(file.text).digest('hex')
        if (digest !== state.sha256) findings.add('short streams that look whole', `${id}: ${digest}`)
        return findings.note('exports')
      }
    },
    (error) => findings.note(`exports: ${error.message.slice(0, 120)}`),
  )
}

const exportMsMax = 180_000

interface Job {
  id?: string
  status?: string
  url?: string
  sha256?: string
  reason?: string
}

function unanswered(error: Error): never {
  throw new Unanswered(error.message)
}
