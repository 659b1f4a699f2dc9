/** `grandlivre folders` lists the folders that the access opens, and the state of their copies. */
import { command } from '../../../../terminal/src/command.ts'
import { table } from '../../../../terminal/src/table.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import type { Ledger } from '../../client/ledgers/ledger-parts.ts'
import type { CopiedFolder } from '../../sync/copy.ts'
import { checkService, isCurrent } from '../../sync/run.ts'
import type { CommandCall } from '../command.ts'
import { openAt } from './copies.ts'

export const folders = command({
  name: 'folders',
  summary: 'list the folders of the access, and the state of their copies',
  about: `Lists every folder that the token opens: id, name, reference, and the cursor
that names the state of its ledger. With --to also the state of its copy:
  current      the copy is at this cursor
  behind       the ledger, or what the token opens of it, has changed since
  not copied   its first copy has not ended
  gone         it has left its firm: its rows are kept, and no view shows them
A folder that failed in the last run is shown with the reason.`,
  options: { to: { value: 'copy', help: 'a copy that sync keeps; shows its state of each folder' } },
  examples: ['grandlivre folders', 'grandlivre folders --to firm.sqlite'],
  async run({ library, access, terminal, signal, json, society }: CommandCall, { to }) {
    const ledger = library({ ...access(), ...(society === undefined ? {} : { society }) })
    try {
      const { ledgers } = await ledger.ledgers({ signal })
      const copied = to === undefined ? undefined : await foldersOfCopy(to, ledger)
      const listed = ledgers.map((each) => rowOf(each, copied))
      const rows = [...listed, ...(society === undefined ? goneOf(ledgers, copied) : [])]
      if (json) for (const row of rows) terminal.json(row)
      else {
        const lines = rows.map(({ society, name, reference, cursor, copy }) => {
          return [society, name, reference ?? '', copy ?? cursor ?? '']
        })
        terminal.print(table(['id', 'name', 'reference', copied ? 'copy' : 'cursor'], lines))
      }
    } finally {
      ledger.close()
    }
  },
})

async function foldersOfCopy(to: string, ledger: Grandlivre): Promise<Map<string, CopiedFolder>> {
  const copy = await openAt(to, { isThere: true })
  try {
    checkService(copy, ledger)
    return new Map((await copy.folders()).map((folder) => [folder.society, folder]))
  } finally {
    await copy.close()
  }
}

function rowOf(ledger: Ledger, copied: Map<string, CopiedFolder> | undefined) {
  const { society, name, reference, cursor } = ledger
  const row = { society, name, reference, cursor, copy: undefined }
  if (!copied) return row
  const had = copied.get(society)
  const known = had?.cursor && (isCurrent(had, ledger) ? 'current' : 'behind')
  const state = known || 'not copied'
  return { ...row, copy: had?.failure ? `${state}: ${had.failure}` : state }
}

/**
 * Folders of the copy that are no longer in these firms. A token of a single folder cannot tell whether others are
 * gone.
 */
function goneOf(ledgers: readonly Ledger[], copied = new Map<string, CopiedFolder>()) {
  const listed = new Set(ledgers.map(({ society }) => society))
  const firms = new Set(ledgers.map(({ firm }) => firm.id))
  return [...copied.values()]
    .filter(({ society, firm_id, gone_at }) => gone_at !== null && !listed.has(society) && firms.has(firm_id))
    .map(({ society, cursor }) => ({ society, name: '', reference: null, cursor, copy: 'gone' }))
}
