/** Writes commands.md from the declarations of both command lines: `npm run docs -- commands`. */
import { writeFileSync } from 'node:fs'
import { partnerProgram } from '../packages/partner/src/cli/run.ts'
import { sampleCommands } from '../packages/sample/src/sample-commands.ts'
import { helpOf, overview, type Program } from '../packages/terminal/src/command.ts'
import { staffProgram } from '../src/commands/run-cli.ts'

/** The whole page, Markdown: what --help prints. */
export function commandsPage(): string {
  const sections = [
    ...introduction,
    '## Of partners',
    ...programSections(partnerProgram),
    '## Of staff',
    ...programSections(staffProgram(sampleCommands)),
  ]
  return `${sections.join('\n\n')}\n`
}

function programSections<Context>(program: Program<Context>): string[] {
  const helps = program.commands.flatMap((command) => [
    `### ${program.call} ${command.name}`,
    block(helpOf(program, command)),
  ])
  return [block(overview(program)), ...helps]
}

const block = (lines: string[]) => ['```text', ...lines, '```'].join('\n')

const introduction = [
  '# Commands',
  '<!-- Written by `npm run docs -- commands` from the declarations of the commands: edit those, not this page. -->',
  'What `--help` prints, for every command of [partners](partners.md) and of [staff](operators.md).',
]

if (import.meta.main) writeFileSync(new URL('commands.md', import.meta.url), commandsPage())
