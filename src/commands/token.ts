import { type Command, Option } from 'commander'
import type { Level } from '../auth/secrets.ts'
import { findFirm, findFolder } from '../auth/tokens.sql.ts'
import { issueToken, revokeToken } from '../auth/tokens.ts'
import { tokenList } from '../lists/tokens.ts'
import { checkId } from './terminal/check-id.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, printList, recordAct } from './with-database.ts'

export function addTokenCommands(program: Command, terminal: Terminal): void {
  const token = program.command('token').description('access tokens')
  token
    .command('issue')
    .description('make a token for one folder (api) or the folders of one firm (firm), and show it')
    .requiredOption('--partner <code>', 'the third party that will use it')
    .addOption(new Option('--level <level>').choices(['api', 'firm']).makeOptionMandatory())
    .option('--folder <id>', 'for --level api', checkId)
    .option('--firm <id>', 'for --level firm', checkId)
    .action((options) => issue(terminal, options))
  token
    .command('revoke')
    .description('refuse a token from now on')
    .argument('<id>', 'as token list shows it', checkId)
    .action((id) => revoke(terminal, id))
  token
    .command('list')
    .description('list all tokens, without their secret values')
    .action(() => printList(terminal, tokenList, {}))
}

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
