/** `grandlivre profiles`: the accesses that login kept, and removing one. */
import { command } from '../../../../terminal/src/command.ts'
import { table } from '../../../../terminal/src/table.ts'
import { loginFile, profileKind, readProfiles, removeAccess, variablesSet } from '../access.ts'
import type { Call } from '../command.ts'

const list = command({
  name: 'profiles',
  summary: 'list the accesses that login kept',
  about: `Lists the profiles of the file that grandlivre login wrote: name, address, level
of the token, and folder. Tokens and secrets are not shown.`,
  async run({ terminal, env, json }: Call) {
    const profiles = [...readProfiles(loginFile(env))].map(([profile, { baseUrl, token, society }]) => ({
      profile,
      baseUrl,
      level: token.startsWith('glv_firm_') ? 'firm' : 'company',
      society: society ?? null,
    }))
    if (json) for (const profile of profiles) terminal.json(profile)
    else {
      const lines = profiles.map((profile) => Object.values(profile).map((cell) => cell ?? ''))
      terminal.print(table(['profile', 'address', 'level', 'folder'], lines))
    }
    const set = variablesSet(env)
    if (set.length > 0) terminal.note(`The environment wins over the default profile: ${set.join(', ')}.`)
  },
})

const remove = command({
  name: 'profiles remove',
  summary: 'remove one of them',
  about: `Removes a profile from the file that grandlivre login wrote, and the file with
its last one. The token stays valid: ask the operators of the service to revoke
it.`,
  arguments: { name: { is: profileKind, help: 'as profiles shows it; default, where login named none' } },
  async run({ terminal, env, json }: Call, { name: profile }) {
    const file = await removeAccess(env, profile)
    if (json) terminal.json({ file, profile })
    else terminal.print(`Removed profile ${profile} from ${file}`)
  },
})

export const profiles = [list, remove]
