/** The examples as their readers run them: what they say of themselves, and of wrong words. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const examples = join(import.meta.dirname, '../../examples')

function run(name: string, ...words: string[]) {
  const argv = [join(examples, `${name}.ts`), ...words]
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8', env: {} })
  return { status, stdout, stderr }
}

describe.each([
  ['pull-year', ['--out', '--tour']],
  ['follow-ledger', ['--out', '--once']],
  ['full-export', ['--out', '--compression', 'JSON', 'TRA']],
])('%s', (name, words) => {
  test('--help shows usage, options, environment and an example, without settings', () => {
    const { status, stdout, stderr } = run(name, '--help')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const variables = ['GRANDLIVRE_URL', 'GRANDLIVRE_TOKEN', 'GRANDLIVRE_SECRET']
    for (const word of [`npx node examples/${name}.ts`, ...words, '--help', ...variables, 'Example:'])
      expect(stdout).toContain(word)
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  test('an unknown option is named, and a missing setting', () => {
    const unknown = run(name, '--foo')
    expect(unknown).toMatchObject({ status: 1, stdout: '' })
    expect(unknown.stderr).toMatch(/^Unknown option '--foo'.*\n--help shows the options\.\n$/)
    const stderr = 'Set GRANDLIVRE_URL, GRANDLIVRE_TOKEN and GRANDLIVRE_SECRET\n'
    expect(run(name)).toEqual({ status: 1, stdout: '', stderr })
  })
})

test('full-export names a compression that it does not know', () => {
  expect(run('full-export', '--compression', 'br')).toEqual({
    status: 1,
    stdout: '',
    stderr: '--compression takes gzip or zstd, not "br"\n',
  })
})
