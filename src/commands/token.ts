import { command } from '../../packages/terminal/src/command.ts'
import { issuePartnerToken, revokePartnerToken, tokenLevels } from '../acts/tokens.ts'
import { tokenGroups } from '../auth/callers.sql.ts'
import { tokenList } from '../lists/tokens.ts'
import { carryOut } from './carry-out.ts'
import { idKind } from './terminal/kinds.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { printList } from './with-database.ts'

export const tokenCommands = [
  command({
    name: 'token issue',
    summary: 'make a token for one folder (api) or the folders of one firm (firm), and show it',
    options: {
      partner: { value: 'code', required: true, help: 'the third party that will use it' },
      level: { value: 'level', required: true, choices: tokenLevels, help: 'what it opens' },
      folder: { value: 'id', is: idKind, help: 'for --level api' },
      firm: { value: 'id', is: idKind, help: 'for --level firm' },
      only: { value: 'groups', help: `some of ${tokenGroups.join(',')}; without it: all` },
      expires: { value: 'end', help: 'a number of days, or a day or moment (UTC); without it: none' },
    },
    run: async (terminal: StaffTerminal, { partner, level, folder, firm, ...limits }) => {
      const scope = level === 'api' ? '--folder' : '--firm'
      const [openedId, otherId] = level === 'api' ? [folder, firm] : [firm, folder]
      if (openedId === undefined || otherId !== undefined)
        throw new Error(`--level ${level} takes ${scope} <id> and no other scope`)
      await carryOut(issuePartnerToken, { code: '--partner', id: scope })(terminal, {
        code: partner,
        level,
        id: openedId,
        ...limits,
      })
    },
  }),
  command({
    name: 'token revoke',
    summary: 'refuse a token from now on',
    arguments: { id: { is: idKind, help: 'as token list shows it' } },
    run: carryOut(revokePartnerToken),
  }),
  command({
    name: 'token list',
    summary: 'list all tokens, without their secret values',
    run: (terminal: StaffTerminal) => printList(terminal, tokenList, {}),
  }),
]
