/**
 * Changes in a year, of 100 entries up to a tenth of all: what the delta costs, and the blocks after it, compared with
 * an export of the whole year in the same round.
 */
import pg from 'pg'
import type { Dataset } from '../dataset.ts'
import { runRounds, wayOver } from '../rounds.ts'
import type { Row, Sample } from '../rows.ts'
import { type ServiceProcess, yearUrl } from '../service-process.ts'
import { measureLatency } from '../small/latency.ts'
import { countEntries, editEntries } from './edits.sql.ts'

export const exportName = 'export of the year'

const ndjson = { Accept: 'application/x-ndjson', 'Accept-Encoding': 'identity' }
const zstd = { ...ndjson, 'Accept-Encoding': 'zstd' }

interface Edit {
  name: string
  /** Of the validated entries of the year. */
  count: (all: number) => number
  /** Requests for each sample: the kernel counts processor time in hundredths of a second. */
  requests: number
}

const edits: Edit[] = [
  { name: '100 entries changed', count: () => 100, requests: 30 },
  { name: '0.1 % changed', count: (all) => Math.floor(all / 1000), requests: 20 },
  { name: '1 % changed', count: (all) => Math.floor(all / 100), requests: 5 },
  // Of more than a tenth the service sends the whole year.
  { name: '10 % changed', count: (all) => Math.floor(all / 10), requests: 1 },
]

const unchanged = { name: 'nothing changed', requests: 200 }

/** @returns a section per edit, and that of the exports; the samples of all of them belong to the same rounds */
export async function measureDeltas(
  { ownerUrl, year, databasePid }: Dataset,
  service: ServiceProcess,
  rounds: number,
): Promise<Record<string, Row[]>> {
  const client = new pg.Client(ownerUrl)
  await client.connect()
  const sections: Record<string, Row[]> = {}
  const keep = (section: string, name: string, sample: Sample): void => {
    sections[section] ??= []
    const rows = sections[section]
    const row = rows.find((other) => other.name === name)
    if (row) row.samples.push(sample)
    else rows.push({ name, samples: [sample] })
  }
  const url = yearUrl(service, year.exerciceId)
  const ask = async (
    name: string,
    headers: Record<string, string>,
    of: { url: string; requests: number },
  ) => {
    const asked = { ...of, headers: { ...service.headers, ...headers }, status: 200 }
    return (await measureLatency(name, asked, service, databasePid)).samples[0]!
  }
  const measureChange = async (edit: Omit<Edit, 'count'>, round: number, since: string): Promise<void> => {
    const { name, requests } = edit
    const label = `round ${round} of ${rounds}: ${name}`
    const delta = { url: `${url}&since=${since}`, requests }
    const plain = await ask(label, ndjson, delta)
    const compressed = await ask(`${label}, zstd`, zstd, delta)
    const blocks = {
      url: url.replace('/movements', '/movements/blocks'),
      requests: edit === unchanged ? requests : 1,
    }
    const ofBlocks = await ask(`${label}, blocks`, {}, blocks)
    // Round 0 warms up.
    if (round === 0) return
    keep(name, 'delta', plain)
    keep(name, 'delta, zstd', compressed)
    keep(name, 'blocks', ofBlocks)
  }
  try {
    const all = await countEntries(client, year)
    for (let round = 0; round <= rounds; round++) {
      const ways = [ndjson, zstd].map((headers) =>
        wayOver(headers === zstd ? `${exportName}, zstd` : exportName, service, url, {
          ...service.headers,
          ...headers,
        }),
      )
      const exported = await runRounds(ways, 1, databasePid)
      if (round > 0) for (const { name, samples } of exported) keep('in full', name, samples[0]!)
      for (const [place, edit] of edits.entries()) {
        const since = await cursorOf(service)
        await editEntries(client, year, edit.count(all), round * edits.length + place)
        await measureChange(edit, round, since)
      }
      await measureChange(unchanged, round, await cursorOf(service))
    }
  } finally {
    await client.end()
  }
  return sections
}

/** The state of the ledger now. */
async function cursorOf({ url, headers }: ServiceProcess): Promise<string> {
  const answer = await fetch(`${url}/api/v1/mad/exercices?version=1.0.0`, { headers })
  await answer.body?.cancel()
  const cursor = answer.headers.get('x-ledger-cursor')
  if (cursor === null) throw new Error(`${answer.url} answered ${answer.status} without a cursor`)
  return cursor
}
