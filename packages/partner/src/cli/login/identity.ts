/** What an access opens, as the service says. */

import { numberOf } from '../../client/requests.ts'
import type { Call } from '../command.ts'
import { refusedFailure } from '../exit-codes.ts'
import { listed, type Society, societyText } from '../folder.ts'

export interface Identity {
  baseUrl: string
  level: 'company' | 'firm'
  /** Id of the firm of a firm token, of the folder of a company token. */
  target: string
  /** The folder that requests are about. Null for a firm token as long as none is chosen. */
  society: Society | null
  /** All that the token opens. */
  societies: Society[]
  /** Groups of routes, and the end of the token, ISO 8601: null if it has none. Not of an older service. */
  groups?: string[] | undefined
  expiresAt?: string | null | undefined
  /** Requests of the token in one window; `resetAt` is its end, ISO 8601. */
  rate: { total: number; remaining: number; resetAt: string }
  /** How far the clock of this machine is ahead of the service's, give or take a second; null: it did not say. */
  clockAheadMs: number | null
}

interface KeyInfo {
  target: { type: 'api' | 'firm'; societyId: number }
  groups?: string[]
  expiresAt?: string | null
}

/** @throws {Failure} if the token does not open the folder that the access names */
export async function identify(
  { library, signal }: Pick<Call, 'library' | 'signal'>,
  { society: chosen, ...access }: Parameters<Call['library']>[0],
): Promise<Identity> {
  // A request that names a folder is refused if the token does not open it.
  const { requests } = library(access)
  const { answer, value } = await requests.json({ path: '/key/info', query: { mode: 'extended' }, signal })
  const clockAheadMs = Date.now() - Date.parse(answer.headers['date'] ?? '')
  const { target, groups, expiresAt } = value as KeyInfo
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
    groups,
    expiresAt,
    rate: {
      total: numberOf(answer, 'x-rate-limit-total'),
      remaining: numberOf(answer, 'x-rate-limit-remaining'),
      resetAt: new Date(numberOf(answer, 'x-rate-limit-reset')).toISOString(),
    },
    clockAheadMs: Number.isNaN(clockAheadMs) ? null : clockAheadMs,
  }
}

/** In words: what `login` and `doctor` show. */
export function factsOf({ level, target, groups, expiresAt, society, societies, rate }: Identity) {
  const end = expiresAt === undefined ? [] : [expiresAt === null ? 'without end' : `ends ${expiresAt}`]
  const opened = groups ? [[groups].flat().join(', ')] : []
  return {
    token: [`of a ${level}${level === 'firm' ? `, id ${target}` : ''}`, ...opened, ...end].join('; '),
    folder: society
      ? societyText(society)
      : `all ${societies.length} of the firm; grandlivre folders lists them`,
    rate: `${rate.total} requests a window, ${rate.remaining} left until ${rate.resetAt}`,
  }
}
