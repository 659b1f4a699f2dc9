/** The completion scripts in real shells, and `grandlivre version`. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { runInTerminal } from '../../../../docs/terminal-run.ts'
import { environment } from '../../../../test/support/process.ts'
import { version } from '../../src/version.ts'
import { grandlivre } from '../support/cli/command-line.ts'

const isThere = (program: string) => spawnSync(program, ['--version']).status === 0
const missing = ['script', 'bash', 'zsh'].filter((program) => !isThere(program))
if (missing.length > 0)
  console.warn(`Not all tests of completion: ${missing.join(', ')} is not there, see .ci/run`)

/** The line before Tab is pressed, and the line after it. */
const cases: Record<string, string> = {
  'grandlivre pul': 'grandlivre pull',
  'grandlivre pull --form': 'grandlivre pull --format',
  'grandlivre pull --format c': 'grandlivre pull --format csv',
  'grandlivre pull --wire=g': 'grandlivre pull --wire=gzip',
  'grandlivre pull --wire=gzip --let': 'grandlivre pull --wire=gzip --lettering',
  'grandlivre pull --force --let': 'grandlivre pull --force --lettering',
  'grandlivre webhook doc': 'grandlivre webhook doctor',
  'grandlivre webhook doctor 7 --en': 'grandlivre webhook doctor 7 --enable',
  'grandlivre profiles rem': 'grandlivre profiles remove',
  'grandlivre help verif': 'grandlivre help verify',
  'grandlivre completion z': 'grandlivre completion zsh',
  'grandlivre login --from cred': 'grandlivre login --from credentials of me.json',
  'grandlivre pull --exercice cred': 'grandlivre pull --exercice cred',
  'grandlivre frobnicate p': 'grandlivre frobnicate p',
}

describe.each([
  ['bash', 'bash --norc --noprofile -i'],
  ['zsh', 'zsh -f -i'],
])('%s', (shell, command) => {
  test.skipIf(missing.includes(shell) || missing.includes('script'))('completes typed words', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'grandlivre-completion-'))
    try {
      const { out: script } = await grandlivre({}, ['completion', shell])
      writeFileSync(join(folder, 'script'), script)
      writeFileSync(join(folder, 'credentials of me.json'), '')
      // Tab completes the line. An echo before the line makes the shell print the line instead of running it.
      const lines = Object.keys(cases).map((typed) => `${typed}\t\x01echo '<'; echo \x05\n`)
      const keys = ['source ./script\n', ...lines, 'echo the end\n', 'exit\n'].join('')
      const bytes = await runInTerminal({
        command,
        columns: 200,
        rows: 50,
        steps: [{ when: '# ', keys }],
        folder,
        env: { ...environment, HOME: folder, PS1: '# ' },
      })
      const shown = stripVTControlCharacters(String(bytes)).replaceAll('\r', '')
      const completed = [...shown.matchAll(/^<\n(.*)$/gm)].map(([, line]) => line)
      expect(completed).toEqual(Object.values(cases))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

test('version names the package, its API, Node and the platform', async () => {
  const { out } = await grandlivre({}, ['version', '--json'])
  const { version: node } = process
  const platform = `${process.platform}-${process.arch}`
  expect(JSON.parse(out)).toEqual({ grandlivre: version, api: '1.0.0', node: node.slice(1), platform })
  const lines = `grandlivre ${version}\napi        1.0.0\nnode       ${node.slice(1)}\nplatform   ${platform}\n`
  expect(await grandlivre({}, ['version'])).toEqual({ code: 0, out: lines, error: '' })
})

test('an unknown shell is reported as wrong usage', async () => {
  expect(await grandlivre({}, ['completion', 'fish'])).toMatchObject({ code: 2, out: '' })
})

test('the overview lists the commands, and the help of each fits in 80 columns', async () => {
  const overview = await grandlivre({}, ['--help'])
  expect(overview.code).toBe(0)
  const names = [...overview.out.matchAll(/^ {2}([a-z]+( [a-z]+)?) {2}/gm)].map(([, name]) => name!)
  expect(names).toEqual(expect.arrayContaining(['login', 'profiles', 'doctor', 'pull']))
  for (const name of names) {
    const { code, out: help, error } = await grandlivre({}, [...name.split(' '), '--help'])
    expect([code, error]).toEqual([0, ''])
    expect(help).toContain(`Usage: grandlivre ${name}`)
    expect(help.split('\n').filter((line) => line.length > 80)).toEqual([])
  }
  expect(await grandlivre({}, ['--version'])).toEqual({ code: 0, out: `${version}\n`, error: '' })
  expect((await grandlivre({}, [])).code).toBe(2)
})
