/** Writes errors.md from the table of errors in packages/contract/src/error-codes.ts: `npm run docs -- errors`. */
import { writeFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { errorCodes } from '../packages/contract/src/error-codes.ts'

/** The whole page, Markdown. */
export function errorsPage(): string {
  const byStatus = Map.groupBy(Object.entries(errorCodes), ([, { status }]) => status)
  const sections = [...byStatus].flatMap(([status, errors]) => [
    `## ${status} ${STATUS_CODES[status]}`,
    ...errors.flatMap(([code, { message, cause, remedy }]) => [
      `### ${code}`,
      `> ${escaped(message)}`,
      `**Cause.** ${cause}`,
      `**Remedy.** ${remedy}`,
    ]),
  ])
  return `${[...introduction, ...sections].join('\n\n')}\n`
}

/** A message may hold `<access token>`, which Markdown would take for HTML. */
function escaped(message: string): string {
  return message.replaceAll('<', '\\<')
}

const introduction = [
  '# Errors',
  '<!-- Written by `npm run docs -- errors` from packages/contract/src/error-codes.ts: edit that file, not this one. -->',
  `Every code that the service answers with, by HTTP status. [The interface](spec/interface.md#errors) describes the body
of an error. Compare \`error.code\`: codes and statuses stay, the wording of \`error.message\` may change. The quoted sentence
is the usual message of a code; a more specific one may take its place.`,
]

if (import.meta.main) writeFileSync(new URL('errors.md', import.meta.url), errorsPage())
