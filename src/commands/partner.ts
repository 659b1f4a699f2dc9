import { command } from '../../packages/terminal/src/command.ts'
import { loadMasterKey } from '../auth/master-key.ts'
import { insertThirdParty, type Kind } from '../auth/third-parties.sql.ts'
import * as thirdParties from '../auth/third-parties.ts'
import { partnerList } from '../lists/partners.ts'
import { checkLine } from './terminal/check-line.ts'
import { numberKind } from './terminal/kinds.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, printList, recordAct } from './with-database.ts'

const code = { value: 'code', required: true, help: 'of the third party' } as const

export const partnerCommands = [
  command({
    name: 'partner create',
    summary: 'register a third party and show its secret',
    options: {
      code: { ...code, help: 'up to 32 of A to Z, 0 to 9, - and _' },
      name: { value: 'name', required: true, help: 'as people know it' },
      kind: { value: 'kind', choices: ['partner', 'customer'], default: 'partner', help: 'whose it is' },
    },
    run: create,
  }),
  command({
    name: 'partner list',
    summary: 'list all third parties',
    run: (terminal: Terminal) => printList(terminal, partnerList, {}),
  }),
  command({
    name: 'partner disconnect',
    summary: 'refuse all its tokens until it is reconnected',
    options: {
      code,
      reason: { value: 'reason', required: true, help: 'shown to the third party with each refusal' },
    },
    run: disconnect,
  }),
  command({
    name: 'partner reconnect',
    summary: 'accept its tokens again',
    options: { code },
    run: reconnect,
  }),
  command({
    name: 'partner rotate-secret',
    summary: 'make a new secret, which signs webhooks from now on, and show it',
    options: {
      code,
      keep: {
        value: 'hours',
        is: numberKind('a number of hours', 0, 9_999),
        default: '24',
        help: 'how long older secrets are still accepted in requests',
      },
    },
    run: rotateSecret,
  }),
]

async function create(
  terminal: Terminal,
  { code, name, kind }: { code: string; name: string; kind: Kind },
): Promise<void> {
  if (!thirdParties.codePattern.test(code))
    throw new Error(
      `--code takes up to 32 of A to Z, 0 to 9, - and _, beginning with a letter or digit, not "${code}"`,
    )
  checkLine('--name', name)
  await asOwner(terminal, async (client, config) => {
    const { plain, secret } = thirdParties.makeSecret(await loadMasterKey(config))
    const id = await insertThirdParty(client, { code, name: name.trim(), kind, secret })
    if (id === undefined) throw new Error(`The third party ${code} already exists: choose another --code`)
    await recordAct(client, { act: 'partner create', partner: code, details: { kind } })
    return [
      `Third party ${code} (${kind}), id ${id}.`,
      `Secret: ${plain}`,
      'It is shown only once; send it in the header X-Third-Party-Secret.',
    ]
  })
}

async function disconnect(
  terminal: Terminal,
  { code, reason }: { code: string; reason: string },
): Promise<void> {
  checkLine('--reason', reason)
  await asOwner(terminal, async (client) => {
    if (!(await thirdParties.disconnect(client, code, reason.trim())))
      throw new Error(`There is no connected third party ${code}: see partner list`)
    await recordAct(client, { act: 'partner disconnect', partner: code, details: { reason: reason.trim() } })
    return [`Third party ${code} is disconnected.`]
  })
}

function reconnect(terminal: Terminal, { code }: { code: string }): Promise<void> {
  return asOwner(terminal, async (client) => {
    if (!(await thirdParties.reconnect(client, code)))
      throw new Error(`There is no disconnected third party ${code}: see partner list`)
    await recordAct(client, { act: 'partner reconnect', partner: code })
    return [`Third party ${code} is connected.`]
  })
}

async function rotateSecret(
  terminal: Terminal,
  { code, keep: hours }: { code: string; keep: number },
): Promise<void> {
  await asOwner(terminal, async (client, config) => {
    const { plain, secret } = thirdParties.makeSecret(await loadMasterKey(config))
    if (!(await thirdParties.rotateSecret(client, code, secret, hours * 3600)))
      throw new Error(`There is no third party ${code}: see partner list`)
    await recordAct(client, { act: 'partner rotate-secret', partner: code, details: { keptHours: hours } })
    return [
      `Third party ${code} has a new secret; webhooks are signed with it from now on.`,
      `Secret: ${plain}`,
      'It is shown only once; send it in the header X-Third-Party-Secret.',
      hours === 0
        ? 'The previous one is refused.'
        : `The previous one is accepted in requests for ${hours} more hours.`,
    ]
  })
}
