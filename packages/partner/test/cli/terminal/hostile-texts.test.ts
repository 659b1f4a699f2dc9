/** What servers, folders and receivers write reaches no terminal of a partner as it is. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runInTerminal } from '../../../../../docs/terminal-run.ts'
import { expectHarmless, hostile } from '../../../../../test/support/fixtures/hostile-names.ts'
import { environment } from '../../../../../test/support/process.ts'
import { type ExportStage, setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import { partnerProgram } from '../../../src/cli/run.ts'
import { accessOf, grandlivre, writeCredentials } from '../../support/cli/command-line.ts'
import { type FaultyProxy, startFaultyProxy } from '../../support/client/faulty-proxy.ts'

const isScriptThere = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
if (!isScriptThere) console.warn('No tests in a terminal: script of util-linux is not there')

/** Home, and place of files. */
const folder = mkdtempSync(join(tmpdir(), 'grandlivre-hostile-'))
let stage: ExportStage
let proxy: FaultyProxy
let company: Record<string, string>
let firm: Record<string, string>
beforeAll(async () => {
  stage = await setExportStage()
  proxy = await startFaultyProxy(stage.service.url)
  await stage.staff.client.query('update grandlivre.folders set name = $1, reference = $1', [hostile])
  const home = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder }
  company = { ...accessOf(proxy.url, stage.company), ...home }
  firm = { ...accessOf(proxy.url, stage.firm), ...home }
  writeCredentials(join(folder, 'credentials.json'), company, firm)
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await proxy?.close()
  await stage?.close()
})
beforeEach(() => {
  proxy.fault = () => undefined
})

const at = (name: string) => join(folder, name)
const year = ['--exercice', '2025', '--out', at('year.ndjson')]
/** Every command, as far as it gets with a token that opens several folders. */
const words: Record<string, () => string[]> = {
  login: () => ['login', '--from', at('credentials.json'), '--firm', '--replace'],
  profiles: () => ['profiles'],
  'profiles remove': () => ['profiles', 'remove', 'none'],
  doctor: () => ['doctor'],
  folders: () => ['folders'],
  pull: () => ['pull', ...year],
  sync: () => ['sync', '--to', at('copy.sqlite')],
  verify: () => ['verify', '--to', at('copy.sqlite')],
  listen: () => ['listen', 'http://localhost:9/hook', '--count', '1'],
  completion: () => ['completion', 'bash'],
  version: () => ['version'],
  'webhook list': () => ['webhook', 'list'],
  'webhook doctor': () => ['webhook', 'doctor', '1000'],
}
/** Those that name folders of the service. A copy has their names, too. */
const naming = ['folders', 'pull']
const copying = ['sync', 'verify']

test('no command is missing here', () => {
  expect(Object.keys(words).toSorted()).toEqual(partnerProgram.commands.map(({ name }) => name).toSorted())
})

const json = (body: unknown, status = 200) => ({
  kind: 'answer' as const,
  status,
  headers: { 'Content-Type': 'application/json', 'X-Request-Id': 'r\x9b31m\x85' },
  body: JSON.stringify(body),
})

describe.each(Object.keys(words))('%s', (name) => {
  test.runIf([...naming, ...copying].includes(name))('with names of folders', async () => {
    const { code, out, error } = await grandlivre(firm, words[name]!())
    if (copying.includes(name)) {
      expect(code).toBe(0)
      return expectHarmless(out + error)
    }
    expect(out + error).toContain('Ab\\x1b[31mc\\x9b2Jd\\x07e')
    expect(out + error).toContain('h\\u202ei\\u2066j\\u2028k\\u200fl\\tm\\x0aWhole')
    expectHarmless(out + error)
  })

  test('with messages, ids and headers of a server', async () => {
    proxy.fault = () => json({ error: { code: `ERR-${hostile}`, message: hostile, details: {} } }, 400)
    const { code, out, error } = await grandlivre(company, words[name]!())
    expect(code).toBe({ profiles: 0, 'profiles remove': 7, completion: 0, version: 0 }[name] ?? 4)
    if (name === 'doctor') expect(out).toContain('Ab\\x1b[31mc\\x9b2Jd\\x07e')
    else if (code === 4) {
      expect(error).toContain('Ab\\x1b[31mc\\x9b2Jd\\x07e')
      expect(error).toContain('r\\x9b31m\\x85')
    }
    expectHarmless(out + error)
  })
})

/** Answers by the ends of paths. */
function answers(bodies: Record<string, unknown>): void {
  proxy.fault = (path) => {
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
test.each(cases)('%s', async (_, command, bodies) => {
  answers(bodies)
  const { out, error } = await grandlivre(company, command)
  expect(out + error).toContain('Ab\\x1b[31mc\\x9b2Jd\\x07e')
  expectHarmless(out + error)
})

test.each(cases.filter(([, [command]]) => command === 'webhook'))(
  '%s in JSON are escaped by JSON, and the same when they are read',
  async (_, command, bodies) => {
    answers(bodies)
    const { out, error } = await grandlivre(company, [...command, '--json'])
    expectHarmless(out + error)
    expect(JSON.stringify(JSON.parse(out))).toContain(JSON.stringify(hostile).slice(1, 20))
  },
)

describe.skipIf(!isScriptThere)('in a terminal', () => {
  /** @returns what the terminal shows, without the escapes of our own line of progress */
  async function shown(env: Record<string, string>, command: string[]): Promise<string> {
    const bytes = await runInTerminal({
      command: `"${process.execPath}" packages/partner/src/grandlivre.ts ${command.map((word) => `'${word}'`).join(' ')} || true`,
      columns: 100,
      rows: 24,
      steps: [],
      folder: resolve(import.meta.dirname, '../../../../..'),
      env: { ...environment, ...env },
    })
    return String(bytes).replaceAll('\r\x1b[K', '').replaceAll('\r\n', '\n')
  }

  test('names of folders, in a result and in an error', async () => {
    for (const command of [['folders'], ['pull', ...year]]) {
      const text = await shown(firm, command)
      expect(text).toContain('Ab\\x1b[31mc\\x9b2Jd\\x07e')
      expectHarmless(text)
    }
  })

  test('what a server says while it lets a command wait, in the line of progress', async () => {
    let asked = 0
    const busy = createServer((_, answer) => {
      asked += 1
      const status = asked === 1 ? 429 : 400
      const body = JSON.stringify({ error: { code: 'ERR-TOO-MANY-REQUEST', message: hostile, details: {} } })
      answer.writeHead(status, { 'Content-Type': 'application/json', 'Retry-After': '0' }).end(body)
    })
    await new Promise<void>((listening) => {
      busy.listen(0, '127.0.0.1', listening)
    })
    const url = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`
    const text = await shown({ ...company, GRANDLIVRE_URL: url }, ['pull', ...year])
    busy.close()
    expect(text).toMatch(/Waiting .*Ab\\x1b\[31mc/)
    expectHarmless(text)
  })
})
