/** Which media type and encoding of an answer a request gets, and how ETags name them. */
import type { Context } from 'hono'
import Negotiator from 'negotiator'
import { AppError } from '../errors.ts'
import type { Encoding, Representation } from '../exports/run/task.ts'
import { mediaTypes, streamedForms } from '../formats/file-formats.ts'
import type { Edge } from './route.ts'

/** Many clients ask for JSON by its charset, of which it has one alone. */
const acceptable = Object.values(mediaTypes).flatMap((type) => [type, `${type};charset=utf-8`])

/** Negotiator 1.0 ranks what a client likes alike; its published types are those of 0.6. */
interface RankingNegotiator {
  encodings(available: readonly string[], options: { preferred: readonly string[] }): string[]
}

/** The representation that a request asks for. @throws {AppError} ERR-NOT-ACCEPTABLE */
export function representationFor(c: Context<Edge>): Representation {
  const representation = negotiate(c.req.header('accept'), c.req.header('accept-encoding'))
  if (representation) return representation
  throw new AppError('ERR-NOT-ACCEPTABLE', {
    message: `Served are ${Object.values(mediaTypes).join(' and ')}`,
  })
}

/**
 * The representation a client likes best; JSON and zstd where it likes several alike.
 * @returns undefined where it accepts no form there is (406). An unknown encoding is no reason to refuse: a body
 * without encoding can always be read.
 */
export function negotiate(
  accept: string | undefined,
  acceptEncoding: string | undefined,
): Representation | undefined {
  const negotiator = new Negotiator({
    // Without the header every encoding is acceptable by the letter; in practice the client reads none.
    headers: { accept: accept || '*/*', 'accept-encoding': acceptEncoding ?? 'identity' },
  })
  const mediaType = negotiator.mediaType(acceptable)?.split(';', 1)[0]
  const form = streamedForms.find((name) => mediaTypes[name] === mediaType)
  if (form === undefined) return undefined
  const preferred: Encoding[] = ['zstd', 'gzip', 'identity']
  const encoding = (negotiator as RankingNegotiator).encodings(preferred, { preferred })[0] as
    | Encoding
    | undefined
  return { form, encoding: encoding ?? 'identity' }
}

/**
 * A strong ETag: what is selected at which ledger version, then which bytes of it.
 * @param tag see selectionTag
 * @param after the movement behind which a resumed answer begins
 */
export function etagOf(tag: string, { form, encoding }: Representation, after: string | undefined): string {
  const parts = [
    tag,
    form,
    ...(encoding === 'identity' ? [] : [encoding]),
    ...(after ? [`after-${after}`] : []),
  ]
  return `"${parts.join('.')}"`
}

/** `If-None-Match`: whether the client has exactly these bytes. */
export function holdsEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  return ifNoneMatch !== undefined && (ifNoneMatch.trim() === '*' || listEtags(ifNoneMatch).includes(etag))
}

/**
 * `If-Match`: whether one of its tags names this selection at this ledger version, in any representation: the first
 * part of a transfer may have been compressed and the second not.
 */
export function namesSelection(ifMatch: string, tag: string): boolean {
  return ifMatch.trim() === '*' || listEtags(ifMatch).some((etag) => etag.slice(1, -1).split('.')[0] === tag)
}

/** The opaque tags of a list, quotes included; `W/` is dropped, as caches on the way may add it. */
function listEtags(header: string): string[] {
  return [...header.matchAll(/(?:W\/)?("[^"]*")/g)].map((match) => match[1]!)
}
