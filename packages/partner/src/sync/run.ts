/** Brings a copy to the present state of the ledgers that a token opens: the list, then one stream for what differs. */
import { wholeTables } from '../../../contract/src/ledger-tables.ts'
import { clientError } from '../client/errors.ts'
import type { Ledger, WantedLedger } from '../client/ledgers/ledger-parts.ts'
import type { CopiedFolder, Copy } from './copy.ts'
import type { Run, Summary } from './events.ts'
import { comeBack } from './level.ts'
import { employeesOf, now, receive } from './receive.ts'

/** Ledgers are read in full after this many refusals of cursors that had just come: another epoch may begin meanwhile. */
const waysBackMax = 3

/** Runs of this process for folders of one firm take turns: each goes on from the state that the one before has left. */
const turns = new Map<string, Promise<unknown>>()

/** @returns what this list has led to */
export function bringUpToDate(run: Run, listed: readonly Ledger[], again = false): Promise<Summary> {
  const firms = listed.map(({ firm }) => `${run.copy.name} ${firm.id}`)
  const before = Promise.all(new Set(firms.map((firm) => turns.get(firm))))
  const ours = before.then(() => bring(run, listed, again))
  const ended = ours.catch(() => {})
  for (const firm of firms) turns.set(firm, ended)
  return ours
}

async function bring(run: Run, listed: readonly Ledger[], again: boolean): Promise<Summary> {
  const { copy } = run
  const wanted = listed.filter(({ society }) => isChosen(run, society))
  checkService(copy, run.ledger)
  // No other process writes folders of these firms.
  await copy.lock([...new Set(listed.map(({ firm }) => firm.id))])
  if (copy.service === undefined) await copy.adopt(run.ledger.requests.baseUrl)
  const kept = new Map((await copy.folders()).map((folder) => [folder.society, folder]))
  await noteGone(run, listed, kept)
  await noteThere(run, wanted, kept)
  const isFailed = ({ society }: Ledger) => Number(kept.get(society)?.failed_at != null)
  const differing = wanted
    .filter((ledger) => again || !isCurrent(kept.get(ledger.society), ledger))
    .sort((one, other) => isFailed(one) - isFailed(other))
  const differ = new Set(differing.map(({ society }) => society))
  await copy.note(
    wanted.map(({ society }) => society).filter((society) => !differ.has(society)),
    { synced_at: now() },
  )
  run.onEvent?.({ kind: 'listed', ledgers: wanted.length, differing: differing.length })
  // Chosen folders that the token does not open, whether the copy has them or not.
  const missing = (run.societies ?? []).filter((id) => !listed.some(({ society }) => society === id))
  const summary: Summary = { ledgers: wanted.length + missing.length, copied: 0, rows: 0, failed: [] }
  for (const society of missing) {
    summary.failed.push(society)
    const [code, message] = ['ERR-FOLDER-NOT-FOUND', 'The access opens no such folder']
    run.onEvent?.({ kind: 'failed', society, code, message })
  }
  if (differing.length === 0) return summary
  const requests = differing.map(({ society }) => requestFor(society, again ? undefined : kept.get(society)))
  const bySociety = new Map(wanted.map((one) => [one.society, one]))
  let refused = await receive(run, requests, bySociety, summary)
  for (let way = 1; refused.length > 0 && way <= waysBackMax; way += 1)
    refused = await comeBack(run, refused, bySociety, summary)
  const inFull = refused.map((society) => ({ society }))
  if (refused.length > 0) await receive(run, inFull, bySociety, summary)
  return summary
}

/** Whether a copy has the state that is listed. */
export const isCurrent = (folder: CopiedFolder | undefined, ledger: Ledger): boolean =>
  folder?.cursor === ledger.cursor && folder.employees === employeesOf(ledger)

export const isChosen = ({ societies }: Run, society: string): boolean => societies?.includes(society) ?? true

/** @throws {GrandlivreError} COPY-REFUSED: the copy is of another service */
export function checkService(
  { name, service }: Pick<Copy, 'name' | 'service'>,
  { requests: { baseUrl } }: Run['ledger'],
): void {
  if (service === undefined || service === baseUrl) return
  const message = `${name} is a copy of the ledgers at ${service}, and not at ${baseUrl}`
  const remedy = 'Give the access of that service, or choose another --to.'
  throw clientError('COPY-REFUSED', message, { remedy })
}

/** Notes folders that are gone. A company token sees one folder: only a firm's token shows that others are missing. */
async function noteGone(run: Run, listed: readonly Ledger[], kept: Map<string, CopiedFolder>): Promise<void> {
  const { copy, ledger, signal } = run
  const there = new Set(listed.map(({ society }) => society))
  const firms = new Set(listed.map(({ firm }) => firm.id))
  const isMissing = ({ society, firm_id, gone_at }: CopiedFolder) =>
    gone_at === null &&
    (firms.size === 0 || firms.has(firm_id)) &&
    !there.has(society) &&
    isChosen(run, society)
  if (![...kept.values()].some(isMissing)) return
  const { value } = await ledger.requests.json({ path: '/key/info', query: { mode: 'extended' }, signal })
  const { target } = value as { target: { type: 'api' | 'firm'; societyId: number } }
  if (target.type !== 'firm') return
  const firm = String(target.societyId)
  await copy.lock([firm])
  // The run of another firm may have taken a folder meanwhile.
  const gone = (await copy.folders()).filter((folder) => folder.firm_id === firm && isMissing(folder))
  await copy.note(
    gone.map(({ society }) => society),
    { gone_at: now() },
  )
  for (const { society } of gone) run.onEvent?.({ kind: 'gone', society })
}

/** Notes folders that came back, moved to this firm, or whose firm has another name. */
async function noteThere(run: Run, listed: Ledger[], kept: Map<string, CopiedFolder>): Promise<void> {
  const firms = new Map(listed.map(({ firm }) => [firm.id, firm.name]))
  for (const [firm_id, firm_name] of firms) {
    const ledgers = listed.filter(({ firm }) => firm.id === firm_id)
    const other = ledgers.filter(({ society }) => {
      const folder = kept.get(society)
      return (
        folder && (folder.gone_at !== null || folder.firm_id !== firm_id || folder.firm_name !== firm_name)
      )
    })
    await run.copy.note(
      other.map(({ society }) => society),
      { firm_id, firm_name, gone_at: null },
    )
    for (const { society } of other)
      if (kept.get(society)!.gone_at !== null) run.onEvent?.({ kind: 'back', society })
  }
}

function requestFor(society: string, folder: CopiedFolder | undefined): WantedLedger {
  if (folder?.cursor == null) return { society }
  // A digest that somebody has broken is left out: its table is read again, and the request is not refused.
  const digests = Object.entries(folder.table_digests).filter(
    ([name, digest]) => (wholeTables as string[]).includes(name) && /^[0-9a-f]{64}$/.test(String(digest)),
  )
  return { society, since: folder.cursor, tables: Object.fromEntries(digests) }
}
