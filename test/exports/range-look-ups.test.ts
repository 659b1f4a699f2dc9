/** Ranges of entries are looked up in keys, with any statistics of the tables. */
import { beforeAll, expect, test } from 'vitest'
import { setTenant } from '../../src/db/pool.ts'
import type { ResolvedSelection } from '../../src/exports/read/movements.sql.ts'
import { beginLookUps, copyRanges } from '../../src/exports/read/ranges.sql.ts'
import { wholeFolder } from '../../src/exports/selection.ts'
import { entryColumns } from '../../src/formats/mad/entry.ts'
import { movementColumns } from '../../src/formats/mad/movement.ts'
import type { EntryRange } from '../../src/ledger/changes/entry-ranges.ts'
import { forTests } from '../support/for-tests.ts'
import { seededYear } from '../support/ledgers/seeded-year.ts'
import { connect, copyLedger } from '../support/servers/database.ts'

const ledger = forTests(async () => {
  const { database, facts } = await copyLedger(seededYear(15_000))
  return { ...database, ...facts }
})
const client = forTests(() => connect(ledger.ownerUrl))
let resolved: ResolvedSelection
let ranges: EntryRange[]

beforeAll(async () => {
  const { schemaId, folderId } = ledger
  // One level higher than the other indexes, as with millions of movements, so a look-up in it seems more expensive.
  await client.query('alter index movements_pkey set (fillfactor = 10)')
  await client.query('reindex index movements_pkey')
  const { rows } = await client.query<{ exercice_id: string; ids: string[] }>(
    'select exercice_id, array_agg(id::text order by id) as ids from entries group by 1 order by count(*) desc',
  )
  const [{ exercice_id: exerciceId, ids }] = rows as [(typeof rows)[0]]
  const selection = { ...wholeFolder({ schemaId, folderId }, 'Europe/Paris'), exerciceId, draft: false }
  resolved = { selection, exerciceIds: [exerciceId] }
  const step = Math.floor(ids.length / 100)
  ranges = ids.filter((_, i) => i % step === 0).map((id) => [id, id])
})

/** The indexes and tables that the plan of a COPY scans. */
async function scanned(copy: string): Promise<string[]> {
  const select = copy.replace(/^copy \(/, '').replace(/\) to stdout$/, '')
  const { rows } = await client.query(`explain (costs off) ${select}`)
  const lines: string[] = rows.map((row) => row['QUERY PLAN'])
  return lines
    .flatMap((line) => line.match(/(?:Scan using|Scan on) (\w+)/)?.[1] ?? [])
    .filter((name) => name !== 'unnest' && name.length > 3)
}

const plans = {
  'with statistics': 'analyze entries, movements',
  'without statistics': `delete from pg_statistic where starelid in ('entries'::regclass, 'movements'::regclass);
     update pg_class set reltuples = -1, relpages = 0 where oid in ('entries'::regclass, 'movements'::regclass)`,
}

test.each(Object.entries(plans))('look-ups of ranges use the right indexes %s', async (_name, prepare) => {
  const keys = ['entries_schema_id_folder_id_exercice_id_id_key', 'movements_pkey']
  const account = { ...resolved, accountIds: ['1'] }
  await client.query('begin')
  await client.query(prepare)
  await client.query(`set local role grandlivre_service; ${setTenant(resolved.selection.schemaId)}`)
  await beginLookUps(client)
  try {
    for (const selected of [resolved, account]) {
      const { entries, movements } = copyRanges(ranges, selected, { entryColumns, movementColumns })
      expect(await scanned(movements)).toEqual(keys)
      expect(await scanned(entries)).toEqual(keys.slice(0, 1))
    }
  } finally {
    await client.query('rollback')
  }
})
