/** Firms made for a run, and what SQLite's own shell takes for the rows of a copy. */
import { execFile } from 'node:child_process'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { project } from '../own-process.ts'
import { environmentOf } from '../service-process.ts'
import type { Access } from './command.ts'

const run = promisify(execFile)

/** Runs a staff command on the database in the data folder. */
export async function runStaff(dataDir: string, words: string[]): Promise<string> {
  const command = [join(project, 'src/cli.ts'), ...words]
  const { stdout } = await run(process.execPath, command, { env: environmentOf(dataDir), cwd: project })
  return stdout
}

export interface BenchFirm {
  firmId: string
  access: Omit<Access, 'GRANDLIVRE_URL'>
}

/** The secret is shown once, when the partner is made. */
let secret: string | undefined

export async function makeFirm(dataDir: string, folders: number, movements: number): Promise<BenchFirm> {
  const said = await runStaff(dataDir, [
    'seed',
    '--folders',
    String(folders),
    '--movements',
    String(movements),
  ])
  const found = (pattern: RegExp) => pattern.exec(said)?.[1]
  secret ??= found(/(glv_secret_\S+)/)
  const firmId = found(/^Firm (\d+),/m)
  const token = found(/(glv_firm_\S+)/)
  if (!firmId || !token || !secret) throw new Error(`seed --folders said something else:\n${said}`)
  return { firmId, access: { GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret } }
}

/** @returns processor seconds of each import of the movements of a copy as texts; undefined without the shell */
export async function importedBySqlite(
  copy: string,
  work: string,
  rounds: number,
): Promise<number[] | undefined> {
  const csv = join(work, 'movements.csv')
  const target = join(work, 'imported.sqlite')
  try {
    await run('sqlite3', [
      copy,
      '-header',
      '-cmd',
      '.mode csv',
      '-cmd',
      `.output ${csv}`,
      'select * from movements',
    ])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  if ((await stat(csv)).size === 0) throw new Error(`${copy} has no movements`)
  const seconds: number[] = []
  for (let round = 0; round < rounds; round++) {
    await rm(target, { force: true })
    // Its header makes the table, of texts.
    const script = ['.mode csv', `.import ${csv} movements`]
    const timed = ['-c', 'time -p sqlite3 "$0" "$1" "$2"', target, ...script]
    const { stderr } = await run('bash', timed)
    const cpu = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(stderr)![1])
    seconds.push(cpu('user') + cpu('sys'))
  }
  return seconds
}
