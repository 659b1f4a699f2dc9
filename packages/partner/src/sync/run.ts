/**
 * Brings a copy up to date with the ledgers that a token opens: reads the list, then one stream of all ledgers
 * that differ.
 */
import { wholeTables } from '../../../contract/src/ledger-tables.ts'
import { clientError } from '../client/errors.ts'
import type { Ledger, WantedLedger } from '../client/ledgers/ledger-parts.ts'
import type { CopiedFolder, Copy } from './copy.ts'
import type { Run, Summary } from './events.ts'
import { repairRefused } from './level.ts'
import { employeesOf, now, receive } from './receive.ts'

/**
 * How often the service may refuse fresh cursors, because another epoch has begun, before ledgers are read in full.
 */
const repairsMax = 3

/**
 * Runs of this process for folders of one firm take turns, so that each starts from the state that the previous run left.
 */
const turns = new Map<string, Promise<unknown>>()

/** Brings the listed ledgers up to date. @returns the results */
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
  // From here on no other process writes folders of these firms.
  await copy.lock([...new Set(listed.map(({ firm }) => firm.id))])
  if (copy.service === undefined) await copy.adopt(run.ledger.requests.baseUrl)
  const kept = new Map((await copy.folders()).map((folder) => [folder.society, folder]))
  await noteGone(run, listed, kept)
  await notePresent(run, wanted, kept)
  const isFailed = ({ society }: Ledger) => Number(kept.get(society)?.failed_at != null)
  const isDiffering = (ledger: Ledger) => again || !isCurrent(kept.get(ledger.society), ledger)
  const differing = wanted.filter(isDiffering).sort((one, other) => isFailed(one) - isFailed(other))
  const current = wanted.filter((ledger) => !isDiffering(ledger))
  await copy.note(idsOf(current), { synced_at: now() })
  run.onEvent?.({ kind: 'listed', ledgers: wanted.length, differing: differing.length })
  // Chosen folders that the token does not open, whether or not the copy has them.
  const missing = (run.societies ?? []).filter((id) => !listed.some(({ society }) => society === id))
  const summary: Summary = { ledgers: wanted.length + missing.length, copied: 0, rows: 0, failed: [] }
  for (const society of missing) {
    summary.failed.push(society)
    const [code, message] = ['ERR-FOLDER-NOT-FOUND', 'The access opens no such folder']
    run.onEvent?.({ kind: 'failed', society, code, message })
  }
  if (differing.length === 0) return summary
  const requests = differing.map(({ society }) => requestFor(society, again ? undefined : kept.get(society)))
  const listedRun = { run, listed: new Map(wanted.map((one) => [one.society, one])), summary }
  let refused = await receive(listedRun, requests)
  for (let repair = 1; refused.length > 0 && repair <= repairsMax; repair += 1)
    refused = await repairRefused(listedRun, refused)
  const inFull = refused.map((society) => ({ society }))
  if (refused.length > 0) await receive(listedRun, inFull)
  return summary
}

/** Whether the copy of a folder shows the state in the list. */
export const isCurrent = (folder: CopiedFolder | undefined, ledger: Ledger): boolean =>
  folder?.cursor === ledger.cursor && folder.employees === employeesOf(ledger)

export const isChosen = ({ societies }: Run, society: string): boolean => societies?.includes(society) ?? true

const idsOf = (folders: readonly { society: string }[]) => folders.map(({ society }) => society)

/** @throws {GrandlivreError} COPY-REFUSED if the copy belongs to another service */
export function checkService(
  { name, service }: Pick<Copy, 'name' | 'service'>,
  { requests: { baseUrl } }: Run['ledger'],
): void {
  if (service === undefined || service === baseUrl) return
  const message = `${name} is a copy of the ledgers at ${service}, and not at ${baseUrl}`
  const remedy = 'Give the access of that service, or choose another --to.'
  throw clientError('COPY-REFUSED', message, { remedy })
}

/**
 * Notes the folders that are gone. Only a firm's token can show that folders are missing: a company token opens a single
 * folder.
 */
async function noteGone(run: Run, listed: readonly Ledger[], kept: Map<string, CopiedFolder>): Promise<void> {
  const { copy, ledger, signal } = run
  const there = new Set(idsOf(listed))
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
  // Read again, because the run of another firm may have taken over a folder meanwhile.
  const gone = (await copy.folders()).filter((folder) => folder.firm_id === firm && isMissing(folder))
  await copy.note(idsOf(gone), { gone_at: now() })
  for (const { society } of gone) run.onEvent?.({ kind: 'gone', society })
}

/** Notes folders that came back or moved to this firm, and folders whose firm has a new name. */
async function notePresent(run: Run, listed: Ledger[], kept: Map<string, CopiedFolder>): Promise<void> {
  const firms = new Map(listed.map(({ firm }) => [firm.id, firm.name]))
  for (const [firm_id, firm_name] of firms) {
    const ledgers = listed.filter(({ firm }) => firm.id === firm_id)
    const other = ledgers.filter(({ society }) => {
      const folder = kept.get(society)
      return (
        folder && (folder.gone_at !== null || folder.firm_id !== firm_id || folder.firm_name !== firm_name)
      )
    })
    await run.copy.note(idsOf(other), { firm_id, firm_name, gone_at: null })
    for (const { society } of other)
      if (kept.get(society)!.gone_at !== null) run.onEvent?.({ kind: 'back', society })
  }
}

function requestFor(society: string, folder: CopiedFolder | undefined): WantedLedger {
  if (folder?.cursor == null) return { society }
  // A damaged digest is left out: the service would refuse it, and without it sends the table again.
  const digests = Object.entries(folder.table_digests).filter(
    ([name, digest]) => (wholeTables as string[]).includes(name) && /^[0-9a-f]{64}$/.test(String(digest)),
  )
  return { society, since: folder.cursor, tables: Object.fromEntries(digests) }
}
