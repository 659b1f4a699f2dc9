/** Firms and folders. */
import type { PoolClient } from 'pg'
import { command } from '../../../packages/terminal/src/command.ts'
import { Refused } from '../../acts/act.ts'
import { createFirmFolder, createTenantFirm, moveFirmFolder, siretText } from '../../acts/tenants.ts'
import { listTokens } from '../../auth/tokens.sql.ts'
import { lastPulls, listFirms, readFolder, readYears } from '../../ledger/folders.sql.ts'
import {
  firmFacts,
  firmList,
  folderFacts,
  folderList,
  lastPullColumns,
  yearColumns,
} from '../../lists/folders.ts'
import type { List } from '../../lists/list.ts'
import { subscriptionList } from '../../lists/subscriptions.ts'
import { tokenList } from '../../lists/tokens.ts'
import { listSubscriptions } from '../../webhooks/staff.sql.ts'
import { carryOut } from '../carry-out.ts'
import { idKind } from '../terminal/kinds.ts'
import { factLines, listLines } from '../terminal/list-lines.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { asOwner, printList } from '../with-database.ts'

const name = { value: 'name', required: true, help: 'as people know it' } as const
const siret = { value: 'number', help: siretText } as const
const shownId = (list: string) => ({ id: { is: idKind, help: `as ${list} shows it` } })

export const tenantCommands = [
  command({
    name: 'firm create',
    summary: 'make a firm, which folders can be created for',
    options: {
      name,
      siret,
      beside: { value: 'id', is: idKind, help: 'a firm whose tenant it shares, so that folders can move' },
    },
    run: carryOut(createTenantFirm),
  }),
  command({
    name: 'firm list',
    summary: 'list all firms',
    run: (terminal: StaffTerminal) => printList(terminal, firmList, {}),
  }),
  command({
    name: 'firm show',
    summary: 'show one firm and its folders',
    arguments: shownId('firm list'),
    run: (terminal: StaffTerminal, { id }) =>
      asOwner(terminal, async (client) => {
        return [
          ...factLines(firmFacts(await readFirm(client, id!))),
          ...section(folderList, await folderList.read(client, { firm: id })),
        ]
      }),
  }),
  command({
    name: 'folder create',
    summary: 'make an empty folder of a firm',
    options: {
      firm: { value: 'id', required: true, is: idKind, help: 'as firm list shows it' },
      name,
      reference: { value: 'text', help: "the firm's own name of it" },
      siret,
    },
    run: carryOut(createFirmFolder),
  }),
  command({
    name: 'folder list',
    summary: 'list folders with their sizes, tokens and last change',
    options: {
      firm: { value: 'id', is: idKind, help: 'folders of one firm' },
      search: { value: 'text', help: 'an id, or a part of the name or reference' },
    },
    run: (terminal: StaffTerminal, filter) =>
      asOwner(terminal, async (client) => {
        if (filter.firm !== undefined) await readFirm(client, filter.firm)
        return listLines(folderList, await folderList.read(client, filter))
      }),
  }),
  command({
    name: 'folder show',
    summary: 'show one folder: years, last pulls, tokens, subscriptions',
    arguments: shownId('folder list'),
    run: (terminal: StaffTerminal, { id }) => asOwner(terminal, (client) => folderLines(client, id)),
  }),
  command({
    name: 'folder move',
    summary: 'give a folder to another firm of its tenant',
    arguments: shownId('folder list'),
    options: { firm: { value: 'id', required: true, is: idKind, help: 'the new one' } },
    run: carryOut(moveFirmFolder, { firm: '--firm' }),
  }),
]

async function readFirm(client: PoolClient, id: string) {
  const [firm] = await listFirms(client, { id })
  if (!firm) throw new Refused(404, `There is no firm ${id}`, { hint: ': see firm list' })
  return firm
}

async function folderLines(client: PoolClient, id: string): Promise<string[]> {
  const folder = await readFolder(client, id)
  if (!folder) throw new Refused(404, `There is no folder ${id}`, { hint: ': see folder list' })
  const opened = { ...folder, folderId: id }
  return [
    ...factLines(folderFacts(folder)),
    ...section(yearColumns(folder), await readYears(client, folder)),
    ...section(lastPullColumns, await lastPulls(client, id)),
    ...section(tokenList, await listTokens(client, { opens: opened }), 'Tokens that open it'),
    ...section(
      subscriptionList,
      await listSubscriptions(client, { folder: id }),
      'Subscriptions that get its events',
    ),
  ]
}

/** A list below the facts of what it belongs to. */
function section<Row>(
  list: Pick<List<Row, never>, 'caption' | 'none' | 'columns'>,
  rows: readonly Row[],
  caption = list.caption,
): string[] {
  return ['', `${caption}:`, ...(rows.length === 0 ? ['none'] : listLines(list, rows))]
}
