/** The ledgers that a token may read, with their cursors (docs/spec/ledgers.md#the-list). */
import { z } from '@hono/zod-openapi'
import { opensEmployees } from '../../../auth/principal.ts'
import { compressWhole } from '../../../exports/chunks.ts'
import { framed, framings } from '../../../exports/render/framing.ts'
import { mediaTypes, type StreamedForm } from '../../../formats/file-formats.ts'
import { named } from '../../../formats/items/values.ts'
import { noteFacts, takeBackFromRate } from '../../authenticate.ts'
import { accountingFolderId, idSchema, version, wait } from '../../query.ts'
import { caching, contentHeaders, etagOf, holdsEtag, representationFor } from '../../representation.ts'
import { whenOver } from '../../request-slot.ts'
import { type TokenCall, tokenRoute } from '../../route.ts'
import { encodingHeader, ifNoneMatch, listHeaders, onlyFolder } from '../../schemas/answer-headers.ts'
import { cursorExample } from '../../schemas/changes-schema.ts'
import type { LedgerList } from '../../stream/list-reads.ts'
import { type Listed, readLedgerList } from './listed-ledgers.sql.ts'

const query = z.strictObject({ version, accountingFolderId, wait })

const id = z.string().openapi({ ...idSchema, example: '26002' })

const Ledger = named('Ledger', {
  society: id.openapi({ description: 'Id of the folder, for the header society-id' }),
  firm: named('LedgerFirm', {
    id: id.openapi({ example: '26001' }),
    name: z.string().openapi({ example: 'Cabinet Roussel' }),
  }),
  name: z.string().openapi({ example: 'Boulangerie Martin' }),
  reference: z.string().nullable().openapi({ example: 'MARTIN' }),
  cursor: z.string().openapi({
    description: 'The state of its ledger, as X-Ledger-Cursor on the routes of the folder',
    example: cursorExample,
  }),
  employees: z.boolean().openapi({
    description:
      'Whether accounts of employees come with their personal data. A copy that was made with the other value differs ' +
      'in accounts, though its cursor is the same',
  }),
})

export const ledgerList = tokenRoute({
  operationId: 'listLedgers',
  path: '/api/v1/mad/ledgers',
  groups: ['movements', 'resources'],
  summary: 'The ledgers that the token may read, each with its cursor; waits for a change',
  description:
    'Every folder of the firm, or the one of a company token, ascending by id. Compare the cursors with those that you ' +
    'have: they show which ledgers changed, came or left. With If-None-Match and wait, the request is held while the ' +
    'list is the one that you have.',
  query,
  headers: z.object({ ...ifNoneMatch, ...onlyFolder.shape }),
  answers: {
    200: {
      headers: { ...listHeaders, ...encodingHeader },
      description: 'One ledger per line with Accept: application/x-ndjson',
      content: {
        [mediaTypes.json]: { schema: z.array(Ledger) },
        [mediaTypes.ndjson]: { schema: Ledger },
      },
    },
    304: {
      headers: listHeaders,
      description: 'The list is the one that If-None-Match names; with wait, until the time was over',
    },
  },
  answer: async (call) => {
    const { c } = call
    const representation = representationFor(c)
    const etagOfList = ({ tag }: LedgerList) => etagOf(tag, representation, [])
    const isHeld = (list: LedgerList) => holdsEtag(c.req.header('if-none-match'), etagOfList(list))
    const list = await readOrWait(call, isHeld)
    const headers = { ...caching, ETag: etagOfList(list) }
    if (isHeld(list)) return c.body(null, 304, headers)
    const body = await bodyOf(list, representation)
    noteFacts(c, { rows: list.lines!.length })
    return c.body(body as Uint8Array<ArrayBuffer>, 200, {
      ...headers,
      ...contentHeaders(representation),
      'Content-Length': String(body.length),
    })
  },
})

/**
 * Reads the list. Where the caller may wait, reads it as soon as it has changed or the time is over. A token is woken
 * at most once a second (docs/spec/ledgers.md#waiting-for-a-change-of-the-list): a request that follows a change waits
 * for the rest of that second.
 */
async function readOrWait(
  call: TokenCall<z.output<typeof query>>,
  isHeld: (list: LedgerList) => boolean,
): Promise<LedgerList> {
  const { c, services, principal, query } = call
  const { notifications, waitingReads, listReads } = services
  const listed = listedFor(call)
  const ifNoneMatch = c.req.header('if-none-match')
  const shared = (held: string) => {
    const read = async (): Promise<LedgerList> => {
      const { tag, lines } = await readLedgerList(services.database, listed, services.config.timeZone, held)
      return { tag, lines: lines?.split('\n').filter(Boolean), bodies: new Map() }
    }
    return [JSON.stringify([listed, held]), read] as const
  }
  const whole = async (list: LedgerList) =>
    list.lines || isHeld(list) ? list : listReads.read(...shared(''))
  const { wait: seconds = 0 } = query
  if (seconds === 0 || ifNoneMatch === undefined)
    return whole(await listReads.read(...shared(ifNoneMatch ?? '')))
  const until = performance.now() + seconds * 1000
  const left = () => until - performance.now()
  // The watch begins before the read, so that no change in between is missed.
  using watch = await ('folderId' in listed
    ? notifications.watch('grandlivre_ledgers', listed.folderId)
    : notifications.watch('grandlivre_firms', listed.firmId))
  whenOver(c.env.outgoing, () => watch.stop())
  const token = `${principal.tokenId} ${c.get('folderId') ?? ''}`
  const [name, read] = shared(ifNoneMatch)
  // A process that is stopping answers at once.
  const pause = watch.over.aborted ? undefined : listReads.pauseOf(token)
  if (pause) await watch.meanwhile(pause, left())
  let list = await listReads.read(name, read)
  let hasWaited = pause !== undefined
  if (!isHeld(list)) listReads.pause(token)
  const readInTurn = () => waitingReads.run(principal.thirdPartyId, read)
  while (isHeld(list) && !watch.over.aborted) {
    hasWaited = true
    if (!(await watch.next(left()))) break
    const woken = await watch.meanwhile(listReads.readAfterPause(token, name, readInTurn), left())
    if (!woken) break
    list = woken
  }
  if (hasWaited && !c.env.outgoing.closed) await takeBackFromRate(c, services)
  return whole(list)
}

type Representation = ReturnType<typeof representationFor<StreamedForm>>

/** What a request lists: the folder that it concerns, or all folders of the firm. */
export function listedFor({ c, principal }: Pick<TokenCall<unknown>, 'c' | 'principal'>): Listed {
  const { schemaId, firmId } = principal
  const folderId = c.get('folderId')
  const withEmployees = opensEmployees(principal)
  if (folderId === undefined) return { schemaId, withEmployees, firmId }
  return { schemaId, withEmployees, folderId, ...(principal.level === 'firm' ? { ofFirm: firmId } : {}) }
}

/** The body, made once for all requests that share the read. */
function bodyOf({ lines = [], bodies }: LedgerList, { form, encoding }: Representation): Promise<Uint8Array> {
  const name = `${form} ${encoding}`
  const write = async () => {
    const text = Buffer.from(framed(lines, framings[form]))
    return encoding === 'identity' ? text : compressWhole(text, encoding)
  }
  const body = bodies.get(name) ?? write()
  bodies.set(name, body)
  return body
}
