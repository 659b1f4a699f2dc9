/**
 * Copies, each of one exercice and kept in step by `since`. Also a prober that asks whether its answer is still valid.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import { applyDelta, readDelta } from '../changes/apply-delta.ts'
import { repeat } from './findings.ts'
import { type Caller, expected, read } from './read.ts'

export interface Year {
  folderId: string
  exerciceId: string
}

const ndjson = { Accept: 'application/x-ndjson' }

/** Path of the movements of an exercice of the caller's firm. */
function movements({ exerciceId }: Year): string {
  return `/api/v1/mad/movements?version=1.0.0&idExercice=${exerciceId}`
}

async function whole(caller: Caller, year: Year, more: Record<string, string> = {}) {
  const headers = { ...ndjson, 'society-id': year.folderId, ...more }
  const answer = await expected(read(caller, movements(year), { headers }), 200, 304)
  const cursor = String(answer.headers['x-ledger-cursor'])
  if (answer.status === 200) seen(caller, year, cursor, answer.text)
  return { ...answer, cursor, etag: String(answer.headers.etag) }
}

/** Records a state of an exercice that a caller holds, by its cursor. */
function seen({ findings }: Caller, { exerciceId }: Year, cursor: string, text: string): void {
  findings.name('cursors that name two contents', `exercice ${exerciceId}, cursor ${cursor}`, text)
}

/** @param wait seconds that a request is held while nothing changes */
export function startFollower(caller: Caller, year: Year, wait: number) {
  let copy: { cursor: string; text: string } | undefined
  const step = async (seconds: number): Promise<void> => {
    if (!copy) {
      const { cursor, text } = await whole(caller, year)
      copy = { cursor, text }
      return
    }
    const path = `${movements(year)}&since=${encodeURIComponent(copy.cursor)}&wait=${seconds}`
    const headers = { ...ndjson, 'society-id': year.folderId }
    const { status, text } = await expected(read(caller, path, { headers }), 200, 410)
    if (status === 410) {
      caller.findings.note('copies read anew')
      copy = undefined
      return
    }
    copy = { cursor: readDelta(text).cursor, text: applyDelta(copy.text, text) }
    seen(caller, year, copy.cursor, copy.text)
  }
  const broken = (error: Error) =>
    caller.findings.add('copies that are wrong', `exercice ${year.exerciceId}: ${error.message}`)
  return {
    loop: repeat(50, () => step(wait), broken),
    /** Brings the copy up to date and compares it with the database. Call it only while nothing changes. */
    check: async (owner: Pool) => {
      let present = await patiently(() => whole(caller, year))
      // The first of these turns gives up a refused cursor.
      for (let turn = 0; turn < 4 && copy?.cursor !== present.cursor; turn += 1) {
        await patiently(() => step(0))
        present = await patiently(() => whole(caller, year))
      }
      const stored = await totalsOf(owner, year)
      const own = totalsOfLines(copy?.text ?? '')
      if (copy?.text !== present.text || own !== stored)
        caller.findings.add(
          'copies that are wrong',
          `exercice ${year.exerciceId}: ${own} at ${copy?.cursor}, the service has ${totalsOfLines(present.text)} at ${present.cursor}, the database ${stored}`,
        )
    },
  }
}

/** While the first connections of a new primary are opened, a request may still fail. */
async function patiently<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (let left = 20; ; left -= 1) {
    try {
      return await ask()
    } catch (error) {
      if (left === 0) throw error
      await delay(500)
    }
  }
}

async function totalsOf(owner: Pool, { folderId, exerciceId }: Year): Promise<string> {
  const { rows } = await owner.query<{ totals: string }>(
    `select concat_ws(' ', count(*), 'movements,', coalesce(sum(m.debit), 0), coalesce(sum(m.credit), 0)) as totals
     from grandlivre.movements m
     join grandlivre.entries e on (e.schema_id, e.folder_id, e.id) = (m.schema_id, m.folder_id, m.entry_id)
     where m.folder_id = $1 and m.exercice_id = $2 and e.validated_at is not null`,
    [folderId, exerciceId],
  )
  return rows[0]!.totals
}

function totalsOfLines(text: string): string {
  let [count, debit, credit] = [0, 0, 0]
  for (const line of text.split('\n')) {
    if (line === '') continue
    const { value } = JSON.parse(line) as { value: { debit: number; credit: number } }
    count += 1
    debit += Math.round(value.debit * 100)
    credit += Math.round(value.credit * 100)
  }
  return `${count} movements, ${debit} ${credit}`
}

/** Most ETags that one request names. */
const etagsOfRequest = 40
/** Most ETags that are kept; requests name the latest of them. */
const etagsKept = 400

export function startProber(caller: Caller, year: Year) {
  const { findings } = caller
  /** Contents by ETag. */
  const known = new Map<string, string>()
  const remember = ({ etag, text }: { etag: string; text: string }) => {
    findings.name('stale 304', `ETag ${etag} of exercice ${year.exerciceId}`, text)
    known.delete(etag)
    known.set(etag, text)
    const [oldest] = known.keys()
    if (known.size > etagsKept) known.delete(oldest!)
  }
  const probe = async () => {
    const some = [...known.keys()].slice(-etagsOfRequest)
    const answer = await whole(caller, year, some.length === 0 ? {} : { 'If-None-Match': some.join(', ') })
    if (answer.status === 200) remember(answer)
    // A 304 states that the known content is the state of this cursor.
    else seen(caller, year, answer.cursor, known.get(answer.etag) ?? '')
  }
  return {
    loop: repeat(150, probe, (error) => findings.add('stale 304', error.message)),
    /** Checks that no ETag of another content is answered with 304. Call it only while nothing changes. */
    check: async () => {
      const present = await patiently(() => whole(caller, year))
      remember(present)
      const others = [...known].filter(([, text]) => text !== present.text).map(([etag]) => etag)
      for (let at = 0; at < others.length; at += etagsOfRequest) {
        const some = others.slice(at, at + etagsOfRequest)
        const answer = await patiently(() => whole(caller, year, { 'If-None-Match': some.join(', ') }))
        if (answer.status === 304) findings.add('stale 304', `${answer.etag} for one of ${some.join(' ')}`)
      }
    },
  }
}
