/**
 * How long after its commit a change is in a copy that `grandlivre sync --follow` keeps in SQLite: a row of the target is
 * read every few milliseconds until it shows the change. At the default rate of 20 requests in 10 s.
 *
 * `node bench/partner/follow.ts <address of the database's owner> <folder of a copy> [changes]`, with GRANDLIVRE_URL,
 * GRANDLIVRE_TOKEN and GRANDLIVRE_SECRET of a company token.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

/** A change makes four or five requests, of which two a second are allowed. */
const pauseMs = 2_600
const lookMs = 5

const [ownerUrl, folder = '.', count = '100'] = process.argv.slice(2)
const file = join(folder, 'follow.sqlite')
const program = resolve(import.meta.dirname, '../../packages/partner/src/grandlivre.ts')
const child = spawn(process.execPath, [program, 'sync', '--to', file, '--follow'], {
  stdio: ['ignore', 'inherit', 'pipe'],
})
const stopped = once(child, 'close')
let notes = ''
child.stderr.on('data', (chunk) => {
  notes += chunk
})
while (!notes.includes('Following the ledger')) {
  if (child.exitCode !== null) throw new Error(notes)
  await delay(lookMs)
}
const copy = new DatabaseSync(file, { readOnly: true })
const client = new pg.Client({ connectionString: ownerUrl })
await client.connect()
const shown = copy.prepare('select entry_comment from entries where entry_id = ?')
const entries = copy
  .prepare('select entry_id from entries where draft = 0 order by random() limit ?')
  .all(Number(count))
const delays: number[] = []
for (const { entry_id: id } of entries) {
  const comment = `seen ${delays.length} ${Date.now()}`
  await client.query('update grandlivre.entries set comment = $1 where id = $2', [comment, String(id)])
  const committed = performance.now()
  while (shown.get(id!)?.['entry_comment'] !== comment) await delay(lookMs)
  delays.push(performance.now() - committed)
  await delay(pauseMs)
}
delays.sort((a, b) => a - b)
const at = (share: number) =>
  Math.round(delays[Math.min(delays.length - 1, Math.floor(share * delays.length))]!)
console.log(`${delays.length} changes: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, most ${at(1)} ms`)
await client.end()
copy.close()
child.kill('SIGINT')
await stopped
