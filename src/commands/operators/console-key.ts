import type { Kind } from '../../../packages/terminal/src/command.ts'
import {
  createConsoleKey,
  type ListedKey,
  listConsoleKeys,
  revokeConsoleKey,
} from '../../auth/console-keys.sql.ts'
import type { Table } from '../../lists/list.ts'
import { ownerCommand } from '../staff-command.ts'
import { listLines } from '../terminal/list-lines.ts'
import { recordAct } from '../with-database.ts'

const nameKind: Kind<string> = {
  takes: '1 to 64 letters, digits and the characters @ . _ -',
  read: (text) => /^[\p{L}\d][\p{L}\d@._-]{0,63}$/u.exec(text)?.[0],
}

const day = (date: Date) => date.toISOString().slice(0, 10)

const keyList: Pick<Table<ListedKey>, 'columns'> = {
  columns: {
    Name: ({ name }) => name,
    State: ({ revokedAt }) => (revokedAt ? 'revoked' : 'in use'),
    Made: ({ createdAt }) => day(createdAt),
    'Last sign-in': ({ usedAt }) => (usedAt ? day(usedAt) : 'never'),
  },
}

export const consoleKeyCommands = [
  ownerCommand({
    name: 'console key create',
    summary: 'make a key, and show it',
    options: {
      name: {
        value: 'name',
        required: true,
        is: nameKind,
        help: 'whose key it is: acts in the console are recorded with it',
      },
    },
    lines: async (client, { name }) => {
      const key = await createConsoleKey(client, name)
      if (key === undefined)
        throw new Error(`There is a key ${name} in use: console key revoke ${name}, or take another name`)
      await recordAct(client, { act: 'console key create', details: { name } })
      return [`Key of ${name}: ${key}`, 'It is shown only once; enter it on the sign-in page of the console.']
    },
  }),
  ownerCommand({
    name: 'console key list',
    summary: 'list all keys, without their secret values',
    lines: async (client) => listLines(keyList, await listConsoleKeys(client)),
  }),
  ownerCommand({
    name: 'console key revoke',
    summary: 'refuse a key from now on, and end its sessions',
    arguments: { name: { help: 'as console key list shows it' } },
    lines: async (client, { name }) => {
      if (!(await revokeConsoleKey(client, name)))
        throw new Error(`There is no key ${name} in use: see console key list`)
      await recordAct(client, { act: 'console key revoke', details: { name } })
      return [`The key of ${name} is revoked, and its sessions have ended.`]
    },
  }),
]
