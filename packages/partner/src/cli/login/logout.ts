/** `grandlivre logout`: removes the login file. */
import { command } from '../../../../terminal/src/command.ts'
import { removeAccess, variablesSet } from '../access.ts'
import type { Call } from '../command.ts'

export const logout = command({
  name: 'logout',
  summary: 'remove the access that login kept',
  about: `Removes the file that grandlivre login wrote. The token stays valid: ask the
operators of the service to revoke it.`,
  async run({ terminal, env, json }: Call) {
    const { path, wasThere } = await removeAccess(env)
    if (json) terminal.json({ file: path, removed: wasThere })
    else terminal.print(wasThere ? `Removed ${path}` : `There is no ${path}`)
    const set = variablesSet(env)
    if (set.length > 0)
      terminal.note(`${set.join(', ')} stay${set.length > 1 ? '' : 's'} in this environment.`)
  },
})
