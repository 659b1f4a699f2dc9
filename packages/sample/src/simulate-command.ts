import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import { idKind } from '../../../src/commands/terminal/kinds.ts'
import type { StaffTerminal } from '../../../src/commands/terminal/terminal.ts'
import { recordAct, withDatabase } from '../../../src/commands/with-database.ts'
import { inTransaction } from '../../../src/db/pool.ts'
import { command, numberKind } from '../../terminal/src/command.ts'
import { Random } from './made-up/random.ts'
import { foldersMax } from './seed-firm.ts'
import { listFirms, pickFolders } from './simulate.sql.ts'
import { correct } from './simulate.ts'

export const simulateCommand = command({
  name: 'simulate',
  summary: 'correct the books of some folders of a firm at random, as a bookkeeper does; for made-up ledgers',
  options: {
    folders: {
      value: 'count',
      required: true,
      is: numberKind('a number', 1, foldersMax),
      help: 'in how many folders, one correction each',
    },
    firm: { value: 'id', is: idKind, help: 'the firm; not needed if there is only one' },
    every: {
      value: 'seconds',
      is: numberKind('a number of seconds', 1, 86_400),
      help: 'again and again, in other folders, until Ctrl-C',
    },
  },
  run: (terminal: StaffTerminal, { folders, firm, every }) =>
    withDatabase(terminal, async ({ pool }) => {
      const random = new Random(Date.now())
      const firmId = firm ?? (await inTransaction(pool, async (client) => onlyOf(await listFirms(client))))
      for (;;) {
        for await (const line of correctSome(pool, firmId, folders, random)) terminal.print(line)
        if (every === undefined) return
        await delay(every * 1_000)
      }
    }),
})

/**
 * Makes one correction in some folders of a firm, each in a transaction of its own.
 * @returns a line for each, as it is done
 */
export async function* correctSome(
  pool: Pool,
  firmId: string,
  folders: number,
  random: Random,
): AsyncGenerator<string> {
  const keys = await inTransaction(pool, (client) => pickFolders(client, firmId, folders))
  if (keys.length === 0) throw new Error(`There is no firm ${firmId}, or it has no folder`)
  for (const key of keys) {
    const done = await inTransaction(pool, async (client) => {
      const what = await correct(client, key, random)
      if (what !== undefined) await recordAct(client, { act: 'simulate', ...key, details: { what } })
      return what
    })
    yield `Folder ${key.folderId}: ${done ?? 'nothing that could be corrected'}`
  }
}

function onlyOf(firms: { id: string; name: string }[]): string {
  const [only, ...others] = firms
  if (!only) throw new Error('There is no firm: make one with seed --folders')
  if (others.length === 0) return only.id
  const listed = firms.map(({ id, name }) => `\n  ${id}  ${name}`)
  throw new Error(`There are several firms, choose one with --firm:${listed.join('')}`)
}
