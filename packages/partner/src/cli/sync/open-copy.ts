/** Opens the target of a command and checks that it is a copy of the right folder. */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Failure, UsageError } from '../../../../terminal/src/command-errors.ts'
import type { Call } from '../command.ts'
import { folderOf } from '../folder.ts'
import { findExercice } from '../pull/selection.ts'
import type { Copying } from './folder.ts'
import { NdjsonTarget } from './ndjson/ndjson-target.ts'
import { PostgresTarget } from './postgres/postgres-target.sql.ts'
import { SqliteTarget } from './sqlite/sqlite-target.sql.ts'
import type { Source, Target } from './targets/target.ts'

/**
 * The folder is asked for first, so that wrong credentials leave no empty target. Close the target at the end.
 * @param isThere refuses a file that does not exist
 */
export async function openCopy(
  call: Call,
  { to, exercice: word }: { to: string; exercice?: string },
  { isThere = false } = {},
): Promise<Omit<Copying, 'terminal'>> {
  const { signal } = call
  const { path, open } = targetPlace(to)
  if (isThere && path !== undefined && !existsSync(path)) throw noCopyIn(path)
  const { baseUrl, society: chosen } = call.access()
  const folder = await folderOf(call.ledger().requests, chosen, signal)
  const ledger = call.ledger(folder)
  const exercice =
    word === undefined ? undefined : (await findExercice(word, ledger.requests, signal)).producerId
  const source: Source = { baseUrl, folder, ...(exercice === undefined ? {} : { exercice }) }
  const target = await open()
  try {
    for (const area of ['copy', 'next'] as const) check(target, (await target.state(area))?.source, source)
    return { target, folder: { ledger, source, signal } }
  } catch (error) {
    await target.close()
    throw error
  }
}

export function noCopyIn(target: string): Failure {
  return new Failure(`There is no copy in ${target} yet`, 'Make one: grandlivre sync --to <target>')
}

function check(target: Target, found: Source | undefined, wanted: Source): void {
  if (!found || sourceText(found) === sourceText(wanted)) return
  throw new Failure(
    `${target.name} is a copy of ${sourceText(found)}, and not of ${sourceText(wanted)}`,
    'Give the options and the access of that copy, or choose another --to.',
  )
}

function sourceText({ baseUrl, folder, exercice }: Source): string {
  const years = exercice === undefined ? 'all exercices' : `the exercice ${exercice}`
  return `${years} of the folder ${folder} at ${baseUrl}`
}

const kinds = 'Write --to <file>.sqlite, --to <file>.ndjson or --to postgres://user:password@host/database.'

/**
 * Where a copy is to be, or is already. Of a database there is no path: only opening it tells.
 * @returns `open` makes the target if it is not there, and throws a Failure if it cannot be opened
 * @throws {UsageError} if the name is that of no kind of target
 * @throws {Failure} if its folder does not exist
 */
export function targetPlace(to: string): { path?: string; open(): Promise<Target> } {
  if (/^postgres(ql)?:\/\//.test(to)) return { open: () => PostgresTarget.open(to) }
  const path = resolve(to)
  const isSqlite = /\.(sqlite3?|db)$/.test(path)
  if (!isSqlite && !path.endsWith('.ndjson'))
    // The address of another database may have a password.
    throw new UsageError(`--to ${to.replace(/\/\/.*@/, '//')} names no kind of target. ${kinds}`)
  const folder = dirname(path)
  if (!existsSync(folder))
    throw new Failure(`The folder ${folder} does not exist`, `Create it: mkdir -p '${folder}'`)
  return { path, open: () => (isSqlite ? SqliteTarget.open(path) : NdjsonTarget.open(path)) }
}
