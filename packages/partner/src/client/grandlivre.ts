/** The library of partners: reads ledgers whole or not at all. `import { Grandlivre } from 'grandlivre'` */
import { type AnswerOf, type Call, callRoute, type Path } from './api/calls.ts'
import type { Entry, Movement } from './api/items.ts'
import { type Blocks, readBlocks } from './blocks.ts'
import { type Changes, type ChangesOptions, readChanges } from './changes.ts'
import { type CopiedLines, type Repair, readRepair } from './compare/repair.ts'
import { type EventOptions, type EventPage, type NumberedEvent, readEventPages } from './events.ts'
import {
  type FullExport,
  type FullExportOptions,
  type FullExportSelection,
  fullExport as startFullExport,
} from './full-export.ts'
import { readLedgerBlocks } from './ledgers/blocks.ts'
import { readLedgerChanges } from './ledgers/ledger-changes.ts'
import type {
  LedgerBlocks,
  LedgerChangesOptions,
  LedgerList,
  LedgerPart,
  LedgerRefused,
  LedgersOptions,
  WantedLedger,
} from './ledgers/ledger-parts.ts'
import { listLedgers } from './ledgers/ledgers-requests.ts'
import { Requests, type RequestsOptions } from './requests.ts'
import { type EntrySelection, type MovementSelection, queryOf } from './selection.ts'
import { type LedgerStream, LedgerTransfer, type StreamOptions } from './stream.ts'

export type * from './api/items.ts'
export type { Block, Blocks } from './blocks.ts'
export type { Changes, ChangesOptions, EntryRange } from './changes.ts'
export type { CopiedLines, Repair } from './compare/repair.ts'
export { GrandlivreError, type Issue } from './errors.ts'
export type { EventGap, EventOptions, EventPage, NumberedEvent } from './events.ts'
export type { Downloaded, DownloadOptions, DownloadProgress } from './files/download.ts'
export type {
  DoneExport,
  FullExport,
  FullExportOptions,
  FullExportProgress,
  FullExportSelection,
} from './full-export.ts'
export { readRow, readRows } from './ledgers/fields.ts'
export type * from './ledgers/ledger-parts.ts'
export type { RequestsOptions as GrandlivreOptions, Wait } from './requests.ts'
export type { EntrySelection, MovementSelection } from './selection.ts'
export type { LedgerStream, Progress, ResumePoint, StreamOptions } from './stream.ts'

/**
 * A folder of the service, as the token of a partner opens it. Every method throws GrandlivreError, or the reason of
 * its signal.
 */
export class Grandlivre {
  /** Sends single requests, for everything that this class has no method for. */
  readonly requests: Requests

  /** @throws {GrandlivreError} INVALID-OPTION, which names the option */
  constructor(options: RequestsOptions) {
    this.requests = new Requests(options)
  }

  /** The movements of a selection, in the order of their entries' ids, then of their own ids. */
  movements(selection: MovementSelection, options: StreamOptions = {}): LedgerStream<Movement> {
    const query = queryOf(selection, 'movements')
    const blocks = () => this.blocks(selection, { signal: options.signal })
    return new LedgerTransfer(this.requests, { streamed: 'movements', query, blocks }, options)
  }

  /** The entries of a selection with their movements, in the order of their ids. */
  entries(selection: EntrySelection, options: StreamOptions = {}): LedgerStream<Entry> {
    const source = { streamed: 'entries', query: queryOf(selection, 'entries') } as const
    return new LedgerTransfer(this.requests, source, options)
  }

  /**
   * What changed in a selection since a cursor.
   * @throws {GrandlivreError} ERR-CURSOR-EXPIRED: `repair` the copy, or read entries in full; LEDGER-CHANGED: ask again
   */
  changes(
    cursor: string,
    selection: EntrySelection,
    options: ChangesOptions & { of: 'entries' },
  ): Promise<Changes<Entry>>
  changes(
    cursor: string,
    selection: MovementSelection,
    options?: ChangesOptions & { of?: 'movements' },
  ): Promise<Changes<Movement>>
  changes(
    cursor: string,
    selection: MovementSelection | EntrySelection,
    { of = 'movements', ...options }: ChangesOptions & { of?: 'movements' | 'entries' } = {},
  ): Promise<Changes<Movement | Entry>> {
    return readChanges(this.requests, of, queryOf(selection, of), cursor, options)
  }

  /** The digests of a selection's movements, to compare a copy with. */
  blocks(selection: MovementSelection, options: { signal?: AbortSignal | undefined } = {}): Promise<Blocks> {
    return readBlocks(this.requests, selection, options.signal)
  }

  /**
   * The difference between a copy of movements and the ledger. Apply it like changes: it brings a copy up to date after
   * ERR-CURSOR-EXPIRED.
   * @param copy its lines, in the order of the ledger
   * @throws {GrandlivreError} LEDGER-CHANGED: ask again
   */
  repair(
    selection: MovementSelection,
    copy: CopiedLines,
    options: Omit<ChangesOptions, 'wait'> = {},
  ): Promise<Repair> {
    return readRepair(this.requests, selection, copy, options)
  }

  /** The ledgers that the token may read. @returns undefined if the list has not changed since `after` */
  ledgers(options: LedgersOptions & { after?: undefined }): Promise<LedgerList>
  ledgers(options?: LedgersOptions): Promise<LedgerList | undefined>
  ledgers(options: LedgersOptions = {}): Promise<LedgerList | undefined> {
    return listLedgers(this.requests, options)
  }

  /**
   * The rows of many ledgers, or what changed in them, as proven parts. If an answer breaks, the next answer goes
   * on where it ended.
   * @param wanted different folders, in the order in which they are to come. Default: all folders, in full
   * @throws {GrandlivreError} NOT-PROVEN; UNEXPECTED-ANSWER for tables that this version does not know
   */
  async *ledgerChanges(
    wanted?: readonly WantedLedger[],
    options: LedgerChangesOptions = {},
  ): AsyncGenerator<LedgerPart, void, undefined> {
    const ledgers = wanted ?? (await this.#societies(options)).map((society) => ({ society }))
    yield* readLedgerChanges(this.requests, ledgers, options)
  }

  /**
   * The digests of many ledgers, to compare copies with.
   * @param societies different folders. Default: all
   */
  async *ledgerBlocks(
    societies?: readonly string[],
    options: LedgerChangesOptions = {},
  ): AsyncGenerator<LedgerBlocks | LedgerRefused, void, undefined> {
    const all = societies ?? (await this.#societies(options))
    yield* readLedgerBlocks(this.requests, all, options)
  }

  async #societies({ signal }: LedgerChangesOptions): Promise<string[]> {
    return (await this.ledgers({ signal })).ledgers.map(({ society }) => society)
  }

  /**
   * Starts a full export, or finds one that was started before, and follows it until it ends.
   * @param wanted what to export, or the id of an export that the service still keeps
   * @throws {GrandlivreError} EXPORT-FAILED with the reason
   */
  fullExport(
    wanted: FullExportSelection | { exportId: string },
    options: FullExportOptions = {},
  ): Promise<FullExport> {
    return startFullExport(this.requests, wanted, options)
  }

  /**
   * The events of a subscription by number. The iteration never ends by itself, but waits for new events.
   * @throws {GrandlivreError} ERR-EVENTS-EXPIRED with `details.oldest`; EVENTS-MISSING for a gap, unless there is
   *   `onGap`
   */
  async *events(subscriptionId: string | number, options: EventOptions): AsyncGenerator<NumberedEvent> {
    for await (const { events } of this.eventPages(subscriptionId, options)) yield* events
  }

  /** Reads the same events in pages: the events of each answer together. */
  eventPages(subscriptionId: string | number, options: EventOptions): AsyncGenerator<EventPage> {
    return readEventPages(this.requests, subscriptionId, options)
  }

  /** Calls a route that does not stream, such as `get('/mad/accounts')`. The parameter `version` is added. */
  get<P extends Path<'get'>>(path: P, ...call: Call<'get', P>): Promise<AnswerOf<'get', P>> {
    return callRoute(this.requests, 'get', path, ...call)
  }

  post<P extends Path<'post'>>(path: P, ...call: Call<'post', P>): Promise<AnswerOf<'post', P>> {
    return callRoute(this.requests, 'post', path, ...call)
  }

  patch<P extends Path<'patch'>>(path: P, ...call: Call<'patch', P>): Promise<AnswerOf<'patch', P>> {
    return callRoute(this.requests, 'patch', path, ...call)
  }

  put<P extends Path<'put'>>(path: P, ...call: Call<'put', P>): Promise<AnswerOf<'put', P>> {
    return callRoute(this.requests, 'put', path, ...call)
  }

  delete<P extends Path<'delete'>>(path: P, ...call: Call<'delete', P>): Promise<AnswerOf<'delete', P>> {
    return callRoute(this.requests, 'delete', path, ...call)
  }

  /** Closes the connections that are kept open for further requests. */
  close(): void {
    this.requests.close()
  }
}
