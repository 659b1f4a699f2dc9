import { command } from '../../../packages/terminal/src/command.ts'
import { table } from '../../../packages/terminal/src/table.ts'
import { listKeys, revokeKey } from '../../auth/console/keys.sql.ts'
import { createConsoleKey } from '../../auth/console/keys.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { asOwner, recordAct } from '../with-database.ts'

export const consoleKeyCommands = [
  command({
    name: 'console key create',
    summary: 'make a key, and show it',
    options: {
      name: {
        value: 'name',
        required: true,
        help: 'whose key it is: acts in the console are recorded with it',
      },
    },
    run: async (terminal: StaffTerminal, { name }) => {
      if (!/^[\p{L}\d][\p{L}\d@._-]{0,63}$/u.test(name))
        throw new Error('--name takes 1 to 64 letters, digits and the characters @ . _ -')
      await asOwner(terminal, async (client) => {
        const key = await createConsoleKey(client, name)
        if (key === undefined)
          throw new Error(`There is a key ${name} in use: console key revoke ${name}, or take another name`)
        await recordAct(client, { act: 'console key create', details: { name } })
        return [
          `Key of ${name}: ${key}`,
          'It is shown only once; enter it on the sign-in page of the console.',
        ]
      })
    },
  }),
  command({
    name: 'console key list',
    summary: 'list all keys, without their secret values',
    run: (terminal: StaffTerminal) =>
      asOwner(terminal, async (client) => {
        const rows = (await listKeys(client)).map(({ name, createdAt, usedAt, revokedAt }) => [
          name,
          revokedAt ? 'revoked' : 'in use',
          day(createdAt),
          usedAt ? day(usedAt) : 'never',
        ])
        return table(['NAME', 'STATE', 'MADE', 'LAST SIGN-IN'], rows)
      }),
  }),
  command({
    name: 'console key revoke',
    summary: 'refuse a key from now on, and end its sessions',
    arguments: { name: { help: 'as console key list shows it' } },
    run: (terminal: StaffTerminal, { name }) =>
      asOwner(terminal, async (client) => {
        if (!(await revokeKey(client, name)))
          throw new Error(`There is no key ${name} in use: see console key list`)
        await recordAct(client, { act: 'console key revoke', details: { name } })
        return [`The key of ${name} is revoked, and its sessions have ended.`]
      }),
  }),
]

const day = (date: Date) => date.toISOString().slice(0, 10)
