/** Asks the service what an access opens: the facts of its token, and the folder that a command works on. */
import { UsageError } from '../../../terminal/src/command-errors.ts'
import type { Society, TokenInformation } from '../client/api/routes.ts'
import { numberOf } from '../client/requests.ts'
import type { CommandCall } from './command.ts'
import { refusedFailure } from './exit-codes.ts'

type NamedFolder = Pick<Society, 'id' | 'name' | 'reference'>

/** Most folders that an error lists. */
const shownMax = 20

/**
 * @returns the id of the chosen folder, or of the only folder that the token opens
 * @throws {UsageError} that lists the folders, if the user has to choose one
 */
export async function folderOf({ access, ledger, signal }: CommandCall): Promise<string> {
  const { society: chosen } = access()
  if (chosen !== undefined) return chosen
  const societies = await ledger().get('/society', { signal })
  const [only, ...others] = societies
  if (only !== undefined && others.length === 0) return only.id
  if (only === undefined) throw refusedFailure('The firm of the token has no folder')
  throw new UsageError('The token opens several folders', [
    ...societyLines(societies),
    'sync takes all. Choose one: set GRANDLIVRE_SOCIETY to its id, or give --society <id> to a command or login.',
  ])
}

/** Services of older versions send only the target. */
type OpenedByToken = Extract<TokenInformation, { target: unknown }>
type KeyInfo = Pick<OpenedByToken, 'target'> & Partial<OpenedByToken>

export type Identity = Awaited<ReturnType<typeof identify>>

/** @throws {Failure} if the token does not open the folder that the access names */
export async function identify(
  { library, signal }: Pick<CommandCall, 'library' | 'signal'>,
  { society: chosen, ...access }: Parameters<CommandCall['library']>[0],
) {
  // The requests name no folder: the service would refuse a folder that the token does not open.
  const ledger = library(access)
  const { requests } = ledger
  const { answer, value } = await requests.json({ path: '/key/info', query: { mode: 'extended' }, signal })
  const clockAheadMs = Date.now() - Date.parse(answer.headers['date'] ?? '')
  const { target, groups, expiresAt } = value as KeyInfo
  const societies = await ledger.get('/society', { signal })
  const wanted = chosen ?? (target.type === 'api' ? String(target.societyId) : undefined)
  const society = societies.find(({ id }) => id === wanted) ?? null
  if (chosen !== undefined && society === null)
    throw refusedFailure(`The token does not open the folder ${chosen}`, [
      'It opens:',
      ...societyLines(societies),
    ])
  return {
    baseUrl: requests.baseUrl,
    level: target.type === 'api' ? 'company' : 'firm',
    /** Id of the firm for a firm token, of the folder for a company token. */
    target: String(target.societyId),
    /** The folder that requests are about; null for a firm token until a folder is chosen. */
    society,
    /** All folders that the token opens. */
    societies: societies.map(({ id, name, reference }) => ({ id, name, reference })),
    /**
     * Groups of routes that the token opens, and when it expires: ISO 8601, or null for never. An older service sends
     * neither.
     */
    groups,
    expiresAt,
    /** How many requests the token may send in a window. `resetAt` is the end of the window, in ISO 8601. */
    rate: {
      total: numberOf(answer, 'x-rate-limit-total'),
      remaining: numberOf(answer, 'x-rate-limit-remaining'),
      resetAt: new Date(numberOf(answer, 'x-rate-limit-reset')).toISOString(),
    },
    /**
     * Milliseconds by which this machine's clock is ahead of the service's, to within a second; null if the service
     * sent no date.
     */
    clockAheadMs: Number.isNaN(clockAheadMs) ? null : clockAheadMs,
  }
}

/** The facts in words, as `login` and `doctor` show them. */
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

function societyLines(societies: readonly NamedFolder[]): string[] {
  const shown = societies.slice(0, shownMax).map((society) => `  ${societyText(society)}`)
  const more = societies.length - shown.length
  return more > 0 ? [...shown, `  and ${more} more: grandlivre folders lists all`] : shown
}

function societyText({ id, name, reference }: NamedFolder): string {
  return `${id}  ${name}${reference === null ? '' : ` (${reference})`}`
}
