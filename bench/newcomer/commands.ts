/**
 * The commands of the README that a newcomer pastes. A comment before a block names it: `<!-- newcomer: file -->`. A
 * command that goes on running has the text that it prints once it is ready: `<!-- newcomer: service, "listening" -->`.
 */

export interface Commands {
  /** As the README has them, comments included: bash runs it. */
  text: string
  /** Absent: the commands end by themselves. */
  ready?: string
}

export const blocks = ['install', 'service', 'login', 'file', 'receiver', 'listen', 'event', 'sql'] as const

/** @throws {Error} if there is no such block, or another after the mark than one of `sh` */
export function commandsOf(readme: string, name: (typeof blocks)[number]): Commands {
  const mark = new RegExp(
    `<!-- newcomer: ${name}(?:, "(?<ready>[^"]+)")? -->\\n+\`\`\`sh\\n(?<text>[\\s\\S]*?)\`\`\``,
  )
  const { text, ready } = readme.match(mark)?.groups ?? {}
  if (text === undefined) throw new Error(`README.md has no block of sh after <!-- newcomer: ${name} -->`)
  return ready === undefined ? { text } : { text, ready }
}
