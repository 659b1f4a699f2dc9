/** The command line of the bench. Nothing is measured: each command ends before it starts anything. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const project = new URL('../../', import.meta.url)
const { scripts } = JSON.parse(readFileSync(new URL('package.json', project), 'utf8')) as {
  scripts: Record<string, string>
}
const commands = Object.keys(scripts).filter((name) => /^bench(:|$)/.test(name))

interface Ended {
  code: number
  out: string
  err: string
}

function run(command: string, ...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      'sh',
      ['-c', `${scripts[command]} "$@"`, command, ...args],
      { cwd: project },
      (_, out, err) => resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })
}

test.each(commands)('%s answers --help with its options and what holds without them', async (command) => {
  const { code, out, err } = await run(command, '--help')
  expect([code, err]).toEqual([0, ''])
  const [usage, , ...options] = out.trimEnd().split('\n')
  expect(usage).toMatch(new RegExp(`^Usage: npm run ${command} -- `))
  expect(options.pop()).toMatch(/^ {2}--help +print this$/)
  for (const option of options)
    expect(option).toMatch(/^ {2}--[a-z]+( <[a-z]+> {2}.+ \(default .+\)| {2}.+)$/)
})

test.each(commands)('%s refuses an option that it does not have', async (command) => {
  const { code, out, err } = await run(command, '--rundes', '3')
  expect([code, out]).toEqual([1, ''])
  expect(err).toBe(`Unknown option '--rundes'. npm run ${command} -- --help lists the options.\n`)
})

test.each([
  ['--rounds', 'x', '--rounds takes a whole number from 1 to 100, not x'],
  ['--rounds', '0', '--rounds takes a whole number from 1 to 100, not 0'],
  ['--rounds', '', '--rounds takes a whole number from 1 to 100, not '],
])('%s %s is named with what it takes', async (...args) => {
  const message = args.pop()
  const { code, err } = await run('bench:small', ...args)
  expect([code, err]).toEqual([1, `${message}\n`])
})

test('--only with no such row lists the rows', async () => {
  const { code, err } = await run('bench:folders', '--only', '3 processes')
  expect(code).toBe(1)
  expect(err).toBe('--only 3 processes is none of:\n  1 process\n  2 processes\n  4 processes\n')
})
