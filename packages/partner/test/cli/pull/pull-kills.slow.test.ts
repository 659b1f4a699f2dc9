/**
 * Kills pulls again and again, while their connection is also cut, stopped and ended too early. The file always has the
 * bytes of the service.
 *
 * By default there are three kills, one for each compression of the file, after the first piece. With PULL_KILLS (`npm run long
 * -- partner-kills`: 100), larger pulls are killed at any moment, and continued by pulls that are killed in turn.
 */
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { until } from '../../../../../test/support/until.ts'
import { grandlivre, startGrandlivre } from '../../support/cli/command-line.ts'
import { factsOfFile, setYearStage, type YearStage } from '../../support/cli/year-stage.ts'
import type { Fault } from '../../support/client/faulty-proxy.ts'

const atAnyMoment = process.env['PULL_KILLS'] !== undefined
const kills = Number(process.env['PULL_KILLS'] ?? 3)
const movements = atAnyMoment ? 20_000 : 3_000
/** Approximate bytes of the answer before compression. */
const answerBytes = movements * 850
const endings = ['ndjson', 'ndjson.gz', 'ndjson.zst']
/** Number of kills for each file, in turn. */
const deaths = atAnyMoment ? [1, 2, 4] : [1]

const anyOf = <Item>(items: Item[]): Item => items[Math.floor(Math.random() * items.length)]!

function spoil(stage: YearStage, kinds: ('cut' | 'end' | 'stall' | 'noTrailers' | 'none')[]): void {
  stage.proxy.fault = (path): Fault | undefined => {
    const kind = path.includes('/mad/movements?') ? anyOf(kinds) : 'none'
    if (kind === 'none') return undefined
    return kind === 'noTrailers' ? { kind } : { kind, afterBytes: Math.floor(Math.random() * answerBytes) }
  }
}

/** Starts a pull and kills it. @returns whether it was still running */
async function killPull(stage: YearStage, path: string, wholeMs: number): Promise<boolean> {
  spoil(stage, atAnyMoment ? ['none', 'cut', 'end', 'stall'] : ['none'])
  // The answer stalls before its end, so that the kill is not too late.
  if (!atAnyMoment) stage.proxy.fault = () => ({ kind: 'stall', afterBytes: answerBytes * 0.7 })
  const run = startGrandlivre(stage.proxied, commandFor(stage, path))
  if (atAnyMoment) await delay(Math.random() * wholeMs)
  else
    await until(async () => /"rows": [1-9]/.test(await readFile(`${path}.part.json`, 'utf8').catch(() => '')))
  run.child.kill('SIGKILL')
  const { code, error } = await run.ended
  if (code !== null && code !== 0) throw new Error(error)
  return code === null
}

const commandFor = (stage: YearStage, path: string) => [
  ...['pull', '--exercice', stage.exerciceId, '--out', path],
  ...['--wire', atAnyMoment ? anyOf(['identity', 'gzip', 'zstd']) : 'identity'],
]

test('a pull that is killed at any point and resumed has the bytes of the service, without a repeated row', {
  timeout: 60_000 + kills * 20_000,
}, async ({ onTestFinished }) => {
  const stage = await setYearStage(movements)
  onTestFinished(() => stage.close())
  const source = await stage.source()
  const started = performance.now()
  if (atAnyMoment) {
    const { code } = await startGrandlivre(stage.proxied, commandFor(stage, join(stage.out, 'first'))).ended
    expect(code).toBe(0)
  }
  const wholeMs = performance.now() - started
  const counts = { kills: 0, tooLate: 0, files: 0, continued: 0, connections: 0 }
  for (let file = 0; counts.kills < kills; file += 1) {
    const name = `${file}.${endings[file % endings.length]}`
    const path = join(stage.out, name)
    // A kill may come after the file has its final name.
    const isThere = () => readdirSync(stage.out).includes(name)
    for (let death = 0; death < deaths[file % deaths.length]! && !isThere(); death += 1) {
      if (await killPull(stage, path, wholeMs)) counts.kills += 1
      else counts.tooLate += 1
    }
    spoil(stage, ['none', 'cut', 'end', 'noTrailers'])
    if (!isThere()) {
      const { code, out, error } = await grandlivre(stage.proxied, [...commandFor(stage, path), '--json'])
      expect([code, error]).toEqual([0, expect.any(String)])
      if (error.includes('Going on after')) counts.continued += 1
      counts.connections += JSON.parse(out).connections
    }
    expect(await factsOfFile(path), name).toEqual(source)
    // A pull that was killed after its last step may leave its state file, but no part.
    expect(readdirSync(stage.out)).not.toContain(`${name}.part`)
    counts.files += 1
  }
  if (atAnyMoment)
    console.log(`Pulls killed and continued: ${JSON.stringify({ ...counts, wholeMs: Math.round(wholeMs) })}`)
  if (!atAnyMoment) expect(counts).toMatchObject({ kills: 3, tooLate: 0, continued: 3 })
})
