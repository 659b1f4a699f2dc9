/** `grandlivre logout`: removes the login file. */
import { command } from '../../../../terminal/src/command.ts'
import { removeAccess, variablesSet } from '../access.ts'
import type { Call } from '../command.ts'

export const logout = command({
  name: 'logout',
  summary: 'remove the access that login kept',
  about: `Removes the profile (default, where --profile names none) from the file that
grandlivre login wrote, and the file with its last one. The token stays valid:
ask the operators of the service to revoke it.`,
  async run({ terminal, env, json, profile }: Call) {
    const { path, wasThere } = await removeAccess(env, profile)
    if (json) terminal.json({ file: path, removed: wasThere })
    else
      terminal.print(
        `${wasThere ? 'Removed' : 'There is no'} ${profile === undefined ? '' : `profile ${profile} in `}${path}`,
      )
    const set = variablesSet(env)
    if (set.length > 0)
      terminal.note(`${set.join(', ')} stay${set.length > 1 ? '' : 's'} in this environment.`)
  },
})
