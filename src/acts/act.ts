/**
 * An act of staff, declared once for the command line and the console: its fields, what it changes, its row in the
 * audit, and what it says. Both pass it the fields that staff have filled in, and show the same sentences.
 */
import type { ClientBase } from 'pg'
import type { z } from 'zod'
import { recordStaffAct, type StaffAct } from '../audit/audit.sql.ts'
import type { MasterKeys } from '../auth/secrets.ts'
import { findThirdParty } from '../auth/third-parties.sql.ts'

/** A secret that the act created. It is shown once, in the answer to the act. */
export interface Secret {
  label: string
  value: string
  /** A sentence that says who needs the secret, and for what. */
  use: string
}

/** What an act concerns, for its row in the audit. */
export interface Recorded extends Omit<StaffAct, 'staff' | 'act' | 'thirdPartyId'> {
  /** Code of the third party. */
  partner?: string
}

export interface Done extends Recorded {
  /** What the act did, in a sentence. */
  says: string
  secret?: Secret
}

export interface Act<Field extends string = string> {
  /**
   * Checks the fields, and returns a function that does the act. That function runs in a transaction of the owner of
   * the tables; its last statement records the act. `staff` is the member of staff, under the name in the audit. The
   * first of the master keys encrypts new secrets.
   * @throws {Refused} at once for a wrong field. The returned function may throw it, too: then nothing has changed, and
   *   nothing is recorded
   */
  (
    given: Partial<Record<Field, unknown>>,
  ): (client: ClientBase, doer: { staff: string; masterKeys: MasterKeys }) => Promise<Done>
  /** The act's command, such as `partner create`. It is also the act's name in the audit. */
  command: string
  /** The values that each field takes. The metadata of a field (`OptionWords`) say how the command takes it. */
  shape: z.ZodRawShape
}

/** Why an act was refused: a field is wrong (400), the thing does not exist (404), or its state does not allow it (409). */
export class Refused extends Error {
  readonly status: 400 | 404 | 409
  /** The field that is wrong. The message continues a sentence that begins with its name. */
  readonly field: string | undefined
  /** A command that helps. The command line shows it after the message. */
  readonly hint: string

  constructor(status: Refused['status'], message: string, more: { field?: string; hint?: string } = {}) {
    super(message)
    this.status = status
    this.field = more.field
    this.hint = more.hint ?? ''
  }
}

export function act<Shape extends z.ZodRawShape>(declared: {
  name: string
  fields: z.ZodObject<Shape>
  run(client: ClientBase, fields: z.output<z.ZodObject<Shape>>, masterKeys: MasterKeys): Promise<Done>
}): Act<keyof Shape & string> {
  const { name, fields, run } = declared
  const prepare: (...of: Parameters<Act>) => ReturnType<Act> = (given) => {
    const checked = checkFields(fields, given)
    return async (client, { staff, masterKeys }) => {
      const done = await run(client, checked, masterKeys)
      const { says, secret, ...recorded } = done
      await recordAct(client, { staff, act: name, ...recorded })
      return done
    }
  }
  return Object.assign(prepare, { command: name, shape: fields.shape })
}

/**
 * @param what names the thing, such as `firm 12`. @param list the command that lists such things. @throws {Refused} 404
 *   if nothing was found
 */
export function existing<Found>(found: Found | undefined, what: string, list: string): Found {
  if (found !== undefined) return found
  throw new Refused(404, `There is no ${what}`, { hint: `: see ${list}` })
}

/** @throws {Refused} that names the first field that is wrong */
export function checkFields<Fields extends z.ZodObject>(fields: Fields, given: unknown): z.output<Fields> {
  const { data, error } = fields.safeParse(given)
  if (!error) return data
  const { path, message } = error.issues[0]!
  throw new Refused(400, message, { field: path.join('.') })
}

/** Records an act in the audit. Must be the last statement of the act's transaction. */
export async function recordAct(
  client: ClientBase,
  { partner, details, ...given }: Recorded & Pick<StaffAct, 'staff' | 'act'>,
): Promise<void> {
  if (partner === undefined) return recordStaffAct(client, { ...given, details: { ...details } })
  const thirdPartyId = (await findThirdParty(client, partner))?.id
  await recordStaffAct(client, { ...given, thirdPartyId, details: { ...details, partner } })
}
