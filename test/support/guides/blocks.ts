/**
 * Reads the blocks of a guide in the order in which a reader follows them. Marks are comments of Markdown:
 *
 *     <!-- file: apply.mjs -->     the next block is a file; the reader saves it under this name
 *     <!-- output -->              the next block is what the commands before it print; `...` stands for anything
 *     <!-- meanwhile: an event --> something that happens outside the page before the next block
 *     <!-- needs: a tool -->       the next block, and an event before it, are left out on machines without this tool
 *
 * A block of `sh` is run. One of `http` only shows something. Every other block needs a mark, so that none is left untried.
 */

export type Step =
  | { kind: 'run'; text: string; line: number; needs?: string }
  | { kind: 'file'; name: string; text: string; line: number; needs?: string }
  | { kind: 'output'; text: string; line: number; needs?: string }
  | { kind: 'meanwhile'; event: string; line: number; needs?: string }

interface Marks {
  file?: string
  output?: true
  needs?: string
}

/** @throws {Error} naming the line, if a block or a mark cannot be tried */
export function stepsOf(page: string): Step[] {
  const steps: Step[] = []
  let marks: Marks = {}
  const lines = page.split('\n')
  for (let place = 0; place < lines.length; place += 1) {
    const [, name, value] = /^<!-- (file|output|meanwhile|needs)(?:: (.+?))? -->$/.exec(lines[place]!) ?? []
    if (name === 'meanwhile')
      steps.push({ kind: 'meanwhile', event: value ?? '', line: place + 1, ...neededBy(marks) })
    else if (name !== undefined) marks = { ...marks, [name]: value ?? true }
    const [, indent, language] = /^( *)```(.*)$/.exec(lines[place]!) ?? []
    if (language === undefined) continue
    const end = lines.indexOf(`${indent}\`\`\``, place + 1)
    if (end < 0) throw new Error(`The block in line ${place + 1} does not end`)
    const text = lines.slice(place + 1, end).join('\n')
    steps.push(...stepOf(language, marks, text, place + 1))
    marks = {}
    place = end
  }
  return steps
}

const neededBy = ({ needs }: Marks) => (needs === undefined ? {} : { needs })

function stepOf(language: string, marks: Marks, text: string, line: number): Step[] {
  const { file, output } = marks
  const needed = neededBy(marks)
  if (file !== undefined) return [{ kind: 'file', name: file, text: `${text}\n`, line, ...needed }]
  if (output) return [{ kind: 'output', text, line, ...needed }]
  if (language === 'sh') return [{ kind: 'run', text, line, ...needed }]
  if (language === 'http') return []
  throw new Error(`The block of "${language}" in line ${line} is neither commands, nor a file, nor an output`)
}

/**
 * Whether commands printed what the page shows, apart from blanks at the ends of lines.
 * @param shown `...` stands for anything, also for several lines; alone in a line also for no line
 */
export function isOutput(printed: string, shown: string): boolean {
  const tidy = (text: string) => text.replaceAll(/[ \t]+$/gm, '').trim()
  const patterns: Record<string, string> = { '...\n': '(?:.*\n)?', '...': '.*' }
  const parts = tidy(shown).split(/(^\.{3}\n|\.{3})/m)
  const pattern = parts.map((part) => patterns[part] ?? RegExp.escape(part)).join('')
  return new RegExp(`^${pattern}$`, 's').test(tidy(printed))
}
