/** Reads Parquet files by DuckDB, and finds the processes that write them. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'

/**
 * The answers to these queries, every value as DuckDB prints it.
 * @param queries of the table `file`; its path is the variable `path`
 */
export async function askParquet(bytes: Uint8Array, ...queries: string[]): Promise<(string | null)[][][]> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-parquet-'))
  const path = join(folder, 'file.parquet')
  await writeFile(path, bytes)
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    await connection.run(`set variable path = '${path}'`)
    await connection.run(`create view file as select * from read_parquet('${path}')`)
    const answers = []
    for (const query of queries) {
      const { length } = (await connection.runAndReadAll(`describe ${query}`)).getRows()
      const names = Array.from({ length }, (_, i) => `c${i}`)
      // The package drops a byte-order mark at the beginning of a text.
      const texts = names.map((name) => `'|' || ${name}::varchar`).join(', ')
      const answer = await connection.runAndReadAll(
        `select ${texts} from (${query}) as t(${names.join(', ')})`,
      )
      const rows = answer.getRows() as (string | null)[][]
      answers.push(rows.map((row) => row.map((text) => text?.slice(1) ?? null)))
    }
    return answers
  } finally {
    connection.closeSync()
    instance.closeSync()
    await rm(folder, { recursive: true })
  }
}

/** Ids of the processes that write Parquet for this one, its descendants. */
export async function parquetWriters(ofProcess: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,args='])
  const lines = stdout.split('\n').flatMap((line) => {
    const [, pid, parent, args] = /^ *(\d+) +(\d+) +(.*)$/.exec(line) ?? []
    return args === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), args }]
  })
  const parents = new Map(lines.map(({ pid, parent }) => [pid, parent]))
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && (pid === ofProcess || isBelow(parents.get(pid)))
  return lines
    .filter(
      ({ args, pid }) => args.includes('write-parquet.ts') && !args.startsWith('/bin/sh') && isBelow(pid),
    )
    .map(({ pid }) => pid)
}

/** Whether a process runs; one that has ended and waits for its parent does not. */
export async function isRunning(pid: number): Promise<boolean> {
  const found = await promisify(execFile)('ps', ['-o', 'stat=', '-p', String(pid)]).catch(() => undefined)
  return found !== undefined && !found.stdout.startsWith('Z')
}
