/** Brings a copy to the present state of the ledgers that a token opens: the list, then one stream for what differs. */
import { wholeTables } from '../../../contract/src/ledger-tables.ts'
import { clientError, GrandlivreError } from '../client/errors.ts'
import type { Ledger, WantedLedger } from '../client/ledgers/parts.ts'
import type { CopiedFolder, Copy } from './copy.ts'
import type { Run, Summary } from './events.ts'
import { LedgerReceiver } from './receive.ts'

const now = () => new Date().toISOString()

/** Of a cursor that the service does not take, the ledger is asked for without it. */
const cursorRefused = ['ERR-VALIDATION', 'ERR-CURSOR-EXPIRED']

/** Of a text of the service that is kept. */
const failureLengthMax = 1_000

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
  await takeFirms(run, listed)
  const kept = new Map((await copy.folders()).map((folder) => [folder.society, folder]))
  await noteGone(run, listed, kept)
  await noteThere(run, wanted, kept)
  const differing = wanted
    .filter(({ society, cursor }) => again || kept.get(society)?.cursor !== cursor)
    .map((ledger) => ({ ledger, failed: kept.get(ledger.society)?.failed_at != null }))
    .sort((one, other) => Number(one.failed) - Number(other.failed))
    .map(({ ledger }) => ledger)
  const differ = new Set(differing.map(({ society }) => society))
  await copy.note(
    wanted.map(({ society }) => society).filter((society) => !differ.has(society)),
    { synced_at: now() },
  )
  run.onEvent?.({ kind: 'listed', ledgers: wanted.length, differing: differing.length })
  const summary: Summary = { ledgers: wanted.length, copied: 0, rows: 0, failed: [] }
  for (const society of notOpened(run, listed)) {
    summary.failed.push(society)
    const [code, message] = ['ERR-FOLDER-NOT-FOUND', 'The access opens no such folder']
    run.onEvent?.({ kind: 'failed', society, code, message })
  }
  if (differing.length === 0) return summary
  const requests = differing.map(({ society }) => requestFor(society, again ? undefined : kept.get(society)))
  const bySociety = new Map(wanted.map((one) => [one.society, one]))
  const refused = await receive(run, requests, bySociety, summary)
  // Their cursors name no state of these ledgers.
  const inFull = refused.map((society) => ({ society }))
  if (refused.length > 0) await receive(run, inFull, bySociety, summary)
  return summary
}

export const isChosen = ({ societies }: Run, society: string): boolean => societies?.includes(society) ?? true

/** Chosen folders that the token does not open, whether the copy has them or not. */
function notOpened({ societies = [] }: Run, listed: readonly Ledger[]): string[] {
  return societies.filter((id) => !listed.some(({ society }) => society === id))
}

/** The copy is of this service, and no other process writes folders of these firms. */
async function takeFirms({ copy, ledger }: Run, listed: readonly Ledger[]): Promise<void> {
  checkService(copy, ledger)
  await copy.lock([...new Set(listed.map(({ firm }) => firm.id))])
  if (copy.service === undefined) await copy.adopt(ledger.requests.baseUrl)
}

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

/** A company token sees one folder of its firm: only one of a firm can say that others are gone. */
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
  // Meanwhile the run of another firm may have taken it.
  const gone = (await copy.folders()).filter((folder) => folder.firm_id === firm && isMissing(folder))
  await copy.note(
    gone.map(({ society }) => society),
    { gone_at: now() },
  )
  for (const { society } of gone) run.onEvent?.({ kind: 'gone', society })
}

/** Folders that came back, moved to this firm, or whose firm has another name. */
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
  // What somebody has written there costs a table that is read again, and not the whole request.
  const digests = Object.entries(folder.table_digests).filter(
    ([name, digest]) => (wholeTables as string[]).includes(name) && /^[0-9a-f]{64}$/.test(String(digest)),
  )
  return { society, since: folder.cursor, tables: Object.fromEntries(digests) }
}

/** @returns ledgers whose cursor was refused */
export async function receive(
  run: Run,
  requests: WantedLedger[],
  listed: ReadonlyMap<string, Ledger>,
  summary: Summary,
): Promise<string[]> {
  const { copy, ledger, encoding, signal } = run
  const since = new Set(requests.filter((one) => one.since !== undefined).map(({ society }) => society))
  const refused: string[] = []
  const receiver = new LedgerReceiver(copy, listed)
  /** Those that are still to come, in this order. */
  let left = requests
  /** The one that has begun to come. */
  let begun: string | undefined
  const fail = async (society: string, code: string, message: string) => {
    await copy.rollback()
    if (since.has(society) && cursorRefused.includes(code)) {
      refused.push(society)
      return
    }
    const { firm } = listed.get(society)!
    const failure = `${code}: ${message}`.slice(0, failureLengthMax)
    await copy.note([society], { firm_id: firm.id, firm_name: firm.name, failed_at: now(), failure })
    summary.failed.push(society)
    run.onEvent?.({ kind: 'failed', society, code, message })
  }
  while (left.length > 0)
    try {
      for await (const part of ledger.ledgerChanges(left, { encoding, signal })) {
        if (part.kind === 'whole') continue
        begun =
          part.kind === 'ledger' || part.kind === 'table' || part.kind === 'rows'
            ? left[0]!.society
            : undefined
        if (part.kind === 'refused') await fail(part.society, part.code, part.message)
        else if (part.kind === 'postponed') {
          await copy.rollback()
          left = [...left.slice(1), left[0]!]
          continue
        }
        const copied = part.kind === 'refused' ? undefined : await receiver.take(part)
        if (part.kind === 'rows') run.onEvent?.({ kind: 'rows', rows: part.rows })
        if (copied) {
          summary.copied += 1
          summary.rows += copied.rows_after
          run.onEvent?.(copied)
        }
        if (part.kind === 'refused' || part.kind === 'end') left = left.slice(1)
      }
    } catch (error) {
      await copy.rollback()
      const [under] = left
      if (signal?.aborted || !under) throw error
      const { code, message } = error as GrandlivreError
      if (code === 'NOT-PROVEN') {
        // What came wrong is of this ledger alone.
        left = left.slice(1)
        await fail(under.society, code, message)
        continue
      }
      // It comes last in the next run, so that the others come.
      const isOfLedger = code === 'CONNECTION-LOST' || !(error instanceof GrandlivreError)
      if (isOfLedger && begun === under.society) await fail(begun, code, message).catch(() => {})
      throw error
    }
  return refused
}
