/** Firms and folders. */
import type { PoolClient } from 'pg'
import { createFirmFolder, createTenantFirm, firmOf, folderOf, moveFirmFolder } from '../../acts/tenants.ts'
import { listTokens } from '../../auth/tokens.sql.ts'
import { lastPulls, readYears } from '../../ledger/folders.sql.ts'
import {
  firmFacts,
  firmList,
  folderFacts,
  folderList,
  lastPullColumns,
  yearColumns,
} from '../../lists/folders.ts'
import type { Table } from '../../lists/list.ts'
import { tokenList } from '../../lists/partners.ts'
import { subscriptionList } from '../../lists/subscriptions.ts'
import { listSubscriptions } from '../../webhooks/staff.sql.ts'
import { actCommand, listCommand, ownerCommand } from '../staff-command.ts'
import { idKind } from '../terminal/kinds.ts'
import { factLines, listLines } from '../terminal/list-lines.ts'

const shownId = (list: string) => ({ id: { is: idKind, help: `as ${list} shows it` } })

export const tenantCommands = [
  actCommand(createTenantFirm, 'make a firm, which folders can be created for'),
  listCommand('firm list', 'list all firms', firmList),
  ownerCommand({
    name: 'firm show',
    summary: 'show one firm and its folders',
    arguments: shownId('firm list'),
    lines: async (client, { id }) => [
      ...factLines(firmFacts(await firmOf(client, id!))),
      ...section(folderList, await folderList.read(client, { firm: id })),
    ],
  }),
  actCommand(createFirmFolder, 'make an empty folder of a firm'),
  ownerCommand({
    name: 'folder list',
    summary: 'list folders with their sizes, tokens and last change',
    options: {
      firm: { value: 'id', is: idKind, help: 'folders of one firm' },
      search: { value: 'text', help: 'an id, or a part of the name or reference' },
    },
    lines: async (client, filter) => {
      if (filter.firm !== undefined) await firmOf(client, filter.firm)
      return listLines(folderList, await folderList.read(client, filter))
    },
  }),
  ownerCommand({
    name: 'folder show',
    summary: 'show one folder: years, last pulls, tokens, subscriptions',
    arguments: shownId('folder list'),
    lines: async (client, { id }) => folderLines(client, id!),
  }),
  actCommand(moveFirmFolder, 'give a folder to another firm of its tenant', 'id'),
]

async function folderLines(client: PoolClient, id: string): Promise<string[]> {
  const folder = await folderOf(client, id)
  return [
    ...factLines(folderFacts(folder)),
    ...section(yearColumns(folder), await readYears(client, folder)),
    ...section(lastPullColumns, await lastPulls(client, id)),
    ...section(
      tokenList,
      await listTokens(client, { opens: { ...folder, folderId: id } }),
      'Tokens that open it',
    ),
    ...section(
      subscriptionList,
      await listSubscriptions(client, { folder: id }),
      'Subscriptions that get its events',
    ),
  ]
}

/** A list with its caption, below the facts of a firm or folder. */
function section<Row>(list: Table<Row>, rows: readonly Row[], caption = list.caption): string[] {
  return ['', `${caption}:`, ...(rows.length === 0 ? ['none'] : listLines(list, rows))]
}
