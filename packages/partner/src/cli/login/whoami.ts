/** `grandlivre whoami`: what the access opens, and where it comes from. */
import { command } from '../../../../terminal/src/command.ts'
import type { Call } from '../command.ts'
import { describe, identify } from './identity.ts'

export const whoami = command({
  name: 'whoami',
  summary: 'show what the access opens, and where it comes from',
  about: `Shows the level of the token, its folder or firm, the routes that it may call,
its rate limit, and whether the access comes from the environment or from the
login file. For the token of a firm it lists the folders.`,
  async run({ terminal, access, signal, json }: Call) {
    const { from, ...found } = access()
    const identity = await identify(found, signal)
    if (json) return terminal.json({ ...identity, from })
    terminal.print(describe(identity))
    terminal.print(`Routes:  ${identity.routes.length}`)
    for (const { method, path } of identity.routes)
      terminal.print(`         ${method.toUpperCase().padEnd(6)} ${path}`)
    terminal.print(`Access:  from ${from === 'environment' ? 'the environment' : from}`)
  },
})
