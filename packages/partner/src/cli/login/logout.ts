/** `grandlivre logout`: removes the login file. */
import { removeAccess, variablesSet } from '../access.ts'
import type { Command } from '../command.ts'

export const logout: Command = {
  name: 'logout',
  summary: 'remove the access that login kept',
  usage: `Usage: grandlivre logout

Removes the file that grandlivre login wrote. The token stays valid: ask the
operators of the service to revoke it.`,
  options: {},
  async run({ terminal, env, json }) {
    const { path, wasThere } = await removeAccess(env)
    if (json) terminal.json({ file: path, removed: wasThere })
    else terminal.print(wasThere ? `Removed ${path}` : `There is no ${path}`)
    const set = variablesSet(env)
    if (set.length > 0)
      terminal.note(`${set.join(', ')} stay${set.length > 1 ? '' : 's'} in this environment.`)
  },
}
