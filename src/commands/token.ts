import { command } from '../../packages/terminal/src/command.ts'
import type { Level } from '../auth/secrets.ts'
import { findFirm, findFolder } from '../auth/tokens.sql.ts'
import { issueToken, revokeToken } from '../auth/tokens.ts'
import { tokenList } from '../lists/tokens.ts'
import { idKind } from './terminal/kinds.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, printList, recordAct } from './with-database.ts'

export const tokenCommands = [
  command({
    name: 'token issue',
    summary: 'make a token for one folder (api) or the folders of one firm (firm), and show it',
    options: {
      partner: { value: 'code', required: true, help: 'the third party that will use it' },
      level: { value: 'level', required: true, choices: ['api', 'firm'], help: 'what it opens' },
      folder: { value: 'id', is: idKind, help: 'for --level api' },
      firm: { value: 'id', is: idKind, help: 'for --level firm' },
    },
    run: issue,
  }),
  command({
    name: 'token revoke',
    summary: 'refuse a token from now on',
    arguments: { id: { is: idKind, help: 'as token list shows it' } },
    run: (terminal: Terminal, { id }) => revoke(terminal, id),
  }),
  command({
    name: 'token list',
    summary: 'list all tokens, without their secret values',
    run: (terminal: Terminal) => printList(terminal, tokenList, {}),
  }),
]

interface Issue {
  partner: string
  level: Level
  folder?: string
  firm?: string
}

async function issue(terminal: Terminal, { partner, level, folder, firm }: Issue): Promise<void> {
  const [openedId, otherId] = level === 'api' ? [folder, firm] : [firm, folder]
  if (openedId === undefined || otherId !== undefined)
    throw new Error(`--level ${level} takes --${level === 'api' ? 'folder' : 'firm'} <id> and no other scope`)
  await asOwner(terminal, async (client) => {
    const opened = level === 'api' ? await findFolder(client, openedId) : await findFirm(client, openedId)
    if (!opened) throw new Error(`There is no ${level === 'api' ? 'folder' : 'firm'} ${openedId}`)
    const issued = await issueToken(client, { thirdPartyCode: partner, level, opened })
    if (!issued) throw new Error(`There is no third party ${partner}: partner create makes one`)
    await recordAct(client, {
      act: 'token issue',
      tokenId: issued.id,
      schemaId: opened.schemaId,
      folderId: level === 'api' ? openedId : undefined,
      partner,
      details: { level, ...(level === 'firm' ? { firmId: openedId } : {}) },
    })
    return [
      `Token ${issued.id}, level ${level}, ${level === 'api' ? 'folder' : 'firm'} ${openedId}, of ${partner}.`,
      `Token: ${issued.token}`,
      'It is shown only once; send it in the header Authorization: Bearer <token>.',
    ]
  })
}

async function revoke(terminal: Terminal, id: string): Promise<void> {
  await asOwner(terminal, async (client) => {
    const revoked = await revokeToken(client, id)
    if (!revoked) throw new Error(`There is no token ${id} in use: see token list`)
    const { code, schemaId, folderId } = revoked
    const act = { act: 'token revoke', tokenId: id, schemaId, folderId: folderId ?? undefined }
    await recordAct(client, { ...act, partner: code })
    return [`Token ${id} is revoked.`]
  })
}
