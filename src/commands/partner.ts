import { type Command, Option } from 'commander'
import { loadMasterKey } from '../auth/master-key.ts'
import { insertThirdParty, type Kind } from '../auth/third-parties.sql.ts'
import * as thirdParties from '../auth/third-parties.ts'
import { partnerList } from '../lists/partners.ts'
import { checkLine } from './terminal/check-line.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, printList, recordAct } from './with-database.ts'

export function addPartnerCommands(program: Command, terminal: Terminal): void {
  const partner = program.command('partner').description('third parties, which call the service with tokens')
  partner
    .command('create')
    .description('register a third party and show its secret')
    .requiredOption('--code <code>', 'up to 32 of A to Z, 0 to 9, - and _')
    .requiredOption('--name <name>', 'as people know it')
    .addOption(new Option('--kind <kind>').choices(['partner', 'customer']).default('partner'))
    .action((options) => create(terminal, options))
  partner
    .command('list')
    .description('list all third parties')
    .action(() => printList(terminal, partnerList, {}))
  partner
    .command('disconnect')
    .description('refuse all its tokens until it is reconnected')
    .requiredOption('--code <code>')
    .requiredOption('--reason <reason>', 'shown to the third party with each refusal')
    .action((options) => disconnect(terminal, options))
  partner
    .command('reconnect')
    .description('accept its tokens again')
    .requiredOption('--code <code>')
    .action((options) => reconnect(terminal, options))
  partner
    .command('rotate-secret')
    .description('make a new secret, which signs webhooks from now on, and show it')
    .requiredOption('--code <code>')
    .option('--keep <hours>', 'how long older secrets are still accepted in requests', '24')
    .action((options) => rotateSecret(terminal, options))
}

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
  { code, keep }: { code: string; keep: string },
): Promise<void> {
  if (!/^\d{1,4}$/.test(keep)) throw new Error(`--keep takes a number of hours from 0 to 9999, not "${keep}"`)
  const hours = Number(keep)
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
