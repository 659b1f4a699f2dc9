/** The work of partners and staff of 0.2.0: streams, copies by ETag, files, events. Every outcome is counted. */
import { createHash } from 'node:crypto'
import { editEntries } from '../../../bench/changes/edits.sql.ts'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import { Findings, type Loop, repeat, Unanswered } from '../cluster/findings.ts'
import { startExports } from '../cluster/programs.ts'
import { type Caller, expected, read } from '../cluster/read.ts'
import { open } from '../download.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { namesOf } from '../stages/webhooks.ts'

import { until } from '../until.ts'
import { publishAsReleased, type ReleasedFirm, type ReleasedFolder } from './released-firm.ts'

export interface UpgradeLoad {
  /** Outcomes by the kind of work. Anything that partners must never see is a fault in its findings. */
  findings: Record<string, Findings>
  /** The longest time without an answer 200 to a small request. */
  longestMs(): number
  /** Ends all work, compares the copies, and waits until every event has arrived. */
  stop(): Promise<void>
}

const ndjson = { Accept: 'application/x-ndjson' }
const movementsOf = ({ exercices }: ReleasedFolder) =>
  `/api/v1/mad/movements?version=1.0.0&idExercice=${exercices.at(-1)!.id}`

/** Reads a stream without keeping it. Its rows and its digest must match the trailers. */
async function stream({ urls, headers, findings }: Caller, folder: ReleasedFolder): Promise<void> {
  const hash = createHash('sha256')
  let rows = 0
  let status: number | undefined
  try {
    const own = { ...headers, ...ndjson, 'society-id': folder.folderId }
    const answer = await open(urls[0] + movementsOf(folder), own)
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      hash.update(chunk)
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) rows += 1
    }
    status = answer.statusCode
    const { 'x-row-count': count, 'x-content-sha256': digest } = answer.trailers
    if (status === 200 && (count !== String(rows) || digest !== hash.digest('hex')))
      findings.add('short streams that look whole', `${rows} rows of ${count}`)
  } catch (error) {
    findings.note(`no answer: ${(error as { code?: string }).code}`)
    throw new Unanswered(String(error))
  }
  if (status === 200) return
  findings.note(`${status}`)
  throw new Unanswered(`${status}`)
}

/** @param url of the balancer @param ownerUrl of the database */
export async function startUpgradeLoad(
  url: string,
  ownerUrl: string,
  firm: ReleasedFirm,
): Promise<UpgradeLoad> {
  const [copied, edited, exported] = firm.small as [ReleasedFolder, ReleasedFolder, ReleasedFolder]
  const owner = createOwnerPool(ownerUrl, { max: 3, applicationName: 'grandlivre test' })
  owner.on('error', () => {})
  const findings: Record<string, Findings> = {}
  const loops: Loop[] = []
  const work = (name: string, everyMs: number, turn: (caller: Caller) => Promise<void>) => {
    const own = new Findings()
    findings[name] = own
    const caller = { urls: [url], headers: firm.signed, findings: own }
    loops.push(
      repeat(
        everyMs,
        () => turn(caller).then(() => own.note('done')),
        (error) => own.add('copies that are wrong', error.message),
      ),
    )
    return caller
  }
  const whole = (caller: Caller, folder: ReleasedFolder, more: Record<string, string> = {}) =>
    expected(
      read(caller, movementsOf(folder), { headers: { ...ndjson, 'society-id': folder.folderId, ...more } }),
      200,
      304,
    )

  let longestMs = 0
  let answered = Date.now()
  work('token information', 25, async (caller) => {
    await expected(read(caller, '/api/v1/key/info'), 200)
    const now = Date.now()
    longestMs = Math.max(longestMs, now - answered)
    answered = now
  })
  for (const number of [1, 2]) work(`stream ${number} of a year`, 100, (caller) => stream(caller, firm.large))

  const copies = [copied, edited].map((folder) => {
    const copy = { folder, etag: '', text: '', caller: undefined as Caller | undefined }
    copy.caller = work(`copy of folder ${folder.folderId} by ETag`, 200, async (caller) => {
      const answer = await whole(caller, folder, copy.etag === '' ? {} : { 'If-None-Match': copy.etag })
      if (answer.status === 304) return
      Object.assign(copy, { etag: String(answer.headers.etag), text: answer.text })
    })
    return copy
  })
  let edits = 0
  work('edits of a ledger', 500, async () => {
    edits += 1
    const { schemaId, folderId, exercices } = edited
    const year = { schemaId, folderId, exerciceId: exercices.at(-1)!.id }
    await inTransaction(owner, (client) => editEntries(client, year as never, 5, edits)).catch(unanswered)
  })
  const files = new Findings()
  findings['full exports'] = files
  loops.push(startExports({ urls: [url], headers: firm.signed, findings: files }, owner, exported.folderId))

  const receiver = await subscribe(url, firm)
  const staff = await publishAsReleased(ownerUrl, firm.large)
  const published: string[] = []
  work('events', 100, async () => {
    const name = `event ${published.length}`
    await staff.publish(name).catch(unanswered)
    published.push(name)
  })
  return {
    findings,
    longestMs: () => longestMs,
    stop: async () => {
      for (const loop of loops) await loop.stop()
      await staff.end()
      await owner.end()
      for (const { folder, caller, ...copy } of copies) {
        // A 304 means that the copy equals the ledger.
        const last = await whole(caller!, folder, { 'If-None-Match': copy.etag })
        const present = await whole(caller!, folder)
        if (present.text !== (last.status === 304 ? copy.text : last.text))
          caller!.findings.add('copies that are wrong', `folder ${folder.folderId}`)
      }
      const deadline = Date.now() + 60_000
      const arrived = () => new Set(namesOf(receiver.accepted('/events')))
      await until(() => arrived().size >= published.length || Date.now() > deadline)
      const names = namesOf(receiver.accepted('/events'))
      const events = findings['events']!
      const distinct = arrived()
      const missing = published.filter((name) => !distinct.has(name))
      if (missing.length > 0)
        events.add('events that readers or receivers never got', `${missing.length} of ${published.length}`)
      if (receiver.forged.length > 0) events.add('copies that are wrong', 'a signature is wrong')
      events.notes['published'] = published.length
      events.notes['delivered'] = names.length
      events.notes['delivered twice'] = names.length - distinct.size
      events.notes['out of order'] = names.filter((name, i) => numberOf(name) < numberOf(names[i - 1])).length
      await receiver.close()
    },
  }
}

const numberOf = (name = 'event 0') => Number(name.split(' ')[1])

async function subscribe(url: string, { signed, secret }: ReleasedFirm): Promise<Receiver> {
  const receiver = await startReceiver(secret)
  const created = await fetch(`${url}/api/v1/webhook`, {
    method: 'POST',
    headers: { ...signed, 'Content-Type': 'application/json' },
    body: JSON.stringify({ postUrl: `${receiver.url}/events`, onEvents: ['document'] }),
  })
  if (created.status !== 201) throw new Error(`POST /webhook was answered ${created.status}`)
  return receiver
}

function unanswered(error: Error): never {
  throw new Unanswered(error.message)
}
