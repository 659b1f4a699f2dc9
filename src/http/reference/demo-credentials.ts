/**
 * The credentials of the demo folder, for the reference page on the same machine: a newcomer then sends a first request
 * without looking for them. They open a made-up ledger, but they are credentials (own-machine.ts).
 */
import type { Config } from '../../config.ts'
import { readCredentials } from '../../sample/demo-folder.ts'
import { type Asking, isOnOwnMachine } from './own-machine.ts'

type Settings = Pick<Config, 'host' | 'databaseUrl' | 'publicUrl' | 'dataDir'>

export interface DemoCredentials {
  /** Opens the demo folder alone. */
  companyToken: string
  thirdPartySecret: string
  /** Of the latest fiscal year. */
  idExercice: string
}

/** @returns undefined if there are none, or if this request may not have them */
export function readDemoCredentials(config: Settings, request: Asking): DemoCredentials | undefined {
  // The demo folder is in the embedded database; the file of an earlier run may still be there.
  if (config.databaseUrl !== undefined || !isOnOwnMachine(config, request)) return undefined
  const { companyToken, thirdPartySecret, exercices } = readCredentials(config.dataDir) ?? {}
  const idExercice = exercices?.at(-1)?.id
  if (companyToken === undefined || thirdPartySecret === undefined || idExercice === undefined)
    return undefined
  return { companyToken, thirdPartySecret, idExercice }
}
