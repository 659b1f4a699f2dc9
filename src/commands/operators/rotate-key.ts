import { setTimeout as delay } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { command } from '../../../packages/terminal/src/command.ts'
import { fingerprintOf, loadMasterKeys, nameOfKey, seesOurSessions } from '../../auth/master-key.sql.ts'
import {
  beginRotation,
  type EndOfRotation,
  endRotation,
  KeyMissing,
  type RotatedKeys,
  reencrypt,
  SecretsInUse,
  stepsOfRotation,
} from '../../auth/rotation.sql.ts'
import type { Config } from '../../config.ts'
import { inTransaction } from '../../db/pool.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { recordAct, withDatabase } from '../with-database.ts'

const act = 'rotate-key'

export const rotateKeyCommand = command({
  name: act,
  summary: 're-encrypt every secret, from FORMER_MASTER_KEY to MASTER_KEY; continues a run that was cut off',
  run: (terminal: StaffTerminal) =>
    withDatabase(terminal, async ({ pool, config }) => {
      const keys = await rotatedKeys(config)
      const [to, from] = keys.map((key) => nameOfKey(fingerprintOf(key))) as [string, string]
      const state = await inTurn(terminal, pool, async (client) => {
        const state = await beginRotation(client, keys)
        if (state === 'begins') await recordAct(client, { act: `${act} begins`, details: { from, to } })
        return state
      })
      const begunAt = performance.now()
      const waits = state !== 'done' && (await seesOurSessions(pool))
      if (state === 'begins') terminal.note(`From key ${from} to key ${to}`)
      if (state === 'goes on') terminal.note(`From key ${from} to key ${to}, after a run that was cut off`)
      let secrets = await encryptAll(terminal, pool, keys)
      if (waits) {
        terminal.progress(`waiting for ${thoseUnsettled}`)
        await delay(begunAt + settledMs - performance.now())
      }
      const end = await inTurn(terminal, pool, async (client) => {
        const end = await endRotation(client, keys)
        if (state !== 'done' || secrets + end.count > 0)
          await recordAct(client, { act, details: { from, to, secrets: secrets + end.count } })
        return end
      })
      secrets += end.count
      terminal.print(state === 'done' ? doneBefore(to, secrets, end) : rotated(from, to, secrets, end))
    }),
})

/** @throws {Error} if there is only one key */
async function rotatedKeys(config: Config): Promise<RotatedKeys> {
  const [to, from] = await loadMasterKeys(config)
  if (from) return [to, from]
  throw new Error(
    `FORMER_MASTER_KEY is not set, and key ${nameOfKey(fingerprintOf(to))} is that of this database. To rotate it, set ` +
      'FORMER_MASTER_KEY to it and MASTER_KEY to a new one, for this command and every process.',
  )
}

/** @returns the number of secrets that were re-encrypted */
async function encryptAll(terminal: StaffTerminal, pool: Pool, keys: RotatedKeys): Promise<number> {
  let secrets = 0
  const steps = await inTransaction(pool, (client) => Array.fromAsync(stepsOfRotation(client)))
  for (const [index, step] of steps.entries()) {
    secrets += (await inTransaction(pool, (client) => reencrypt(client, step, keys))).count
    terminal.progress(`${secrets.toLocaleString('en')} secrets re-encrypted`, (index + 1) / steps.length)
  }
  terminal.endProgress()
  return secrets
}

const lockNotAvailable = '55P03'

/**
 * How long the last step waits for the list of sessions to settle. Processes that start after a rotation began need
 * both keys. But the sessions of the database may not yet show a process that starts or has lost its session, and may
 * still show one that has stopped. After this time, all other processes are visible.
 */
const settledMs = 3_000
const thoseUnsettled = 'processes that start or stop'

/**
 * Runs a step that locks out writers of secrets, and tries again while a writer holds locks. @throws {KeyMissing} if a
 * process still lacks the new key after `settledMs`
 */
async function inTurn<T>(
  terminal: StaffTerminal,
  pool: Pool,
  run: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const began = performance.now()
  for (;;) {
    try {
      return await inTransaction(pool, run)
    } catch (error) {
      if (!isTransient(error, performance.now() - began)) throw error
      const whom = error instanceof KeyMissing ? thoseUnsettled : 'those who write secrets'
      terminal.progress(`waiting for ${whom}`)
      await delay(200)
    }
  }
}

function isTransient(error: unknown, triedMs: number): boolean {
  if (error instanceof KeyMissing) return triedMs < settledMs
  return error instanceof SecretsInUse || (error as { code?: string }).code === lockNotAvailable
}

function doneBefore(to: string, secrets: number, end: EndOfRotation): string[] {
  const found =
    secrets === 0
      ? 'every secret was encrypted with it.'
      : `${secrets} secrets were not encrypted with it, and are now.`
  return [
    `Key ${to} of MASTER_KEY is that of this database already: ${found}`,
    ...warnings(end),
    'FORMER_MASTER_KEY may be removed an hour after the rotation. To rotate to that key instead, exchange the two.',
  ]
}

function rotated(from: string, to: string, secrets: number, end: EndOfRotation): string[] {
  return [
    `Key ${to} is that of this database; before it was ${from}. ${secrets.toLocaleString('en')} secrets were re-encrypted.`,
    ...warnings(end),
    '',
    'Next:',
    '  In an hour, when addresses of files that the former key signed have ended, remove FORMER_MASTER_KEY and restart the processes.',
    `  Keep key ${from} as long as the backups from before ${new Date().toISOString().slice(0, 16)}Z: they need it.`,
  ]
}

function warnings({ unreadable, isStartForeign }: EndOfRotation): string[] {
  const replaced = `These secrets open with neither key, as before, and have to be replaced: ${unreadable.join(', ')}.`
  const start =
    'The start of the audit is signed with neither key, and keeps its signature: see audit verify.'
  return [...(unreadable.length > 0 ? [replaced] : []), ...(isStartForeign ? [start] : [])]
}
