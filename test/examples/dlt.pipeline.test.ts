/** The source for dlt, loaded into DuckDB: after each run its table is the ledger. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { startProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { type SampleStage, setSampleStage } from '../support/stages/sample-stage.ts'
import { until } from '../support/until.ts'

/** Runs the example in one process as often as a line arrives, since its start takes seconds, and prints its table. */
const program = `
import json, sys
import dlt, duckdb
from grandlivre import grandlivre
for line in sys.stdin:
    pipeline = dlt.pipeline("grandlivre", destination=dlt.destinations.duckdb("ledger.duckdb"), dataset_name="books")
    pipeline.run(grandlivre())
    with duckdb.connect("ledger.duckdb") as database:
        rows = database.sql("""select movement_id::varchar, entry_id::varchar, account_number, debit::varchar, credit::varchar,
            movement->>'$.entry.additionalProducerProperties.comment' from books.movements order by entry_id, movement_id""")
        accounts = database.sql("select count(*) from books.accounts").fetchall()[0][0]
        print(json.dumps({"rows": rows.fetchall(), "accounts": accounts}), flush=True)
`

describe.skipIf(!isInstalled.dlt)('examples/dlt/grandlivre.py', () => {
  let stage: SampleStage
  let folder: string

  beforeAll(async () => {
    stage = await setSampleStage(2_000)
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-dlt-'))
  })

  afterAll(async () => {
    await stage?.close()
    if (folder) await rm(folder, { recursive: true })
  })

  /** The rows that the ledger has now, of all years. */
  async function ledger() {
    const rows: unknown[][] = []
    for (const { id } of stage.credentials.exercices) {
      const { json } = await download(movementsUrl(stage.url, { idExercice: id }), stage.company)
      for (const { producerId, entry, account, value } of json) {
        const { comment } = entry.additionalProducerProperties
        const amounts = [value.debit, value.credit].map((amount: number) => amount.toFixed(2))
        rows.push([producerId, entry.producerId, account.number, ...amounts, comment])
      }
    }
    return rows.toSorted((a, b) => Number(a[1]) - Number(b[1]) || Number(a[0]) - Number(b[0]))
  }

  test('the table is the ledger after the first run, after changes, and after it was read in full again', async () => {
    const { child, output, ended } = startProgram(['python3', '-c', program], stage.credentials, {
      cwd: folder,
      env: {
        PYTHONPATH: [packagesOf('dlt'), resolve(import.meta.dirname, '../../examples/dlt')].join(':'),
        HOME: folder,
        DLT_DATA_DIR: join(folder, 'dlt'),
        RUNTIME__DLTHUB_TELEMETRY: 'false',
        SOURCES__GRANDLIVRE__URL: stage.url,
        SOURCES__GRANDLIVRE__TOKEN: stage.credentials.companyToken,
        SOURCES__GRANDLIVRE__SECRET: stage.credentials.thirdPartySecret,
      },
    })
    const run = async () => {
      output.out = ''
      child.stdin!.write('run\n')
      await until(() => output.out.endsWith('\n') || child.exitCode !== null)
      if (!output.out.endsWith('\n')) throw new Error(output.error)
      return JSON.parse(output.out)
    }
    try {
      const first = await run()
      expect(first.rows).toEqual(await ledger())
      expect(first.accounts).toBeGreaterThan(0)
      await stage.correctEntries()
      await stage.change(`delete from entries where id in (select id from entries
        where exercice_id = ${stage.idExercice} and validated_at is not null order by id desc limit 2)`)
      expect((await run()).rows).toEqual(await ledger())
      await stage.correctEntries()
      await stage.change(
        `update ledger_changes set logged_at = logged_at - interval '2 days'; select forget_ledger_changes(now(), 100000)`,
      )
      expect((await run()).rows).toEqual(await ledger())
    } finally {
      child.stdin!.end()
      await ended
    }
  })
})
