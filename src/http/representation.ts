/**
 * Negotiates the media type, the encoding and the digest of an answer. Builds and matches ETags, which name the media
 * type and the encoding.
 */
import type { Context } from 'hono'
import Negotiator from 'negotiator'
import { parseDictionary } from 'structured-headers'
import { AppError } from '../errors.ts'
import type { Encoding, Representation } from '../exports/run/task.ts'
import { mediaTypes, streamedForms } from '../formats/file-formats.ts'
import type { Edge } from './route.ts'

type Form = keyof typeof mediaTypes

/**
 * The representation that the client of a request prefers. JSON and zstd win ties. An unknown encoding is no error: any
 * client can read a body without encoding.
 * @param forms the forms that the answer exists in; the first one wins ties
 * @throws {AppError} ERR-NOT-ACCEPTABLE
 */
export function representationFor<Of extends Form = (typeof streamedForms)[number]>(
  { req }: { req: Pick<Context<Edge>['req'], 'header'> },
  forms: readonly Of[] = streamedForms as readonly Form[] as readonly Of[],
): Representation<Of> {
  const accept = req.header('accept') || '*/*'
  // Without the header, every encoding is formally acceptable; in practice such a client decodes none.
  const negotiator = new Negotiator({
    headers: { accept, 'accept-encoding': req.header('accept-encoding') ?? 'identity' },
  })
  // Many clients add the charset to the media type; only UTF-8 exists for JSON.
  const types = forms.map((form) => mediaTypes[form])
  const acceptable = types.flatMap((type) => [type, `${type};charset=utf-8`])
  const mediaType = negotiator.mediaType(acceptable)?.split(';', 1)[0]
  const form = forms.find((name) => mediaTypes[name] === mediaType)
  if (form === undefined) {
    const condition = (forms as readonly Form[]) === streamedForms ? '' : ' with these parameters'
    const message = `This route serves ${types.join(' and ')}${condition}`
    throw new AppError('ERR-NOT-ACCEPTABLE', { message })
  }
  const preferred: Encoding[] = ['zstd', 'gzip', 'identity']
  // Negotiator 1.0 ranks encodings of equal weight by `preferred`; its published types are those of 0.6.
  const ranking = negotiator as { encodings(available: string[], options: object): string[] }
  const [encoding] = ranking.encodings(preferred, { preferred }) as Encoding[]
  return { form, encoding: encoding ?? 'identity' }
}

/** Headers of answers that have an ETag, or are for this caller alone. */
export const caching = {
  'Cache-Control': 'private, no-cache',
  Vary: 'Accept, Accept-Encoding, Authorization, society-id',
}

export function contentHeaders({ form, encoding }: Representation<Form>): Record<string, string> {
  return {
    'Content-Type': mediaTypes[form],
    ...(encoding === 'identity' ? {} : { 'Content-Encoding': encoding }),
  }
}

/**
 * `Want-Content-Digest` (RFC 9530): whether the caller wants the SHA-256 of the body. It does unless it gives `sha-256`
 * the preference 0. Other algorithms do not count. The header is a dictionary (RFC 9651): of two preferences the last
 * counts, and a malformed one has no effect.
 */
export function wantsSha256(wantContentDigest = ''): boolean {
  try {
    const [preference] = parseDictionary(wantContentDigest).get('sha-256') ?? []
    return preference !== 0
  } catch {
    return true
  }
}

/**
 * A strong ETag: the selection and ledger version, then the representation.
 * @param tag names selection and ledger version (see selectionTag)
 * @param parts which part of the selection the answer shows, if not all of it: `after-4711`
 */
export function etagOf(
  tag: string,
  { form, encoding }: Representation<Form>,
  parts: readonly string[],
): string {
  return `"${[tag, form, ...(encoding === 'identity' ? [] : [encoding]), ...parts].join('.')}"`
}

/** `If-None-Match`: whether the client already has exactly these bytes. */
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

/** The opaque tags of a list, quotes included. `W/` is dropped, because caches on the way may add it. */
function listEtags(header: string): string[] {
  return [...header.matchAll(/(?:W\/)?("[^"]*")/g)].map((match) => match[1]!)
}
