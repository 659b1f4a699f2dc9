/** The source for dlt, loaded into DuckDB: after each run its table is the ledger. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { firmAccess, startProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { exercices } from '../support/ledgers/ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { until } from '../support/until.ts'
import { pythonPackage } from './session.ts'

/** Runs the source in one process as often as a line arrives, since its start takes seconds, and prints its table. */
const program = `
import json, sys
import dlt, duckdb
from grandlivre.dlt import grandlivre
for line in sys.stdin:
    pipeline = dlt.pipeline("grandlivre", destination=dlt.destinations.duckdb("ledger.duckdb"), dataset_name="books")
    pipeline.run(grandlivre())
    if line == "empty\\n":
        print(json.dumps({"rows": [], "accounts": [], "loads": []}), flush=True)
        continue
    with duckdb.connect("ledger.duckdb") as database:
        rows = database.sql("""select society_id::varchar, movement_id::varchar, entry_id::varchar, account_number, debit::varchar, credit::varchar,
            entry_comment from books.movements order by society_id, entry_id, movement_id""")
        accounts = database.sql("select society_id::varchar from books.accounts group by all order by all")
        loads = database.sql("select society_id::varchar, _dlt_load_id, count(*) from books.movements group by all order by all")
        print(json.dumps({"rows": rows.fetchall(), "accounts": accounts.fetchall(), "loads": loads.fetchall()}), flush=True)
`

describe.skipIf(!isInstalled.package)('grandlivre.dlt', () => {
  const stage = forTests(setExportStage)

  const firmFolders = [folders.first, folders.sameFirm].map(({ folderId }) => folderId)

  /** The rows that the ledgers have now, of all years, drafts among them. Ids of one folder are those of the other, too. */
  async function ledgers() {
    const rows: string[][] = []
    for (const society of firmFolders)
      for (const query of exercices.flatMap(({ id }) => [
        { idExercice: id },
        { idExercice: id, draft: 'true' },
      ])) {
        const url = movementsUrl(stage.service.url, query)
        const { json } = await download(url, { ...stage.firm, 'society-id': society })
        for (const { producerId, entry, account, value } of json) {
          const { comment } = entry.additionalProducerProperties
          const amounts = [value.debit, value.credit].map((amount: number) => amount.toFixed(2))
          rows.push([society, producerId, entry.producerId, account.number, ...amounts, comment])
        }
      }
    const places = ([society, movement, entry]: string[]) => [society, entry, movement].map(Number)
    return rows.toSorted((a, b) => {
      const [here, there] = [places(a), places(b)]
      const at = here.findIndex((id, index) => id !== there[index])
      return at < 0 ? 0 : here[at]! - there[at]!
    })
  }

  const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
  /** In one folder alone. */
  const correct = (comment: string) =>
    change(`update entries set comment = '${comment}' where folder_id = ${firmFolders[1]} and id % 5 = 0`)

  /** Runs it in a folder of its own, each time that `run` is called. */
  async function withPipeline(
    settings: Record<string, string>,
    use: (
      run: (line?: string) => Promise<{ rows: string[][]; accounts: string[][]; loads: unknown[] }>,
    ) => Promise<void>,
  ): Promise<void> {
    const access = firmAccess(stage)
    const folder = await mkdtemp(join(tmpdir(), 'grandlivre-dlt-'))
    const { child, output, ended } = startProgram(['python3', '-c', program], access, {
      cwd: folder,
      env: {
        PYTHONPATH: [resolve(pythonPackage, 'src'), packagesOf('package')].join(':'),
        HOME: folder,
        DLT_DATA_DIR: join(folder, 'dlt'),
        RUNTIME__DLTHUB_TELEMETRY: 'false',
        SOURCES__GRANDLIVRE__URL: access.baseUrl,
        SOURCES__GRANDLIVRE__TOKEN: access.companyToken,
        SOURCES__GRANDLIVRE__SECRET: access.thirdPartySecret,
        ...settings,
      },
    })
    try {
      await use(async (line = 'run') => {
        output.out = ''
        child.stdin!.write(`${line}\n`)
        await until(() => output.out.endsWith('\n') || child.exitCode !== null)
        if (!output.out.endsWith('\n')) throw new Error(output.error)
        return JSON.parse(output.out)
      })
    } finally {
      child.stdin!.end()
      await ended
      await rm(folder, { recursive: true })
    }
  }

  test('the table equals the ledgers of a firm after the first run, after changes, and after its cursors were refused', () =>
    withPipeline({}, async (run) => {
      const first = await run()
      expect(first.rows).toEqual(await ledgers())
      expect(first.accounts).toEqual(firmFolders.map((id) => [id]))
      await correct('corrected')
      await change(`delete from entries where folder_id = ${firmFolders[0]} and id in (select id from entries
        where folder_id = ${firmFolders[0]} and validated_at is not null order by id desc limit 2)`)
      expect((await run()).rows).toEqual(await ledgers())
      await correct('corrected again')
      await change(
        `update ledger_changes set logged_at = logged_at - interval '2 days'; select forget_ledger_changes(now(), 100000)`,
      )
      expect((await run()).rows).toEqual(await ledgers())
    }))

  test('after a failover, only ledgers with other digests are read again', () =>
    withPipeline({}, async (run) => {
      const first = await run()
      await change('select begin_epoch(true)')
      expect((await run()).loads).toEqual(first.loads)
      await change('select begin_epoch(true)')
      await correct('in another epoch')
      const { rows, loads } = await run()
      expect(rows).toEqual(await ledgers())
      const ofFirst = (all: unknown[]) => all.filter((load) => (load as string[])[0] === firmFolders[0])
      expect(ofFirst(loads)).toEqual(ofFirst(first.loads))
      await correct('and on by changes')
      expect((await run()).rows).toEqual(await ledgers())
    }))

  test('a folder without movements gets a table once it has some', () =>
    withPipeline({ SOURCES__GRANDLIVRE__SOCIETY: firmFolders[1]! }, async (run) => {
      const of = `where folder_id = ${firmFolders[1]}`
      await change(`create temporary table kept_entries as select * from entries ${of};
        create temporary table kept_movements as select * from movements ${of};
        delete from movements ${of}; delete from entries ${of}`)
      await run('empty')
      await change(
        'insert into entries select * from kept_entries; insert into movements select * from kept_movements',
      )
      const { rows } = await run()
      expect(rows.length).toBeGreaterThan(0)
      expect(rows).toEqual((await ledgers()).filter(([society]) => society === firmFolders[1]))
    }))

  test('the table holds only the named folder', () =>
    withPipeline({ SOURCES__GRANDLIVRE__SOCIETY: firmFolders[1]! }, async (run) => {
      const { rows, accounts } = await run()
      expect(rows).toEqual((await ledgers()).filter(([society]) => society === firmFolders[1]))
      expect(accounts).toEqual([[firmFolders[1]]])
    }))
})
