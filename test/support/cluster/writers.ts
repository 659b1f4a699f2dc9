/** Writers that continue while servers are lost: bookkeepers in SQL, imports of FEC files, and a clock of commits. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { Random } from '../../../packages/sample/src/made-up/random.ts'
import { addEntryLike, pickEntry } from '../../../packages/sample/src/simulate.sql.ts'
import { correct } from '../../../packages/sample/src/simulate.ts'
import { publish } from '../../../src/events/publish.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { IdSource, idsPerBlock } from '../../../src/ledger/ids.ts'
import { cli } from '../cli.ts'
import { fecFile, ledger } from '../ledgers/fec-file.ts'
import { type Findings, type Loop, repeat, Unanswered } from './findings.ts'

export interface Writers {
  /** Number of acknowledged commits. */
  commits(): number
  /** The longest pause between acknowledged commits since this moment (of `performance.now()`), in milliseconds. */
  longestPause(since: number): number
  /** When the last commit was acknowledged. */
  lastAt(): number
  /** How many acknowledged commits the database lacks. Forgets them afterwards. */
  lost(): Promise<number>
  loops: Loop[]
  close(): Promise<void>
}

export interface WritersParts {
  ownerUrl: string
  folders: FolderKey[]
  /** The folder that gets imports. */
  imported: FolderKey
  /** The folder for files. */
  out: string
  findings: Findings
  seed: number
}

/** A statement without an answer after this time leads to a server that is gone. */
const statementMs = 5_000

export function startWriters({ ownerUrl, folders, imported, out, findings, seed }: WritersParts): Writers {
  const connection = connect(ownerUrl, findings)
  const clock = connect(ownerUrl, findings)
  const second = connect(ownerUrl, findings)
  const times: number[] = []
  /** The ids of existing entries, each with its commit. */
  const kept = new Map<string, number>()
  let documents = 0
  let ticks = 0
  const ticked = new Set<number>()
  const committed = () => times.push(performance.now())
  const bookkeeper = (own: typeof connection, random: Random) => async () => {
    const added: string[] = []
    const dropped = random.chance(0.1) ? [...kept.keys()].at(-1) : undefined
    // Forgets it first: without an acknowledgement, the entry may or may not be there.
    if (dropped !== undefined) kept.delete(dropped)
    await own.transaction(async (client) => {
      // Changes all folders in their order, which avoids deadlocks, and draws more versions than PostgreSQL logs ahead
      // of a sequence.
      for (const key of folders) {
        if (random.chance(0.5)) await correct(client, key, random)
        else added.push(...(await addEntry(client, key, findings)))
        documents += 1
        const data = { id: `${seed}${documents}`, kind: 'PF', name: `document ${documents}` } as const
        await publish(client, key.schemaId, [
          { name: 'document', operation: 'CREATE', folderId: key.folderId, data },
        ])
      }
      if (dropped !== undefined) await deleteEntry(client, dropped)
    })
    for (const id of added) kept.set(id, times.length)
    committed()
  }
  const tick = async () => {
    ticks += 1
    const number = ticks
    await clock.transaction((client) =>
      client.query('insert into public.commit_clock values ($1)', [number]).then(() => {}),
    )
    committed()
    ticked.add(number)
  }
  let imports = 0
  const importFile = async () => {
    imports += 1
    const file = join(out, 'ledger.txt')
    const rows = ledger.map((row, index) =>
      index % 9 === imports % 9 ? { ...row, EcritureLib: `Import ${imports}` } : row,
    )
    await writeFile(file, fecFile(rows))
    const words = [
      'import',
      'fec',
      file,
      '--folder',
      imported.folderId,
      '--start',
      '2023-01-01',
      '--end',
      '2023-12-31',
    ]
    const { code, error } = await cli(ownerUrl, ...words, ...(imports === 1 ? [] : ['--replace']))
    findings.note(code === 0 ? 'imports' : `imports: ${error.slice(0, 100)}`)
    if (code !== 0) throw new Unanswered(error)
  }
  const wrong = (error: Error) => findings.note(`writers: ${error.message.slice(0, 120)}`)
  const loops = [
    repeat(60, bookkeeper(connection, new Random(seed)), wrong),
    repeat(60, bookkeeper(second, new Random(seed + 1)), wrong),
    repeat(100, tick, wrong),
    repeat(4_000, importFile, wrong),
  ]
  return {
    commits: () => times.length,
    longestPause: (since) => {
      const after = times.filter((time) => time >= since)
      return Math.max(0, ...after.map((time, index) => time - (after[index - 1] ?? since)))
    },
    lastAt: () => times.at(-1) ?? 0,
    lost: async () => {
      const { rows } = await clock.transaction((client) =>
        client.query<{ kind: string; id: string }>(
          `select 'entry' as kind, k.id from unnest($1::bigint[]) as k (id)
           where not exists (select from grandlivre.entries e where e.id = k.id)
           union all
           select 'tick', k.id from unnest($2::bigint[]) as k (id)
           where not exists (select from public.commit_clock c where c.n = k.id)`,
          [[...kept.keys()], [...ticked]],
        ),
      )
      const commits = new Set(rows.map(({ kind, id }) => `${kind} ${kept.get(id) ?? id}`))
      for (const { kind, id } of rows) kind === 'entry' ? kept.delete(id) : ticked.delete(Number(id))
      return commits.size
    },
    loops,
    close: async () => {
      for (const own of [connection, second, clock]) await own.end()
    },
  }
}

async function addEntry(client: pg.Client, key: FolderKey, findings: Findings): Promise<string[]> {
  const like = await pickEntry(client, key)
  if (!like) return []
  const ids = new IdSource(client)
  await ids.reserve(blocksOfEntry * idsPerBlock)
  const fresh = Array.from({ length: 1 + like.movements }, () => ids.next())
  // Even if the transaction fails, this id must not be given out again.
  findings.name('ids drawn twice', `id ${fresh[0]}`, `draw ${++draws}`)
  const id = await addEntryLike(client, key, like.id, fresh)
  return id === undefined ? [] : [id]
}
let draws = 0

/**
 * Blocks of ids drawn for one entry, as an import draws them. PostgreSQL logs 32 values of a sequence ahead, so a few
 * lost draws would go unnoticed.
 */
const blocksOfEntry = 8

async function deleteEntry(client: pg.Client, id: string): Promise<void> {
  const drafts = 'select id from grandlivre.entries where id = $1 and validated_at is null'
  await client.query(`delete from grandlivre.movements where entry_id in (${drafts})`, [id])
  await client.query(`delete from grandlivre.entries where id in (${drafts})`, [id])
}

/** A connection that opens again after each failure. */
function connect(url: string, findings: Findings) {
  let client: pg.Client | undefined
  const end = async () => {
    const former = client
    client = undefined
    await former?.end().catch(() => {})
  }
  return {
    end,
    /** @throws {Unanswered} if the commit was not acknowledged, whether or not it took effect */
    async transaction<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
      try {
        if (!client) {
          const opened = new pg.Client({
            connectionString: url,
            connectionTimeoutMillis: 2_000,
            query_timeout: statementMs,
          })
          opened.on('error', () => {})
          await opened.connect()
          client = opened
        }
        await client.query('begin')
        const result = await work(client)
        await client.query('commit')
        return result
      } catch (error) {
        const { message, code } = error as Error & { code?: string }
        if (code === '23505') findings.add('ids drawn twice', message)
        findings.note(`writers: ${message.slice(0, 80)}`)
        // Not awaited: the server of the connection may be frozen.
        void end()
        throw new Unanswered(String(error))
      }
    },
  }
}
