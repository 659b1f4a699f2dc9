/** What an access opens, as the service says. */

import { numberOf, Requests } from '../../client/requests.ts'
import type { Access } from '../access.ts'
import { refusedFailure } from '../exit-codes.ts'
import { howToChoose, listed, type Society, societyText } from '../folder.ts'

export interface Identity {
  baseUrl: string
  level: 'company' | 'firm'
  /** Id of the firm of a firm token, of the folder of a company token. */
  target: string
  /** The folder that requests are about. Null for a firm token as long as none is chosen. */
  society: Society | null
  /** All that the token opens. */
  societies: Society[]
  routes: { method: string; path: string }[]
  /** Requests of the token in one window; `resetAt` is its end, ISO 8601. */
  rate: { total: number; remaining: number; resetAt: string }
}

interface KeyInfo {
  target: { type: 'api' | 'firm'; societyId: number }
  routes: Identity['routes']
}

/** @throws {Failure} if the token does not open the folder that the access names */
export async function identify(
  { society: chosen, ...access }: Access,
  signal: AbortSignal,
): Promise<Identity> {
  // A request that names a folder is refused if the token does not open it.
  const requests = new Requests(access)
  const { answer, value } = await requests.json({ path: '/key/info', query: { mode: 'extended' }, signal })
  const { target, routes } = value as KeyInfo
  const societies = (await requests.json({ path: '/society', signal })).value as Society[]
  const wanted = chosen ?? (target.type === 'api' ? String(target.societyId) : undefined)
  const society = societies.find(({ id }) => id === wanted) ?? null
  if (chosen !== undefined && society === null)
    throw refusedFailure(`The token does not open the folder ${chosen}`, ['It opens:', ...listed(societies)])
  return {
    baseUrl: requests.baseUrl,
    level: target.type === 'api' ? 'company' : 'firm',
    target: String(target.societyId),
    society,
    societies: societies.map(({ id, name, reference }) => ({ id, name, reference })),
    routes,
    rate: {
      total: numberOf(answer, 'x-rate-limit-total'),
      remaining: numberOf(answer, 'x-rate-limit-remaining'),
      resetAt: new Date(numberOf(answer, 'x-rate-limit-reset')).toISOString(),
    },
  }
}

export function describe({ baseUrl, level, target, society, societies, rate }: Identity): string[] {
  const lines = [
    `Service: ${baseUrl}`,
    `Token:   of a ${level}${level === 'firm' ? `, id ${target}` : ''}`,
    ...(society === null ? [] : [`Folder:  ${societyText(society)}`]),
    `Rate:    ${rate.total} requests a window, ${rate.remaining} left until ${rate.resetAt}`,
  ]
  if (society !== null) return lines
  return [
    ...lines,
    societies.length === 0 ? 'The firm has no folder.' : 'The token opens these folders:',
    ...listed(societies),
    howToChoose,
  ]
}
