/**
 * Erases folders, firms and third parties, writes receipts, and proves later that nothing is left of a folder
 * (docs/operators/erasure.md).
 */
import { open, readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { command, type Given } from '../../../packages/terminal/src/command.ts'
import { existing } from '../../acts/act.ts'
import { codeText } from '../../acts/fields.ts'
import { loadMasterKeys } from '../../auth/master-key.sql.ts'
import { codePattern } from '../../auth/third-parties.sql.ts'
import { inTransaction } from '../../db/pool.ts'
import { type Erasing, eraseFirm, eraseFolder, erasePartner, leftOfFolder } from '../../erasure/erase.ts'
import {
  type ErasedKind,
  type Erasure,
  endErasure,
  findErasure,
  readErasures,
  tracesOf,
} from '../../erasure/erasure.sql.ts'
import { openStore } from '../../store/open-store.ts'
import { storeSettings } from '../../store/store.ts'
import { defaultTiming } from '../../timing.ts'
import { idKind } from '../terminal/kinds.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { recordAct, withDatabase } from '../with-database.ts'

const options = {
  yes: { help: 'do it: only a backup can bring it back' },
  receipt: { value: 'file', help: 'write the receipt to this file, as JSON' },
  'backups-until': {
    value: 'day',
    help: 'the day on which its last backup is deleted, such as 2027-02-28',
  },
} as const

/** The part of a receipt that `folder erased` reads. */
const receiptShape = z.object({
  erased: z.enum(['folder', 'firm', 'partner']),
  id: z.string().regex(/^\d{1,16}$/),
  schemaId: z.string().nullable(),
  exportIds: z.array(z.string()),
  /** The folders of an erased firm. */
  folders: z.array(z.object({ id: z.string(), exportIds: z.array(z.string()) })).optional(),
})

const receiptText = z.preprocess((text) => {
  try {
    return JSON.parse(String(text))
  } catch {
    return undefined
  }
}, receiptShape)

const deleteCommand = (
  kind: 'folder' | 'firm',
  summary: string,
  run: typeof eraseFolder | typeof eraseFirm,
) =>
  command({
    name: `${kind} delete`,
    summary,
    about: 'The next run continues one that was interrupted.',
    arguments: { id: { is: idKind, help: `as ${kind} list shows it` } },
    options: {
      ...options,
      'without-files': { help: 'even if files of its exports are missing from the store' },
    },
    run: (terminal: StaffTerminal, { id, 'without-files': withoutFiles, ...given }) =>
      erase(terminal, kind, id, given, (erasing) => run(erasing, id, { withoutFiles })),
  })

export const eraseCommands = [
  deleteCommand('folder', 'erase a folder and everything of it, with a receipt', eraseFolder),
  command({
    name: 'folder erased',
    summary: 'prove that nothing is left of an erased folder',
    about: 'Fails if a failover or a restore brought the folder back. Then delete it again.',
    arguments: { id: { is: idKind, help: 'of the folder' } },
    options: {
      receipt: { value: 'file', help: 'of folder delete: needed if the database is from before the erasure' },
    },
    run: proveErased,
  }),
  deleteCommand('firm', 'erase a firm, its folders and everything of them', eraseFirm),
  command({
    name: 'partner delete',
    summary: 'erase a third party, its tokens, secrets, subscriptions and deliveries',
    arguments: { code: { help: codeText } },
    options,
    run: (terminal: StaffTerminal, { code, ...given }) => {
      if (!codePattern.test(code)) throw new Error(`<code> takes ${codeText}`)
      return erase(terminal, 'partner', code, given, (erasing) => erasePartner(erasing, code))
    },
  }),
]

async function erase(
  terminal: StaffTerminal,
  kind: ErasedKind,
  name: string,
  { yes, receipt, 'backups-until': backupsUntil }: Given<object, typeof options>,
  run: (erasing: Erasing) => Promise<Erasure | undefined>,
): Promise<void> {
  if (!z.iso.date().optional().safeParse(backupsUntil).success)
    throw new Error('--backups-until takes a day such as 2027-02-28')
  if (!yes)
    throw new Error(
      `Nothing was changed. ${kind} delete ${name} --yes erases it: only a backup could bring it back`,
    )
  // If the receipt cannot be written, this fails before anything is erased.
  if (receipt !== undefined) await withReceipt(receipt, async () => (await open(receipt, 'a')).close())
  await withErasure(terminal, async (erasing) => {
    const erasure = existing(await run(erasing), `${kind} ${name}`, `${kind} list`)
    const { id, begunAt, schemaId, gone, exportIds } = erasure
    const said = await erasing.step(async (client) => {
      const stays = await tracesOf(client, kind, id)
      const end = await endErasure(client, erasure, backupsUntil)
      const folders = kind === 'firm' ? await readErasures(client, 'ofFirm', [id]) : undefined
      return {
        ...{ erased: kind, id, schemaId, begunAt, ...end, gone, stays, exportIds },
        ...(folders && { folders: folders.map((each) => ({ id: each.id, exportIds: each.exportIds })) }),
      }
    })
    terminal.endProgress()
    if (receipt !== undefined) await writeFile(receipt, `${JSON.stringify(said, null, 2)}\n`)
    else terminal.json(said)
    terminal.note([
      `The ${kind} ${name} is erased: ${counted(gone) || 'nothing was left of it'}.`,
      'Rows of the audit stay: they contain ids and no content of books. Events stay without content until retention deletes them.',
      said.backupsUntil === null
        ? 'Backups from before still hold it until they are deleted. With --backups-until, the receipt states that day.'
        : `Backups from before hold it until ${said.backupsUntil}.`,
      ...(kind === 'folder' ? [`Prove it at any time: npm run cli -- folder erased ${name}`] : []),
      ...(receipt === undefined ? [] : [`The receipt is in ${receipt}: keep it beside the backups.`]),
    ])
  })
}

/** The number of rows of each table, such as `12 movements, 3 entries`. */
function counted(rows: Record<string, number>): string {
  return Object.entries(rows)
    .map(([what, count]) => `${count.toLocaleString('en')} ${what}`)
    .join(', ')
}

async function proveErased(
  terminal: StaffTerminal,
  { id, receipt }: { id: string; receipt?: string },
): Promise<void> {
  const given = receipt === undefined ? undefined : await readReceipt(receipt, id)
  await withErasure(terminal, async (erasing) => {
    const known = await erasing.step((client) => findErasure(client, 'folder', id))
    const { schemaId } = known ?? given ?? {}
    if (!schemaId)
      throw new Error(`No folder ${id} was erased, as far as this database knows. Give its --receipt`)
    const exportIds = [known, given].flatMap((erasure) => erasure?.exportIds ?? [])
    const left = counted(await leftOfFolder(erasing, { schemaId, folderId: id }, exportIds))
    if (left !== '')
      throw new Error(
        `The folder ${id} is not erased: ${left} are there. ` +
          `A failover or a restore brought them back, or its erasure was interrupted. Run: npm run cli -- folder delete ${id} --yes`,
      )
    terminal.print(`Nothing is left of folder ${id}.`)
  })
}

async function readReceipt(path: string, id: string) {
  const text = await withReceipt(path, () => readFile(path, 'utf8'))
  const { data } = receiptText.safeParse(text)
  if (!data) throw new Error(`${path} is no receipt of an erasure`)
  const { erased, schemaId, folders = [] } = data
  const folder = folders.find((each) => each.id === id)
  if (folder) return { schemaId, ...folder }
  if (erased === 'folder' && data.id === id) return data
  throw new Error(`${path} is the receipt of ${erased} ${data.id}, not of folder ${id}`)
}

/** @throws {Error} that names the option if the file cannot be opened */
async function withReceipt<T>(path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(`--receipt ${path} cannot be opened (${code ?? message}). Nothing was changed`, {
      cause: error,
    })
  }
}

async function withErasure(terminal: StaffTerminal, run: (erasing: Erasing) => Promise<void>): Promise<void> {
  await withDatabase(terminal, async ({ pool, config }) => {
    // The command creates no links to files, so the address in them does not matter.
    const settings = storeSettings(config, await loadMasterKeys(config), 'http://127.0.0.1')
    await run({
      step: (statements) => inTransaction(pool, statements),
      store: await openStore(settings, defaultTiming.store),
      record: (client, act, recorded) => recordAct(client, { act, ...recorded }),
      onStep: (text) => terminal.progress(text),
    })
  })
}
