/**
 * Follows a fiscal year: shows the balance of each class of accounts, and again whenever the ledger changes.
 *
 *   GRANDLIVRE_URL=... GRANDLIVRE_TOKEN=... GRANDLIVRE_SECRET=... npx node examples/node/follow.ts 1115
 */
import { Grandlivre, GrandlivreError, type Movement } from 'grandlivre/client'

const {
  GRANDLIVRE_URL: baseUrl = '',
  GRANDLIVRE_TOKEN: token = '',
  GRANDLIVRE_SECRET: secret = '',
} = process.env
const ledger = new Grandlivre({ baseUrl, token, secret })
const selection = { exercice: process.argv[2] ?? '' }
/** By id. A real program has them in a database, and changes them and the cursor in one transaction. */
const movements = new Map<string, Movement>()

/** @returns the cursor: the state of the ledger that the movements show */
async function pull(): Promise<string> {
  const stream = ledger.movements(selection, { onRestart: () => movements.clear() })
  movements.clear()
  for await (const movement of stream) movements.set(movement.producerId, movement)
  return stream.progress.cursor!
}

/** Waits up to 30 seconds for a change. */
async function follow(cursor: string): Promise<string> {
  const changes = await ledger.changes(cursor, selection, { wait: 30 })
  const added: Movement[] = []
  for await (const movement of changes.items()) added.push(movement)
  for (const { producerId, entry } of movements.values())
    if (changes.ranges.some(([from, to]) => +from <= +entry.producerId && +entry.producerId <= +to))
      movements.delete(producerId)
  for (const movement of added) movements.set(movement.producerId, movement)
  return changes.cursor
}

function show(): void {
  const cents = new Map<string, number>()
  for (const { account, value } of movements.values()) {
    const first = account.number[0]!
    cents.set(first, (cents.get(first) ?? 0) + Math.round(value.debit * 100) - Math.round(value.credit * 100))
  }
  const classes = [...cents].toSorted().map(([first, sum]) => `${first}: ${(sum / 100).toFixed(2)}`)
  console.log(`${movements.size} movements; ${classes.join(', ')}`)
}

for (let cursor = await pull(), shown = ''; ; ) {
  if (cursor !== shown) show()
  shown = cursor
  cursor = await follow(cursor).catch((error) => {
    if (error instanceof GrandlivreError && error.code === 'ERR-CURSOR-EXPIRED') return pull()
    throw error
  })
}
