/** What a narrow and a wide terminal get, with and without NO_COLOR, and what a pipe gets. */
import { spawnSync } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runInTerminal } from '../../../../../docs/terminal-run.ts'
import { expectHarmless, hostile } from '../../../../../test/support/fixtures/hostile-names.ts'
import { environment } from '../../../../../test/support/process.ts'
import { startGrandlivre } from '../../support/cli/command-line.ts'

const isScriptThere = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
if (!isScriptThere) console.warn('No tests in a terminal: script of util-linux is not there')

/** Lets a command wait once, with a reason that is longer than any line, then refuses it. */
let busy: Server
let asked = 0
let env: Record<string, string>
const reason = `Busy ${hostile} ${'and busy '.repeat(40)}`
beforeAll(async () => {
  busy = createServer((_, answer) => {
    asked += 1
    const error = { code: 'ERR-TOO-MANY-REQUEST', message: reason, details: {} }
    answer.writeHead(asked === 1 ? 429 : 400, { 'Content-Type': 'application/json', 'Retry-After': '0' })
    answer.end(JSON.stringify({ error }))
  })
  await new Promise<void>((listening) => {
    busy.listen(0, '127.0.0.1', listening)
  })
  const url = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`
  env = { GRANDLIVRE_URL: url, GRANDLIVRE_TOKEN: 'glv_api_1', GRANDLIVRE_SECRET: 'glv_secret_1' }
})
afterAll(() => {
  busy.close()
})
beforeEach(() => {
  asked = 0
})

async function shown(columns: number, more: Record<string, string>, words = 'folders'): Promise<string> {
  const bytes = await runInTerminal({
    ...{ columns, rows: 24, steps: [], folder: resolve(import.meta.dirname, '../../../../..') },
    command: `"${process.execPath}" packages/partner/src/grandlivre.ts ${words} || true`,
    env: { ...environment, ...env, ...more },
  })
  return String(bytes)
}

describe.skipIf(!isScriptThere).each([60, 200])('a terminal of %i columns', (columns) => {
  test.each([{}, { NO_COLOR: '1' }])('keeps progress in one line, and has no colours: %o', async (more) => {
    const text = await shown(columns, more)
    // Each line of progress begins with its own escape, and ends where the next one clears it.
    const [, ...drawn] = text.split('\r\x1b[K')
    const [progress, after] = drawn
    expect(progress).toMatch(/^Waiting \d\.\d s: Busy /)
    expect(progress).toHaveLength(columns - 1)
    expect(after).toContain('(ERR-TOO-MANY-REQUEST)')
    expectHarmless(text.replaceAll('\r\x1b[K', '').replaceAll('\r\n', '\n'))
  })

  test('is no place for --out -', async () => {
    const text = await shown(columns, {}, 'pull --exercice 2026 --out -')
    expect(text).toContain('--out - writes bytes, and a terminal would obey what is in them')
    expect(asked).toBe(0)
  })
})

test('without a terminal there is no escape, and no line of progress within ten seconds', async () => {
  const { code, out, error } = await startGrandlivre(env, ['folders']).ended
  expect([code, out]).toEqual([4, ''])
  expect(error).not.toContain('\x1b')
  expect(error).not.toContain('Waiting')
  expectHarmless(error)
})
