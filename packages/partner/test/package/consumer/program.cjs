/** A partner's program in CommonJS on the installed package. Prints what it found as one line of JSON. */
const { createHash, createHmac } = require('node:crypto')
const { Grandlivre, GrandlivreError } = require('grandlivre')
const { followLedgers, openCopy, syncCopy } = require('grandlivre/sync')
const { verifyWebhook } = require('grandlivre/webhooks')

const { GRANDLIVRE_URL: baseUrl, GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret } = process.env
const { EXERCICE: exercice, COPY: to } = process.env

async function main() {
  const ledger = new Grandlivre({ baseUrl, token, secret })
  const hash = createHash('sha256')
  for await (const chunk of ledger.movements({ exercice }).chunks()) hash.update(chunk)
  let copied = typeof followLedgers
  if (to) {
    const copy = await openCopy(to)
    copied = (await syncCopy({ ledger, copy })).copied
    await copy.close()
  }
  const refusal = await openCopy('ledger.csv').catch((error) => error)
  ledger.close()
  const body = '[]'
  const date = String(Date.now())
  const signature = createHmac('sha256', secret).update(body).update(date).digest('hex')
  const webhook = verifyWebhook({ secret, headers: { signature, date }, body })
  const isOneClass = refusal instanceof GrandlivreError
  console.log(JSON.stringify({ sha256: hash.digest('hex'), copied, isOneClass, webhook: webhook.valid }))
}

main()
