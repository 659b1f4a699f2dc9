/**
 * `grandlivre completion` writes a script for the shell, made from the declarations of the commands. bash and zsh use
 * the same function; zsh runs it through its bashcompinit. `grandlivre version` prints what a bug report should name.
 */
import { command, helpOption, type Options, type Program } from '../../../terminal/src/command.ts'
import { interfaceVersion } from '../client/api/calls.ts'
import { version } from '../version.ts'
import type { CommandCall } from './command.ts'

export const versionCommand = command({
  name: 'version',
  summary: 'show the versions of this package, its API and Node, and the platform',
  async run({ terminal, json }: CommandCall) {
    const { platform, arch, versions } = process
    const shown = {
      grandlivre: version,
      api: interfaceVersion,
      node: versions.node,
      platform: `${platform}-${arch}`,
    }
    if (json) terminal.json(shown)
    else terminal.print(Object.entries(shown).map(([name, value]) => `${name.padEnd(11)}${value}`))
  },
})

/** @param program returns the program to complete. It is a function because the program contains this command */
export const completion = (program: () => Program<CommandCall>) =>
  command({
    name: 'completion',
    summary: 'print a script that completes commands and options in bash or zsh',
    about: `Prints a script for the shell, which completes commands, options and their
values. It completes the word grandlivre, so the package has to be installed
globally (npm install --global), or grandlivre has to be an alias.`,
    arguments: { shell: { choices: ['bash', 'zsh'], help: 'the shell that will run the script' } },
    examples: [
      "echo 'source <(grandlivre completion bash)' >> ~/.bashrc",
      "echo 'source <(grandlivre completion zsh)' >> ~/.zshrc",
    ],
    async run({ terminal }: CommandCall, { shell }) {
      terminal.print([...(shell === 'zsh' ? zshStart : []), ...completionLines(program())])
    },
  })

const zshStart = [
  '(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }',
  'autoload -Uz bashcompinit && bashcompinit',
]

/** The value names in help that stand for paths. */
const pathNames = ['file', 'copy']

function completionLines({ call, commands, options: common }: Program<CommandCall>): string[] {
  const longestFirst = commands.toSorted((one, other) => other.name.length - one.name.length)
  const cases = longestFirst.flatMap(({ name, arguments: places = {}, options: own = {} }) => {
    const options: Options = { ...common, ...own, help: helpOption }
    const values = Object.entries(options).filter(([, { value }]) => value !== undefined)
    const choices = Object.values(places).flatMap((place) => place.choices ?? [])
    const all = [...choices, ...Object.keys(options).map((option) => `--${option}`)]
    return [
      ...values.map(([option, { value = '', choices: known = [] }]) =>
        line(`' ${name}'*' --${option} '`, pathNames.includes(value) ? ['/'] : known),
      ),
      line(`' ${name} '`, [...nextWords(commands, name), ...all]),
      line(`' ${name} '*`, all),
    ]
  })
  const groups = new Set(commands.flatMap(({ name }) => name.split(' ').slice(0, -1).join(' ') || []))
  return [
    ...completionStart(call),
    ...cases,
    ...[...groups].map((group) => line(`' ${group} '`, nextWords(commands, group))),
    line("' '", [...nextWords(commands), 'help', '--help', '--version']),
    ...completionEnd(call),
  ]
}

/**
 * The beginning of the shell function. `typed` holds the words before the one to complete, each between two blanks.
 * bash splits `--wire=g` into three words. zsh keeps it as one word; its part up to the equals sign is then in `start`.
 */
const completionStart = (call: string) => [
  `_${call}() {`,
  `  local word=\${COMP_WORDS[COMP_CWORD]} typed=' ' list='' start='' at`,
  `  for ((at = 1; at < COMP_CWORD; at++)); do [ "\${COMP_WORDS[at]}" = = ] || typed+="\${COMP_WORDS[at]} "; done`,
  '  case "$word" in',
  "    =) word='' ;;",
  `    --*=*) start="\${word%%=*}=" typed+="\${word%%=*} " word="\${word#*=}" ;;`,
  '  esac',
  `  case "\${typed/# help / }" in`,
]

/** The end of the shell function. If `list` is `/`, paths of files are offered. */
const completionEnd = (call: string) => [
  '  esac',
  '  COMPREPLY=()',
  '  if [ "$list" = / ]; then',
  '    type compopt > /dev/null 2>&1 && compopt -o filenames',
  '    while IFS= read -r at; do COMPREPLY+=("$start$at"); done < <(compgen -f -- "$word")',
  '  else',
  '    COMPREPLY=($(compgen -P "$start" -W "$list" -- "$word"))',
  '  fi',
  '}',
  `complete -F _${call} ${call}`,
]

const line = (pattern: string, words: readonly string[]) => `  ${pattern}) list='${words.join(' ')}' ;;`

/** The words that may follow `start`, the first words of a command. */
function nextWords(commands: Program<CommandCall>['commands'], start = ''): string[] {
  const before = start === '' ? 0 : start.split(' ').length
  const names = commands.filter(({ name }) => start === '' || name.startsWith(`${start} `))
  return [...new Set(names.map(({ name }) => name.split(' ')[before]!))]
}
