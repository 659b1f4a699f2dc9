/** `grandlivre version`: what to name in a report of a fault. */
import { command } from '../../../../terminal/src/command.ts'
import { interfaceVersion } from '../../client/api/calls.ts'
import { version } from '../../version.ts'
import type { Call } from '../command.ts'

export const versionCommand = command({
  name: 'version',
  summary: 'show the versions of this package, its API and Node, and the platform',
  async run({ terminal, json }: Call) {
    const { platform, arch, versions } = process
    const shown = {
      grandlivre: version,
      api: interfaceVersion,
      node: versions.node,
      platform: `${platform}-${arch}`,
    }
    if (json) terminal.json(shown)
    else terminal.print(Object.entries(shown).map(([name, value]) => `${name.padEnd(11)}${value}`))
  },
})
