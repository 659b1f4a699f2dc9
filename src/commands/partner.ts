import { command, numberKind } from '../../packages/terminal/src/command.ts'
import { codeText } from '../acts/fields.ts'
import {
  createPartner,
  disconnectPartner,
  keptHours,
  limitPartner,
  partnerKinds,
  partnerOf,
  reconnectPartner,
  rotatePartnerSecret,
} from '../acts/partners.ts'
import { rateBounds } from '../config.ts'
import { limitsText, partnerList } from '../lists/partners.ts'
import { carryOut } from './carry-out.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, printList } from './with-database.ts'

const code = { value: 'code', required: true, help: 'of the third party' } as const

export const partnerCommands = [
  command({
    name: 'partner create',
    summary: 'register a third party and show its secret',
    options: {
      code: { ...code, help: codeText },
      name: { value: 'name', required: true, help: 'as people know it' },
      kind: { value: 'kind', choices: partnerKinds, default: 'partner', help: 'whose it is' },
    },
    run: carryOut(createPartner),
  }),
  command({
    name: 'partner list',
    summary: 'list all third parties',
    run: (terminal: StaffTerminal) => printList(terminal, partnerList, {}),
  }),
  command({
    name: 'partner disconnect',
    summary: 'refuse all its tokens until it is reconnected',
    options: {
      code,
      reason: { value: 'reason', required: true, help: 'shown to the third party with each refusal' },
    },
    run: carryOut(disconnectPartner),
  }),
  command({
    name: 'partner reconnect',
    summary: 'accept its tokens again',
    options: { code },
    run: carryOut(reconnectPartner),
  }),
  command({
    name: 'partner rotate-secret',
    summary: 'make a new secret, which signs webhooks from now on, and show it',
    options: {
      code,
      keep: {
        value: 'hours',
        is: numberKind('a number of hours', 0, keptHours.most),
        default: String(keptHours.usual),
        help: 'how long older secrets are still accepted in requests',
      },
    },
    run: carryOut(rotatePartnerSecret),
  }),
  command({
    name: 'partner limits',
    summary: 'limit the requests of its tokens otherwise than the settings do',
    about:
      'Every process keeps to it from the next request on. Limits that are not given\nstay. Without an option they are shown.',
    arguments: { code },
    options: {
      requests: {
        value: 'number',
        is: numberKind('a number', ...rateBounds.requests),
        help: 'requests of one token per window',
      },
      'window-ms': {
        value: 'number',
        is: numberKind('a number', ...rateBounds.windowMs),
        help: 'length of that window',
      },
      concurrent: {
        value: 'number',
        is: numberKind('a number', ...rateBounds.concurrent),
        help: 'its own requests that run at once per route and folder',
      },
      default: { help: 'first take back all of them: the settings count again' },
    },
    run: (terminal: StaffTerminal, { code, ...limits }) =>
      Object.values(limits).some((limit) => limit !== undefined)
        ? carryOut(limitPartner, { code: '<code>' })(terminal, { code, ...limits })
        : asOwner(terminal, async (client) => [limitsText((await partnerOf(client, code)).limits)]),
  }),
]
