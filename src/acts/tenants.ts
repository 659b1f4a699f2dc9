/** Acts of staff on firms and folders. Ids are drawn; names are unique nowhere. */
import type { ClientBase } from 'pg'
import { z } from 'zod'
import { printable } from '../../packages/terminal/src/printable.ts'
import { findFirm } from '../auth/tokens.sql.ts'
import { IdSource } from '../ledger/ids.ts'
import { createFirm, createFolder, createSchema, lockFolder, moveFolder } from '../ledger/tenants.sql.ts'
import { act, Refused } from './act.ts'
import { id, line } from './fields.ts'

/** SIREN or SIRET with its check digit; La Poste's own (356 000 000) add up to a multiple of five instead. */
export const siretText = 'a SIREN of 9 digits or a SIRET of 14'
const isNoSiret = `must be ${siretText}`
const siret = z
  .string(isNoSiret)
  .transform((text) => text.replaceAll(/\s/g, ''))
  .refine((text) => text === '' || /^\d{9}(\d{5})?$/.test(text), isNoSiret)
  .refine(hasCheckDigit, 'has a wrong digit: its check digit does not fit')
  // The check digit of zeros fits, too.
  .refine((text) => !text.startsWith('000000000'), isNoSiret)
  .transform((text) => text || null)
  .optional()
  .transform((digits) => digits ?? null)

function hasCheckDigit(text: string): boolean {
  const digits = [...text].toReversed().map(Number)
  if (text.length === 14 && text.startsWith('356000000'))
    return digits.reduce((sum, digit) => sum + digit, 0) % 5 === 0 || isLuhn(digits)
  return isLuhn(digits)
}

function isLuhn(digits: number[]): boolean {
  const weighed = digits.map((digit, place) =>
    place % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2,
  )
  return weighed.reduce((sum, digit) => sum + digit, 0) % 10 === 0
}

export const createTenantFirm = act({
  name: 'firm create',
  /** `beside`: a firm whose tenant it shares, so that folders can move between the two. */
  fields: z.object({ name: line, siret, beside: z.literal('').or(id).optional() }),
  run: async (client, { name, siret, beside }) => {
    const ids = new IdSource(client)
    await ids.reserve(2)
    const firmId = ids.next()
    let schemaId = beside ? (await firmOf(client, beside)).schemaId : undefined
    if (schemaId === undefined) {
      schemaId = ids.next()
      await createSchema(client, { id: schemaId, name })
    }
    await createFirm(client, { schemaId, id: firmId, name, siret })
    const tenant = beside
      ? ` in tenant ${schemaId}, beside firm ${beside}`
      : `, in tenant ${schemaId} of its own`
    return { schemaId, details: { firmId }, says: `Firm ${firmId}${tenant}.` }
  },
})

export const createFirmFolder = act({
  name: 'folder create',
  fields: z.object({
    firm: id,
    name: line,
    reference: z.literal('').or(line).optional(),
    siret,
  }),
  run: async (client, { firm, name, reference, siret }) => {
    const { schemaId } = await firmOf(client, firm)
    const ids = new IdSource(client)
    await ids.reserve(1)
    const folderId = ids.next()
    await createFolder(client, {
      schemaId,
      id: folderId,
      firmId: firm,
      name,
      reference: reference || null,
      siret,
    })
    return {
      schemaId,
      folderId,
      details: { firmId: firm },
      says: `Folder ${folderId} of firm ${firm}, empty.`,
    }
  },
})

export const moveFirmFolder = act({
  name: 'folder move',
  fields: z.object({ id, firm: id }),
  run: async (client, { id: folderId, firm }) => {
    const folder = await lockFolder(client, folderId)
    if (!folder) throw new Refused(404, `There is no folder ${folderId}`, { hint: ': see folder list' })
    const { schemaId } = await firmOf(client, firm)
    if (folder.firmId === firm) throw new Refused(409, `Folder ${folderId} is of firm ${firm} already`)
    if (folder.schemaId !== schemaId)
      throw new Refused(
        409,
        `Firm ${firm} is in another tenant than folder ${folderId} (${printable(folder.name)}), and rows of one never go to another. ` +
          `Make a firm beside its present one (firm create --beside ${folder.firmId}), or import the ledger into a new folder of firm ${firm}`,
      )
    await moveFolder(client, { schemaId, folderId }, firm)
    return {
      schemaId,
      folderId,
      details: { firmId: firm, formerFirmId: folder.firmId },
      says: `Folder ${folderId} is of firm ${firm} now. Tokens of firm ${folder.firmId} no longer open it; its own do.`,
    }
  },
})

async function firmOf(client: ClientBase, firmId: string) {
  const firm = await findFirm(client, firmId)
  if (firm) return firm
  throw new Refused(404, `There is no firm ${firmId}`, { hint: ': see firm list' })
}
