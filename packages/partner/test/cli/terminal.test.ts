/** Texts of servers, folders and receivers are escaped before they reach a terminal or a pipe. */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { runInTerminal } from '../../../../docs/terminal-run.ts'
import { expectHarmless, hostile } from '../../../../test/support/fixtures/hostile-names.ts'
import { forEachTest } from '../../../../test/support/for-tests.ts'
import { environment } from '../../../../test/support/process.ts'
import { partnerProgram } from '../../src/cli/run.ts'
import { startBusyService } from '../support/cli/busy-service.ts'
import { grandlivre, startGrandlivre, writeCredentials } from '../support/cli/command-line.ts'
import { proxiedStage } from '../support/cli/proxied-stage.ts'

const isScriptThere = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
if (!isScriptThere) console.warn('No tests in a terminal: script of util-linux is not there')

const { its, at } = proxiedStage()
beforeAll(async () => {
  await its.stage.staff.client.query('update grandlivre.folders set name = $1, reference = $1', [hostile])
  writeCredentials(at('credentials.json'), its.company, its.firm)
})

/** As a terminal shows the beginning of the hostile text. */
const shownHostile = 'Ab\\x1b[31mc\\x9b2Jd\\x07e'
const year = ['--exercice', '2025', '--out', at('year.ndjson')]
/** The words that run each command. With a token that opens several folders, some commands end in an error. */
const words: Record<string, string[]> = {
  login: ['login', '--from', at('credentials.json'), '--firm', '--replace'],
  profiles: ['profiles'],
  'profiles remove': ['profiles', 'remove', 'none'],
  doctor: ['doctor'],
  folders: ['folders'],
  pull: ['pull', ...year],
  sync: ['sync', '--to', at('copy.sqlite')],
  verify: ['verify', '--to', at('copy.sqlite')],
  listen: ['listen', 'http://localhost:9/hook', '--count', '1'],
  completion: ['completion', 'bash'],
  version: ['version'],
  'webhook list': ['webhook', 'list'],
  'webhook doctor': ['webhook', 'doctor', '1000'],
}
/** The commands that print names of folders. */
const naming = ['folders', 'pull']
/** The commands that write names of folders into a copy. */
const copying = ['sync', 'verify']

test('these tests cover every command', () => {
  expect(Object.keys(words).toSorted()).toEqual(partnerProgram.commands.map(({ name }) => name).toSorted())
})

const json = (body: unknown, status = 200) => ({
  kind: 'answer' as const,
  status,
  headers: { 'Content-Type': 'application/json', 'X-Request-Id': 'r\x9b31m\x85' },
  body: JSON.stringify(body),
})

describe.each(Object.keys(words))('%s', (name) => {
  test.runIf([...naming, ...copying].includes(name))('escapes names of folders', async () => {
    const { code, out, error } = await grandlivre(its.firm, words[name]!)
    if (copying.includes(name)) {
      expect(code).toBe(0)
      return expectHarmless(out + error)
    }
    expect(out + error).toContain(shownHostile)
    expect(out + error).toContain('h\\u202ei\\u2066j\\u2028k\\u200fl\\tm\\x0aWhole')
    expectHarmless(out + error)
  })

  test('escapes messages, ids and headers of a server', async () => {
    its.proxy.fault = () => json({ error: { code: `ERR-${hostile}`, message: hostile, details: {} } }, 400)
    const { code, out, error } = await grandlivre(its.company, words[name]!)
    expect(code).toBe({ profiles: 0, 'profiles remove': 7, completion: 0, version: 0 }[name] ?? 4)
    if (name === 'doctor') expect(out).toContain(shownHostile)
    else if (code === 4) {
      expect(error).toContain(shownHostile)
      expect(error).toContain('r\\x9b31m\\x85')
    }
    expectHarmless(out + error)
  })
})

/** Makes the proxy answer requests by the ends of their paths. */
function answers(bodies: Record<string, unknown>): void {
  its.proxy.fault = (path) => {
    const [end] = Object.keys(bodies).filter((each) => path.split('?')[0]!.endsWith(each))
    return end === undefined ? undefined : json(bodies[end])
  }
}

const period = { start: '2025-01-01', end: '2025-12-31' }
const attempt = { at: 0, status: 500, milliseconds: 1, answer: hostile, error: null, disabled: null }
const cases: [string, string[], Record<string, unknown>][] = [
  [
    'exercices to choose from',
    ['pull', ...year],
    { '/mad/exercices': [1, 2].map(() => ({ producerId: '1', name: hostile, period })) },
  ],
  [
    'addresses of receivers',
    ['webhook', 'list'],
    { '/webhook': [{ id: 1, postUrl: `http://x/${hostile}`, onEvents: [hostile], accountingFolderId: [] }] },
  ],
  [
    'answers of receivers',
    ['webhook', 'doctor', '1000'],
    {
      '/webhook/1000': { id: 1000, postUrl: 'http://localhost/', onEvents: [], accountingFolderId: [] },
      '/ping': { ...attempt, receiverDate: null, fault: null },
      '/deliveries': [],
    },
  ],
]
test.each(cases)('%s are escaped', async (_, command, bodies) => {
  answers(bodies)
  const { out, error } = await grandlivre(its.company, command)
  expect(out + error).toContain(shownHostile)
  expectHarmless(out + error)
})

test.each(cases.filter(([, [command]]) => command === 'webhook'))(
  '%s are escaped in JSON output and are unchanged once it is parsed',
  async (_, command, bodies) => {
    answers(bodies)
    const { out, error } = await grandlivre(its.company, [...command, '--json'])
    expectHarmless(out + error)
    expect(JSON.stringify(JSON.parse(out))).toContain(JSON.stringify(hostile).slice(1, 20))
  },
)

/** @returns what the terminal shows */
async function shown(words: string[], more: Record<string, string>, columns = 100): Promise<string> {
  const bytes = await runInTerminal({
    ...{ columns, rows: 24, steps: [], folder: resolve(import.meta.dirname, '../../../..') },
    command: `"${process.execPath}" packages/partner/src/grandlivre.ts ${words.join(' ')} || true`,
    env: { ...environment, ...more },
  })
  return String(bytes)
}

/** The text without the escapes of our own line of progress. */
const withoutProgress = (text: string) => text.replaceAll('\r\x1b[K', '').replaceAll('\r\n', '\n')

test.skipIf(!isScriptThere).each([[['folders']], [['pull', ...year]]])(
  'a terminal shows names of folders escaped, in results and in errors: %j',
  async (command) => {
    const text = withoutProgress(await shown(command, its.firm))
    expect(text).toContain(shownHostile)
    expectHarmless(text)
  },
)

describe('a command that has to wait, for a reason that is longer than any line,', () => {
  const busy = forEachTest(() => startBusyService(`Busy ${hostile} ${'and busy '.repeat(40)}`, 0))

  test.skipIf(!isScriptThere).each([
    [60, {}],
    [200, { NO_COLOR: '1' }],
  ])('keeps progress in one line of %i columns, without colours: %o', async (columns, more) => {
    const text = await shown(['folders'], { ...busy.env, ...more }, columns)
    // Each line of progress begins with its own escape, and ends where the next one clears it.
    const [, progress, after] = text.split('\r\x1b[K')
    expect(progress).toMatch(/^Waiting \d\.\d s: Busy Ab\\x1b\[31mc/)
    expect(progress).toHaveLength(columns - 1)
    expect(after).toContain('(ERR-TOO-MANY-REQUEST)')
    expectHarmless(withoutProgress(text))
  })

  test('prints no escape sequence without a terminal, and no line of progress in the first ten seconds', async () => {
    const { code, out, error } = await startGrandlivre(busy.env, ['folders']).ended
    expect([code, out]).toEqual([4, ''])
    expect(error).not.toContain('\x1b')
    expect(error).not.toContain('Waiting')
    expectHarmless(error)
  })

  test.skipIf(!isScriptThere)('asks no question for --out - on a terminal', async () => {
    const text = await shown(['pull', '--exercice', '2026', '--out', '-'], busy.env)
    expect(text).toContain('--out - writes bytes, and a terminal would obey control characters in them')
    expect(busy.asked).toBe(0)
  })
})
