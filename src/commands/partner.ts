/** Third parties and their tokens. */
import { command } from '../../packages/terminal/src/command.ts'
import {
  createPartner,
  disconnectPartner,
  limitPartner,
  partnerOf,
  reconnectPartner,
  rotatePartnerSecret,
} from '../acts/partners.ts'
import { issuePartnerToken, revokePartnerToken, tokenLevels } from '../acts/tokens.ts'
import { tokenGroups } from '../auth/callers.sql.ts'
import { limitsText, partnerList, tokenList } from '../lists/partners.ts'
import { actCommand, carryOut, listCommand } from './staff-command.ts'
import { idKind } from './terminal/kinds.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner } from './with-database.ts'

const limits = actCommand(
  limitPartner,
  'give the requests of its tokens other limits than the settings',
  'code',
)

export const partnerCommands = [
  actCommand(createPartner, 'register a third party and show its secret'),
  listCommand('partner list', 'list all third parties', partnerList),
  actCommand(disconnectPartner, 'refuse all its tokens until it is reconnected'),
  actCommand(reconnectPartner, 'accept its tokens again'),
  actCommand(rotatePartnerSecret, 'make a new secret, which signs webhooks from now on, and show it'),
  {
    ...limits,
    about:
      'Every process applies the limits from the next request on. Limits that are not\ngiven stay the same. Without an option, the limits are shown.',
    run: (terminal: StaffTerminal, given: Record<string, unknown>) =>
      Object.keys(given).length > 1
        ? limits.run(terminal, given)
        : asOwner(terminal, async (client) => [
            limitsText((await partnerOf(client, String(given['code']))).limits),
          ]),
  },
]

export const tokenCommands = [
  command({
    name: 'token issue',
    summary: 'make a token for one folder (api) or the folders of one firm (firm), and show it',
    options: {
      partner: { value: 'code', required: true, help: 'the third party that will use it' },
      level: { value: 'level', required: true, choices: tokenLevels, help: 'what it opens' },
      folder: { value: 'id', is: idKind, help: 'for --level api' },
      firm: { value: 'id', is: idKind, help: 'for --level firm' },
      only: { value: 'groups', help: `some of ${tokenGroups.join(',')}; by default all` },
      expires: {
        value: 'end',
        help: 'a number of days, or a day or moment (UTC); by default the token does not end',
      },
    },
    run: async (terminal: StaffTerminal, { partner: code, level, folder, firm, ...limits }) => {
      const scope = level === 'api' ? '--folder' : '--firm'
      const [id, otherId] = level === 'api' ? [folder, firm] : [firm, folder]
      if (id === undefined || otherId !== undefined)
        throw new Error(`--level ${level} takes ${scope} <id> and no other scope`)
      const issue = carryOut(issuePartnerToken, { code: '--partner', id: scope })
      await issue(terminal, { code, level, id, ...limits })
    },
  }),
  actCommand(revokePartnerToken, 'refuse a token from now on', 'id'),
  listCommand('token list', 'list all tokens, without their secret values', tokenList),
]
