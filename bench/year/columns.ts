/**
 * A year as columns for analysis: flat rows in a Parquet file (docs/spec/exports.md#csv-and-parquet-files). Our full
 * export makes it for a partner, who fetches it and opens it as an Arrow table; the others read the database
 * itself, with the tools of a data engineer (peers/python/columns_app.py).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Dataset } from '../dataset.ts'
import { say, startListener } from '../own-process.ts'
import { installPython, pythonProgram } from '../peers/python/install.ts'
import { runRounds, type Way } from '../rounds.ts'
import type { Row, Transfer } from '../rows.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.ts'
import { listColumns, summarizeRows } from './columns.sql.ts'
import { askJob, forget, wayOfFullExport } from './full-export.ts'
import { checkRounds, checkSameContent } from './same-content.ts'
import { environmentOf, waysOfService } from './ways.ts'

/** A way that leaves a file. */
interface WayToFile extends Way {
  file: string
}

/** What `measureColumns` compares our file with. */
export const tools = [
  { name: 'ADBC, pyarrow', word: 'adbc' },
  { name: 'ConnectorX, pyarrow', word: 'connectorx' },
  { name: 'DuckDB and its extension for PostgreSQL', word: 'duckdb' },
]

/**
 * @param stack stops what an interruption leaves
 * @returns rows that took turns; none if the packages cannot be here
 */
export async function measureColumns(
  dataset: Dataset,
  chosen: typeof tools,
  floor: Way,
  rounds: number,
  stack: AsyncDisposableStack,
): Promise<Row[]> {
  const missing = await installPython('requirements-columns.txt')
  if (missing !== undefined) {
    say(`a year as columns: left out: ${missing}`)
    return []
  }
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-columns-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const service = await startServiceProcess(dataset.dataDir)
  stack.defer(service.stop)
  const files = { kind: 'filesystem', folder: dataset.filesFolder, publicUrl: '', signingKeys: [] } as const
  const selection = `idExercice=${dataset.year.exerciceId}`
  const ofYear = (format: string, repeats: 'sha256' | 'rows') => {
    const toMake = { name: `full export, ${format} of the year`, parameters: `format=${format}&${selection}` }
    return wayOfFullExport({ ...toMake, repeats }, service, dataset, files)
  }
  const toFile = await Promise.all(chosen.map((tool) => startTool(tool, dataset, folder, stack)))
  // Forgets what it made before, so the Parquet file comes last and stays for its reader.
  const reader = await startReader(service, `format=PARQUET&${selection}`, stack)
  const ours = [ofYear('CSV', 'sha256'), ofYear('PARQUET', 'rows'), reader]
  const [movements] = waysOfService(service, dataset.year)
  const ways = [floor, movements!, ...ours, ...toFile]
  const checked = await checkSameContent(ways)
  const made = join(folder, 'grandlivre.parquet')
  await download(service, `format=PARQUET&${selection}`, made)
  await checkSameRows(made, toFile)
  const rows = await runRounds(ways, rounds, dataset.databasePid)
  checkRounds(rows, checked)
  await forget(dataset, files)
  await service.stop()
  return rows
}

async function startTool(
  { name, word }: (typeof tools)[number],
  { year }: Dataset,
  folder: string,
  stack: AsyncDisposableStack,
): Promise<WayToFile> {
  const file = join(folder, `${word}.parquet`)
  const env = { ...environmentOf(year), PARQUET_FILE: file }
  const tool = await startListener(pythonProgram('columns_app.py', word), { env })
  stack.defer(tool.stop)
  const run = () => Promise.race([askTool(tool.url), tool.failed])
  return { name, pid: tool.pid, address: undefined, run, file }
}

/** A partner: fetches a file that has been made, and opens it. */
async function startReader(
  service: ServiceProcess,
  parameters: string,
  stack: AsyncDisposableStack,
): Promise<Way> {
  const reader = await startListener(pythonProgram('columns_app.py', 'open'), { env: {} })
  stack.defer(reader.stop)
  const run = async (): Promise<Transfer> => {
    const url = encodeURIComponent(await fileUrl(service, parameters))
    return Promise.race([askTool(`${reader.url}?url=${url}`), reader.failed])
  }
  return { name: 'GET the Parquet file, open it as an Arrow table', pid: reader.pid, address: undefined, run }
}

async function askTool(url: string): Promise<Transfer> {
  const started = performance.now()
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`)
  const { rows, bytes } = (await answer.json()) as { rows: number; bytes: number }
  return { ms: performance.now() - started, firstByteMs: null, bytes, rows }
}

/** @throws {Error} if the file was not made before */
async function fileUrl(service: ServiceProcess, parameters: string): Promise<string> {
  const { id, status, url } = await askJob(service, `all?version=1.0.0&${parameters}`)
  if (status !== 'DONE') throw new Error(`${id} is ${status}, so there is no file to fetch`)
  return url!
}

async function download(service: ServiceProcess, parameters: string, path: string): Promise<void> {
  const answer = await fetch(await fileUrl(service, parameters))
  await writeFile(path, Buffer.from(await answer.arrayBuffer()))
}

/** @throws {Error} naming the way whose file has other columns or rows than ours */
async function checkSameRows(ours: string, ways: WayToFile[]): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const contentOf = async (file: string): Promise<string[]> => {
    const read = async (statement: string) =>
      JSON.stringify((await connection.runAndReadAll(statement)).getRows())
    return [await read(listColumns(file)), await read(summarizeRows(file))]
  }
  const expected = await contentOf(ours)
  for (const { name, file } of ways)
    for (const [place, content] of (await contentOf(file)).entries())
      if (content !== expected[place])
        throw new Error(
          `The files differ, so they cannot be compared: ${name} has ${content}, not ${expected[place]}`,
        )
  connection.closeSync()
  instance.closeSync()
}
