/** The command line of the bench. Nothing is measured: each command ends before it starts anything. */
import { execFile } from 'node:child_process'
import { expect, test } from 'vitest'
import { benches } from '../../bench/bench.ts'

const project = new URL('../../', import.meta.url)

interface Ended {
  code: number
  out: string
  err: string
}

function run(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ['bench/bench.ts', ...args], { cwd: project }, (_, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })
}

test.each(Object.keys(benches))(
  '%s answers --help with its options and what holds without them',
  async (name) => {
    const { code, out, err } = await run(name, '--help')
    expect([code, err]).toEqual([0, ''])
    const [usage, , ...options] = out.trimEnd().split('\n')
    expect(usage).toMatch(new RegExp(`^Usage: npm run bench -- ${name} `))
    expect(options.pop()).toMatch(/^ {2}--help +print this$/)
    for (const option of options)
      expect(option).toMatch(/^ {2}--[a-z]+( <[a-z]+> {2}.+ \(default .+\)| {2}.+)$/)
  },
)

test('an option that the bench does not have is refused', async () => {
  const name = Object.keys(benches)[0]!
  const { code, out, err } = await run(name, '--rundes', '3')
  expect([code, out]).toEqual([1, ''])
  expect(err).toBe(`Unknown option '--rundes'. npm run bench -- ${name} --help lists the options.\n`)
})

test.each([
  ['--rounds', 'x', '--rounds takes a whole number from 1 to 100, not x'],
  ['--rounds', '0', '--rounds takes a whole number from 1 to 100, not 0'],
  ['--rounds', '', '--rounds takes a whole number from 1 to 100, not '],
])('a wrong value, %s %s, is refused with the values that the option accepts', async (...args) => {
  const message = args.pop()
  const { code, err } = await run('small', ...args)
  expect([code, err]).toEqual([1, `${message}\n`])
})

test('--only with an unknown row lists the rows', async () => {
  const { code, err } = await run('folders', '--only', '3 processes')
  expect(code).toBe(1)
  expect(err).toBe('--only 3 processes is none of:\n  1 process\n  2 processes\n  4 processes\n')
})

test('without a name the benches are listed, and an unknown name is refused', async () => {
  const { code, out } = await run()
  expect(code).toBe(0)
  for (const [name, { about }] of Object.entries(benches))
    expect(out).toContain(`npm run bench -- ${name}\n  ${about}\n`)
  expect(await run('weather')).toEqual({ code: 1, out, err: 'npm run bench has no weather\n' })
})
