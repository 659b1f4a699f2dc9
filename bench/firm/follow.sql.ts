/** How long after its commit a change is in a copy that `grandlivre sync --follow` keeps. */
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Access, startCommand } from './command.ts'

const lookMs = 5
/** A token is woken at most once a second. */
const pauseMs = 1_100

/** @param file a copy that is up to date @returns milliseconds from commit to copy, for each of some changes */
export async function measureFollow(
  file: string,
  ownerUrl: string,
  access: Access,
  changes: number,
): Promise<number[]> {
  const { child } = startCommand(['sync', '--to', file, '--follow'], access)
  const stopped = once(child, 'close')
  let notes = ''
  child.stderr!.on('data', (chunk) => {
    notes += chunk
  })
  child.stdout!.resume()
  while (!notes.includes('Following')) {
    if (child.exitCode !== null) throw new Error(notes)
    await delay(lookMs)
  }
  using copy = new DatabaseSync(file, { readOnly: true })
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  const shown = copy.prepare(
    'select entry_comment from movements where society_id = ? and entry_id = ? limit 1',
  )
  const entries = copy
    .prepare('select distinct society_id, entry_id from movements order by random() limit ?')
    .all(changes) as { society_id: number; entry_id: number }[]
  const delays: number[] = []
  for (const { society_id: society, entry_id: entry } of entries) {
    await delay(pauseMs)
    const comment = `seen ${delays.length} ${Date.now()}`
    await client.query('update grandlivre.entries set comment = $1 where folder_id = $2 and id = $3', [
      comment,
      society,
      entry,
    ])
    const committed = performance.now()
    while (shown.get(society, entry)?.['entry_comment'] !== comment) await delay(lookMs)
    delays.push(performance.now() - committed)
  }
  await client.end()
  child.kill('SIGINT')
  await stopped
  return delays
}
