/**
 * `/files/{key}?expires&name&signature`: the files of a store on the local disk. (S3 serves its files itself.) The
 * signature is the only authorization; tokens and secrets are not checked.
 *
 * An object never changes, so its ETag is derived from its key and size. Ranges make a broken download resumable.
 */
import { createHash } from 'node:crypto'
import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { limits } from '../../config.ts'
import { AppError } from '../../errors.ts'
import { mediaTypeOf } from '../../formats/file-formats.ts'
import { readFileKey } from '../../jobs/file-key.ts'
import { attachment } from '../../store/attachment.ts'
import { type FileLink, readLink } from '../../store/file-links.ts'
import { FilesystemStore, type OpenFile } from '../../store/filesystem.ts'
import { isKey, StoreError } from '../../store/store.ts'
import { holdsEtag } from '../representation.ts'
import { whenOver } from '../request-slot.ts'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'
import { type BodySource, streamBody } from '../stream/stream-export.ts'

export function addFileRoute(app: OpenAPIHono<Edge>, services: Services): void {
  app.get('/files/*', (c) => answerFile(c, services))
  app.all('/files/*', () => {
    throw new AppError('ERR-METHOD-NOT-ALLOWED', { headers: { Allow: 'GET, HEAD' } })
  })
}

async function answerFile(c: Context<Edge>, services: Services): Promise<Response> {
  const { store } = services
  if (!(store instanceof FilesystemStore)) throw new AppError('ERR-NOT-FOUND')
  const link = checkLink(c.env.incoming.url ?? '', store.signingKeys, Date.now())
  const owner = readFileKey(link.key)
  const facts = owner && {
    thirdPartyId: null,
    tokenId: null,
    schemaId: owner.schemaId,
    route: '/files',
    selection: { exportId: owner.exportId, attempt: owner.attempt },
  }
  c.set('audited', facts)
  const file = await openFile(store, link.key)
  whenOver(c.env.outgoing, () => void file.handle.close().catch(() => {}))
  const etag = `"${createHash('sha256').update(`${link.key} ${file.bytes}`).digest('base64url').slice(0, 27)}"`
  const headers: Record<string, string> = {
    ETag: etag,
    'Last-Modified': file.at.toUTCString(),
    'Cache-Control': 'private, no-cache',
    'Accept-Ranges': 'bytes',
  }
  if (holdsEtag(c.req.header('if-none-match'), etag)) return c.body(null, 304, headers)
  const range = sameFile(c.req.header('if-range'), headers) ? c.req.header('range') : undefined
  const part = rangeOf(range, file.bytes)
  if (part === 'unsatisfiable')
    throw new AppError('ERR-RANGE-NOT-SATISFIABLE', {
      headers: { 'Content-Range': `bytes */${file.bytes}`, 'Accept-Ranges': 'bytes' },
    })
  const { start, end } = part ?? { start: 0, end: file.bytes }
  if (facts && part) Object.assign(facts.selection, { from: start, to: end })
  Object.assign(headers, {
    'Content-Type': mediaTypeOf(link.key) ?? 'application/octet-stream',
    'Content-Disposition': attachment(link.fileName),
    'Content-Length': String(end - start),
    // A browser must not interpret ledger contents, which partners control, as a page of this host.
    'X-Content-Type-Options': 'nosniff',
    ...(part ? { 'Content-Range': `bytes ${start}-${end - 1}/${file.bytes}` } : {}),
  })
  const status = part ? 206 : 200
  if (c.req.method === 'HEAD') return c.body(null, status, headers)
  return c.body(streamBody(c, services, 'file.broken', sourceOf(file, start, end)), status, headers)
}

/** @throws {AppError} 404 if the path is not a file key, 403 if the signature is wrong, 410 if the link has expired */
function checkLink(target: string, signingKeys: readonly string[], now: number): FileLink {
  if (!isKey(target.split('?', 1)[0]!.slice('/files/'.length))) throw new AppError('ERR-NOT-FOUND')
  const link = readLink(target, signingKeys)
  if (!link) throw new AppError('ERR-FILE-LINK-INVALID')
  if (link.expires * 1000 <= now) throw new AppError('ERR-FILE-LINK-EXPIRED')
  return link
}

async function openFile(store: FilesystemStore, key: string): Promise<OpenFile> {
  const file = await store.open(key).catch((cause: unknown) => {
    throw cause instanceof StoreError ? new AppError('ERR-UNAVAILABLE', { cause }) : cause
  })
  // The link is valid, so retention must have removed the file.
  if (!file) throw new AppError('ERR-FILE-LINK-EXPIRED', { message: 'The file is no longer kept' })
  return file
}

/** `If-Range`: a range is useful only if the client holds the beginning of this same file. */
function sameFile(ifRange: string | undefined, headers: Record<string, string>): boolean {
  return ifRange === undefined || ifRange === headers['ETag'] || ifRange === headers['Last-Modified']
}

/**
 * Returns the requested range as [start, end). Returns undefined if the header asks for no range or several, has
 * another unit, or is malformed: the whole file is then a valid answer (RFC 9110, 14.2).
 */
function rangeOf(
  range: string | undefined,
  bytes: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') {
    const length = Math.min(Number(last), bytes)
    return length === 0 ? 'unsatisfiable' : { start: bytes - length, end: bytes }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= bytes) return 'unsatisfiable'
  return { start, end: last === '' ? bytes : Math.min(Number(last) + 1, bytes) }
}

/** The bytes from `start` to `end`. Reading fails if the handle was closed because the client disconnected. */
function sourceOf({ handle }: OpenFile, start: number, end: number): BodySource {
  let at = start
  return {
    read: async () => {
      if (at === end) return undefined
      const buffer = new Uint8Array(Math.min(limits.chunkBytes, end - at))
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at)
      if (bytesRead === 0) throw new Error(`the file ends at ${at} instead of ${end} bytes`)
      at += bytesRead
      return buffer.subarray(0, bytesRead)
    },
    cancel: () => {},
  }
}
