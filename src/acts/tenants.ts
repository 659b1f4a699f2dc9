/** Acts of staff on firms and folders. Ids come from a sequence; names need not be unique. */
import type { ClientBase, Pool } from 'pg'
import { z } from 'zod'
import { printable } from '../../packages/terminal/src/printable.ts'
import { findFirm } from '../auth/tokens.sql.ts'
import { type FolderFacts, type ListedFirm, listFirms, readFolderFacts } from '../ledger/folders.sql.ts'
import { IdSource } from '../ledger/ids.ts'
import { createFirm, createFolder, createSchema, lockFolder, moveFolder } from '../ledger/tenants.sql.ts'
import { act, existing, Refused } from './act.ts'
import { id, line } from './fields.ts'

/**
 * A SIREN or SIRET with its check digit. In a SIRET of La Poste (356 000 000), the sum of all digits may instead be a
 * multiple of five.
 */
export const siretText = 'a SIREN of 9 digits or a SIRET of 14'
const isNoSiret = `must be ${siretText}`
const siret = z
  .string(isNoSiret)
  .transform((text) => text.replaceAll(/\s/g, ''))
  .refine((text) => text === '' || /^\d{9}(\d{5})?$/.test(text), isNoSiret)
  .refine(hasCheckDigit, 'has a wrong digit: its check digit does not fit')
  // Zeros alone have a correct check digit.
  .refine((text) => !text.startsWith('000000000'), isNoSiret)
  .transform((text) => text || null)
  .optional()
  .transform((digits) => digits ?? null)
  .meta({ value: 'number', help: siretText })
const name = line.meta({ help: 'as people know it' })
const firm = id.meta({ help: 'as firm list shows it' })

function hasCheckDigit(text: string): boolean {
  const digits = [...text].toReversed().map(Number)
  const doubled = digits.map((digit) => (digit > 4 ? digit * 2 - 9 : digit * 2))
  const luhn = digits.map((digit, place) => (place % 2 === 0 ? digit : doubled[place]!))
  const isLaPoste = text.length === 14 && text.startsWith('356000000')
  return sumOf(luhn) % 10 === 0 || (isLaPoste && sumOf(digits) % 5 === 0)
}

const sumOf = (digits: number[]) => digits.reduce((sum, digit) => sum + digit, 0)

export const createTenantFirm = act({
  name: 'firm create',
  fields: z.object({
    name,
    siret,
    beside: id
      .optional()
      .meta({ help: 'a firm whose tenant the new firm joins, so that folders can move between both' }),
  }),
  run: async (client, { name, siret, beside }) => {
    const ids = new IdSource(client)
    await ids.reserve(2)
    const firmId = ids.next()
    let schemaId = beside ? await schemaOf(client, beside) : undefined
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
    firm,
    name,
    reference: line.optional().meta({ value: 'text', help: "the firm's own name of the folder" }),
    siret,
  }),
  run: async (client, { firm, name, reference = null, siret }) => {
    const schemaId = await schemaOf(client, firm)
    const ids = new IdSource(client)
    await ids.reserve(1)
    const folderId = ids.next()
    await createFolder(client, { schemaId, id: folderId, firmId: firm, name, reference, siret })
    const says = `Folder ${folderId} of firm ${firm}, empty.`
    return { schemaId, folderId, details: { firmId: firm }, says }
  },
})

export const moveFirmFolder = act({
  name: 'folder move',
  fields: z.object({
    id: id.meta({ help: 'as folder list shows it' }),
    firm: id.meta({ help: 'the new one' }),
  }),
  run: async (client, { id: folderId, firm }) => {
    const folder = existing(await lockFolder(client, folderId), `folder ${folderId}`, 'folder list')
    const schemaId = await schemaOf(client, firm)
    if (folder.firmId === firm) throw new Refused(409, `Folder ${folderId} is of firm ${firm} already`)
    if (folder.schemaId !== schemaId)
      throw new Refused(
        409,
        `Firm ${firm} is in another tenant than folder ${folderId} (${printable(folder.name)}), and rows never move between tenants. ` +
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

/** The tenant of a firm. @throws {Refused} if there is no such firm, or it is being erased */
async function schemaOf(client: ClientBase, firmId: string): Promise<string> {
  return existing(await findFirm(client, firmId), `firm ${firmId}`, 'firm list').schemaId
}

/** @throws {Refused} if there is no such firm */
export async function firmOf(client: ClientBase | Pool, id: string): Promise<ListedFirm> {
  const [firm] = await listFirms(client, { id })
  return existing(firm, `firm ${id}`, 'firm list')
}

/** @throws {Refused} if there is no such folder */
export async function folderOf(client: ClientBase | Pool, id: string): Promise<FolderFacts> {
  return existing(await readFolderFacts(client, id), `folder ${id}`, 'folder list')
}
