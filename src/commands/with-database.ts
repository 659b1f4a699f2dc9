import { addAbortListener } from 'node:events'
import { constants } from 'node:os'
import type { Pool, PoolClient } from 'pg'
import { type Config, readConfig } from '../config.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { createOwnerPool, inTransaction } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { Terminal } from './terminal/terminal.ts'

/** Ctrl-C or SIGTERM ended the command. Its transaction goes with the process. */
export class Interruption extends Error {
  /** As shells expect it of a program that a signal ended. */
  readonly exitCode: number

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super('Interrupted: what was not finished is undone')
    this.name = 'Interruption'
    this.exitCode = 128 + constants.signals[signal]
  }
}

export interface Opened {
  /** One connection, as the owner of the tables. */
  pool: Pool
  database: Database
  config: Config
}

/**
 * Runs a command on the database, started where nothing runs yet. An interrupted command leaves it like any other:
 * otherwise the embedded server, which does not hear Ctrl-C, would be left running.
 * @throws {Interruption} after which the process must end, because `run` may still be waiting for the database
 * @throws {Error} of `run`, or that the database was lost meanwhile
 */
export async function withDatabase<T>(terminal: Terminal, run: (opened: Opened) => Promise<T>): Promise<T> {
  const config = readConfig(terminal.env)
  const stop = terminal.stop()
  const { promise: interruption, reject } = Promise.withResolvers<never>()
  addAbortListener(stop, () => reject(new Interruption(stop.reason)))
  const opening = openDatabase(config)
  let pool: Pool | undefined
  let interrupted = false
  try {
    const database = await Promise.race([opening, interruption])
    pool = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre cli' })
    return await Promise.race([run({ pool, database, config }), interruption])
  } catch (error) {
    interrupted = error instanceof Interruption
    // Its message is for callers over HTTP.
    if (!(error instanceof AppError) || error.code !== 'ERR-UNAVAILABLE') throw error
    const reason = error.cause instanceof Error ? error.cause.message : String(error.cause)
    throw new Error(`The database could not go on (${reason}): what was not finished is undone, try again`, {
      cause: error,
    })
  } finally {
    // It would wait for the interrupted transaction.
    if (!interrupted) await pool?.end()
    // On a server of your own this would wait for another process that migrates. The embedded server must be stopped.
    if (!interrupted || config.databaseUrl === undefined) await (await opening).close()
  }
}

/**
 * Runs a command in one transaction as the owner of the tables. The lines that it returns are printed once the
 * transaction is committed.
 */
export function asOwner(
  terminal: Terminal,
  run: (client: PoolClient, config: Config, database: Database) => Promise<string[]>,
): Promise<void> {
  return withDatabase(terminal, async ({ pool, config, database }) => {
    const lines = await inTransaction(pool, (client) => run(client, config, database))
    terminal.out.write(lines.map((line) => `${line}\n`).join(''))
  })
}
