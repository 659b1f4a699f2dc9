import { addAbortListener } from 'node:events'
import { constants, userInfo } from 'node:os'
import type { ClientBase, Pool, PoolClient } from 'pg'
import { Failure } from '../../packages/terminal/src/command-errors.ts'
import { type Recorded, recordAct as recordStaff } from '../acts/act.ts'
import { keyCheck } from '../auth/master-key.sql.ts'
import { type Config, readConfig } from '../config.ts'
import { type Database, openDatabase } from '../db/database.ts'
import type { OnStep } from '../db/migrations/migrate.ts'
import { isAway, unavailableIfMissing } from '../db/outage.ts'
import { createOwnerPool, inTransaction } from '../db/pool.ts'
import type { AppError } from '../errors.ts'
import type { StaffTerminal } from './terminal/terminal.ts'

/** Ctrl-C or SIGTERM ended the command. Its transaction ends when the process does. */
class Interruption extends Failure {
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    // Shells expect this exit code if a signal ended a program.
    super('Interrupted: what was not finished is undone', [], { exitCode: 128 + constants.signals[signal] })
  }
}

/**
 * Runs a command on the database, and starts the embedded database if it is not running. An interrupted command also
 * leaves the embedded database. If it is the last to leave, that stops the server, which does not receive Ctrl-C and
 * would otherwise keep running.
 * @param run its pool has one connection, as the owner of the tables
 * @throws {Interruption} after which the process must end, because `run` may still be waiting for the database
 * @throws {Error} from `run`, or if the database was lost
 */
export async function withDatabase<T>(
  terminal: StaffTerminal,
  run: (opened: { pool: Pool; database: Database; config: Config }) => Promise<T>,
  { migrates = true } = {},
): Promise<T> {
  const config = readConfig(terminal.env)
  const check = await keyCheck(config, { adopts: false })
  const stop = terminal.stop()
  const { promise: interruption, reject } = Promise.withResolvers<never>()
  addAbortListener(stop, () => reject(new Interruption(stop.reason)))
  const opening = openDatabase(config, { check, onStep: sayWait(terminal), migrates })
  let pool: Pool | undefined
  let interrupted = false
  try {
    const database = await Promise.race([opening, interruption])
    pool = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre cli' })
    return await Promise.race([run({ pool, database, config }), interruption])
  } catch (error) {
    interrupted = error instanceof Interruption
    throw isAway(error) ? lossOf(error) : error
  } finally {
    // Closing the pool would wait for the interrupted transaction.
    if (!interrupted) await pool?.end()
    // On an operator's own server this would wait for another process that is migrating. The embedded server must be
    // stopped.
    if (!interrupted || config.databaseUrl === undefined) await (await opening).close()
  }
}

/** The error to show if the server was lost or promoted: the original message would not tell staff what to do. */
function lossOf(error: unknown): Error {
  // The message of an AppError is for callers over HTTP, so staff see its cause.
  const { cause } = unavailableIfMissing(error) as AppError
  const reason = cause instanceof Error ? cause.message : String(cause)
  const remedy = 'Try again. If the command was about to end, look first whether it was done'
  return new Error(`The database could not go on (${reason}): what was not finished is undone. ${remedy}`, {
    cause: error,
  })
}

/** Tells staff what a command waits for. Migrations are silent, so a command that waits for one would look stuck. */
function sayWait({ note }: StaffTerminal): OnStep {
  return (doing, file) => {
    if (file === undefined) note(doing)
    return () => {}
  }
}

/** Runs a command in one transaction as the owner of the tables. The returned lines are printed after the commit. */
export function asOwner(
  terminal: StaffTerminal,
  run: (client: PoolClient, config: Config) => Promise<string[]>,
): Promise<void> {
  return withDatabase(terminal, async ({ pool, config }) => {
    terminal.print(await inTransaction(pool, (client) => run(client, config)))
  })
}

/** Records in the audit what a command did. Must be the last statement of its transaction. */
export function recordAct(client: ClientBase, recorded: Recorded & { act: string }): Promise<void> {
  return recordStaff(client, { staff: userOfMachine(), ...recorded })
}

/** The user who runs the command, as far as the machine knows: in a container, a user id may have no name. */
export function userOfMachine(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}
