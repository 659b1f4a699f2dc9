import { type Command, Option } from 'commander'
import type { Level } from '../auth/secrets.ts'
import { findFirm, findFolder, listTokens } from '../auth/tokens.sql.ts'
import { issueToken, revokeToken } from '../auth/tokens.ts'
import { asOwner, table } from './as-owner.ts'
import { checkId } from './terminal/check-id.ts'

export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('access tokens')
  token
    .command('issue')
    .description('make a token for one folder (api) or the folders of one firm (firm), and show it')
    .requiredOption('--partner <code>', 'the third party that will use it')
    .addOption(new Option('--level <level>').choices(['api', 'firm']).makeOptionMandatory())
    .option('--folder <id>', 'for --level api', checkId)
    .option('--firm <id>', 'for --level firm', checkId)
    .action(issue)
  token
    .command('revoke')
    .description('refuse a token from now on')
    .argument('<id>', 'as token list shows it', checkId)
    .action(revoke)
  token.command('list').description('all tokens, without what they are').action(list)
}

interface Issue {
  partner: string
  level: Level
  folder?: string
  firm?: string
}

async function issue({ partner, level, folder, firm }: Issue): Promise<void> {
  const [wanted, unwanted] = level === 'api' ? [folder, firm] : [firm, folder]
  if (wanted === undefined || unwanted !== undefined)
    throw new Error(`--level ${level} takes --${level === 'api' ? 'folder' : 'firm'} <id>, and only that`)
  await asOwner(async (client) => {
    const opened = level === 'api' ? await findFolder(client, wanted) : await findFirm(client, wanted)
    if (!opened) throw new Error(`There is no ${level === 'api' ? 'folder' : 'firm'} ${wanted}`)
    const issued = await issueToken(client, { thirdPartyCode: partner, level, opened })
    if (!issued) throw new Error(`There is no third party ${partner}: partner create makes one`)
    return [
      `Token ${issued.id}, level ${level}, ${level === 'api' ? 'folder' : 'firm'} ${wanted}, of ${partner}.`,
      `Token: ${issued.token}`,
      'It is shown this once only; it goes into the header Authorization: Bearer <token>.',
    ]
  })
}

async function revoke(id: string): Promise<void> {
  await asOwner(async (client) => {
    if (!(await revokeToken(client, id))) throw new Error(`There is no token ${id} in use: see token list`)
    return [`Token ${id} is revoked.`]
  })
}

function list(): Promise<void> {
  return asOwner(async (client) => {
    const rows = (await listTokens(client)).map((token) => [
      token.id,
      token.thirdPartyCode,
      token.level,
      token.folderId === null ? `firm ${token.firmId}` : `folder ${token.folderId}`,
      `...${token.hint}`,
      stateOf(token),
      token.createdAt.toISOString().slice(0, 10),
    ])
    return table(['ID', 'PARTNER', 'LEVEL', 'OPENS', 'TOKEN', 'STATE', 'ISSUED'], rows)
  })
}

function stateOf(token: {
  revokedAt: Date | null
  activatedAt: Date | null
  canBeActivated: boolean
}): string {
  if (token.revokedAt) return 'revoked'
  if (!token.canBeActivated) return 'disconnected'
  return token.activatedAt ? 'activated' : 'not yet used'
}
