/** The page of the commands, and that their declarations say something of everything that they take. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandsPage } from '../../docs/commands-page.ts'
import { partnerProgram } from '../../packages/partner/src/cli/run.ts'
import { sampleCommands } from '../../packages/sample/src/sample-commands.ts'
import { staffProgram } from '../../src/commands/run-cli.ts'

test('the commands page matches the declarations of the commands (npm run docs -- commands)', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/commands.md'), 'utf8')
  expect(page).toBe(commandsPage())
})

test('every argument and option has a help, and no name stands for both', () => {
  const commands = [...partnerProgram.commands, ...staffProgram(sampleCommands).commands]
  for (const { name, arguments: places = {}, options = {} } of commands) {
    const taken = [...Object.entries(places), ...Object.entries(options)]
    const silent = taken.filter(([, { help }]) => help.trim() === '').map(([word]) => `${name}: ${word}`)
    expect(silent).toEqual([])
    expect(new Set(taken.map(([word]) => word)).size).toBe(taken.length)
  }
})
