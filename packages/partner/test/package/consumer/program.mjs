/** A partner's program on the installed package. Prints what it found as one line of JSON. */
import { createHash, createHmac } from 'node:crypto'
import { Grandlivre, readRows } from 'grandlivre'
import { verifyWebhook } from 'grandlivre/webhooks'

const { GRANDLIVRE_URL: baseUrl, GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret } = process.env
const { EXERCICE: exercice, OLD_CURSOR: oldCursor, OUT: out } = process.env

const ledger = new Grandlivre({ baseUrl, token, secret })
const stream = ledger.movements({ exercice })
const hash = createHash('sha256')
for await (const chunk of stream.chunks()) hash.update(chunk)

let items = 0
for await (const movement of ledger.movements({ exercice })) if (movement.account.number) items += 1

const changes = await ledger.changes(oldCursor, { exercice })
let changed = 0
for await (const movement of changes.items()) if (movement.entry.producerId) changed += 1

let rows = 0
let last
for await (const part of ledger.ledgerChanges()) {
  if (part.kind === 'rows') for (const row of readRows(part.bytes)) if (row[0]) rows += 1
  last = part
}

const file = await ledger.fullExport({ format: 'csv', compression: 'gzip' })
const downloaded = await file.download(out)
const exercices = await ledger.get('/mad/exercices')

const body = JSON.stringify([{ name: 'ping', operation: 'VOID', scope: { schemaId: 1 }, data: {} }])
const date = String(Date.now())
const signature = createHmac('sha256', secret).update(body).update(date).digest('hex')
const webhook = verifyWebhook({ secret, headers: { signature, date }, body })
const forged = verifyWebhook({ secret, headers: { signature, date }, body: `${body} ` })

ledger.close()
console.log(
  JSON.stringify({
    sha256: hash.digest('hex'),
    rows: stream.progress.rows,
    isProved: stream.progress.provedBy !== undefined,
    items,
    changed,
    ledgers: [rows, last],
    status: file.status,
    downloaded,
    exercices,
    webhook: [webhook.valid, forged.valid],
  }),
)
