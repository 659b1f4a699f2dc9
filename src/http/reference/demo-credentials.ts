/**
 * `credentials.json` in the data folder: what a first request to the demo folder needs. The reference page on the same
 * machine shows it, so that a newcomer need not look for it. It opens only a made-up ledger, but it does hold
 * credentials, so not every page may read it (own-machine.ts).
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { type BrowserRequest, isOnOwnMachine } from './own-machine.ts'

export interface Credentials {
  /** `http://127.0.0.1:8080` */
  baseUrl: string
  thirdPartySecret: string
  companyToken: string
  firmToken: string
  /** The folder; a firm token names it in the header society-id. */
  societyId: string
  /** Fiscal years, earliest first; days are `YYYY-MM-DD`. */
  exercices: { id: string; start: string; end: string }[]
}

/**
 * @returns a token of the demo folder alone, and the id of its latest fiscal year; undefined if there are none, or if this
 *   request may not have them
 */
export function readDemoCredentials(
  config: Pick<Config, 'host' | 'databaseUrl' | 'publicUrl' | 'dataDir'>,
  request: BrowserRequest,
) {
  // Only the embedded database has the demo folder; the file of an earlier run may still be there.
  if (config.databaseUrl !== undefined || !isOnOwnMachine(config, request)) return undefined
  const { companyToken, thirdPartySecret, exercices } = readCredentials(config.dataDir) ?? {}
  const idExercice = exercices?.at(-1)?.id
  if (companyToken === undefined || thirdPartySecret === undefined || idExercice === undefined)
    return undefined
  return { companyToken, thirdPartySecret, idExercice }
}

/** Writes the file so that only its owner can read it, and it is never there in part. */
export function writeCredentials(dataDir: string, credentials: Credentials): void {
  const path = credentialsPath(dataDir)
  const draft = `${path}.${process.pid}`
  rmSync(draft, { force: true })
  writeFileSync(draft, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, path)
}

export function credentialsPath(dataDir: string): string {
  return join(dataDir, 'credentials.json')
}

/** Reads the file. Returns undefined if it is missing or damaged. */
export function readCredentials(dataDir: string): Partial<Credentials> | undefined {
  try {
    return JSON.parse(readFileSync(credentialsPath(dataDir), 'utf8'))
  } catch (error) {
    // Missing or damaged: a new file is made.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
