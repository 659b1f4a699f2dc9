/** The folder that a command is about. */

import { UsageError } from '../../../terminal/src/command-errors.ts'
import type { Requests } from '../client/requests.ts'
import { refusedFailure } from './exit-codes.ts'

export interface Society {
  id: string
  name: string
  reference: string | null
}

/** Folders shown before a list is cut. */
const shownMax = 20

/**
 * @param chosen by option, environment or login file
 * @returns its id; the only one that the token opens, where none is chosen
 * @throws {UsageError} that lists the folders, if one has to be chosen
 */
export async function folderOf(
  requests: Requests,
  chosen: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (chosen !== undefined) return chosen
  const societies = (await requests.json({ path: '/society', signal })).value as Society[]
  const [only, ...others] = societies
  if (only !== undefined && others.length === 0) return only.id
  if (only === undefined) throw refusedFailure('The firm of the token has no folder')
  throw new UsageError('The token opens several folders', [...listed(societies), howToChoose])
}

const howToChoose =
  'sync takes all. Choose one: set GRANDLIVRE_SOCIETY to its id, or give --society <id> to a command or login.'

export function listed(societies: Society[]): string[] {
  const shown = societies.slice(0, shownMax).map((society) => `  ${societyText(society)}`)
  const more = societies.length - shown.length
  return more > 0 ? [...shown, `  and ${more} more: grandlivre folders lists all`] : shown
}

export function societyText({ id, name, reference }: Society): string {
  return `${id}  ${name}${reference === null ? '' : ` (${reference})`}`
}
