/**
 * Sums a year by account while it arrives, and proves with the digests of blocks that every line is there: a browser does
 * not show trailers, in which the service sends its row count and checksum.
 */

/** @type {Map<string, { name: string, debit: number, credit: number }>} amounts in cents */
const accounts = new Map()
let rows = 0

const encoder = new TextEncoder()
const hex = (bytes) =>
  Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
const say = (text) => {
  document.querySelector('#state').textContent = text
}

/** The lines of an answer. It throws if the connection breaks. */
async function* linesOf(response) {
  let rest = ''
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()
    yield* lines
  }
  if (rest !== '') throw new Error('The last line is not whole')
}

async function get(path) {
  const response = await fetch(path)
  if (!response.ok) throw new Error(await response.text())
  return response
}

/** @returns what was proved; undefined if the ledger has changed between the two answers */
async function read() {
  const { blocks, cursor } = await (await get('/blocks')).json()
  const response = await get('/movements')
  if (response.headers.get('X-Ledger-Cursor') !== cursor) {
    await response.body.cancel()
    return undefined
  }
  accounts.clear()
  rows = 0
  const ends = blocks.values()
  let block = ends.next().value
  let lines = []
  const prove = async () => {
    const digest = await crypto.subtle.digest(
      'SHA-256',
      encoder.encode(lines.map((line) => `${line}\n`).join('')),
    )
    if (hex(digest) !== block.sha256)
      throw new Error(`Entries ${block.from} to ${block.to} are not those of the ledger`)
    lines = []
    block = ends.next().value
  }
  for await (const line of linesOf(response)) {
    const movement = JSON.parse(line)
    while (Number(movement.entry.producerId) > Number(block.to)) await prove()
    lines.push(line)
    add(movement)
    rows += 1
    if (rows % 1000 === 0) await show()
  }
  while (block) await prove()
  return `${rows} movements, equal to the ledger in ${blocks.length} blocks`
}

function add({ account: { number, name }, value }) {
  const sums = accounts.get(number) ?? { name, debit: 0, credit: 0 }
  sums.debit += Math.round(value.debit * 100)
  sums.credit += Math.round(value.credit * 100)
  accounts.set(number, sums)
}

/** Draws the table, and lets the browser paint it. */
async function show() {
  const money = (cents) => (cents / 100).toFixed(2)
  const lines = [...accounts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([number, { name, debit, credit }]) => {
      const line = document.createElement('tr')
      for (const text of [number, name, money(debit), money(credit), money(debit - credit)])
        line.insertCell().textContent = text
      return line
    })
  document.querySelector('#balances').replaceChildren(...lines)
  await new Promise((painted) => setTimeout(painted))
}

try {
  let proved = await read()
  while (!proved) proved = await read()
  await show()
  say(proved)
} catch (error) {
  say(`Not whole: ${error.message}`)
}
