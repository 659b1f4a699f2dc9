/** What a sync asks the service about its folder. */
import { createHash } from 'node:crypto'
import type { Terminal } from '../../../../terminal/src/terminal.ts'
import type { Account, Exercice, Journal } from '../../client/api/items.ts'
import { GrandlivreError } from '../../client/errors.ts'
import type { Changes, Entry, Grandlivre, LedgerStream, StreamOptions } from '../../client/grandlivre.ts'
import { type EntrySelection, queryOf } from '../../client/selection.ts'
import { Transfer } from '../../client/stream.ts'
import { isOnThisMachine } from '../access.ts'
import type { Collections, EntryRange, Part, Source, Target } from './targets/target.ts'

export interface Folder {
  ledger: Grandlivre
  source: Source
  signal: AbortSignal
}

/** What every step of a sync needs. */
export interface Copying {
  folder: Folder
  target: Target
  terminal: Terminal
}

/** Collections at one state of the ledger. */
export interface Collected {
  collections: Collections
  /** Undefined if the ledger changed while they were read. */
  cursor: string | undefined
  /** Of what lines repeat of them. */
  labels: string
}

/** The accounts of 400,000 third parties have about 220 MB, and no text of Node has more than 536 million characters. */
const collectionBytesMax = 256_000_000

export async function readCollections({ ledger, signal }: Folder): Promise<Collected> {
  const read = async <Item>(name: string) => {
    const query = { version: '1.0.0' }
    const request = { path: `/mad/${name}`, query, signal, wholeBytesMax: collectionBytesMax }
    const { answer, value } = await ledger.requests.json(request)
    return { items: value as Item[], cursor: answer.headers['x-ledger-cursor'] }
  }
  const [{ items: accounts, cursor }, journals, exercices] = await Promise.all([
    read<Account>('accounts'),
    read<Journal>('journals'),
    read<Exercice>('exercices'),
  ])
  const isOneState = cursor === journals.cursor && cursor === exercices.cursor
  return {
    collections: { accounts, journals: journals.items, exercices: exercices.items },
    cursor: isOneState ? cursor : undefined,
    labels: createHash('sha256')
      .update(JSON.stringify([accounts, journals.items]))
      .digest('hex'),
  }
}

/** The parts of the folder: the newest exercices first, and of each the validated entries first. */
export function partsOf({ exercices }: Collections, { exercice }: Source): Part[] {
  return exercices
    .filter(({ producerId }) => exercice === undefined || producerId === exercice)
    .toReversed()
    .flatMap(({ producerId }) => [
      { exercice: producerId, draft: false },
      { exercice: producerId, draft: true },
    ])
}

/** The exercice in which most happens: the newest one that has begun and is open, or the newest one. */
export function liveliest({ exercices }: Collections, source: Source, today: string): string | undefined {
  const known = exercices.toReversed()
  const kept = known.filter(({ producerId }) => [undefined, producerId].includes(source.exercice))
  const open = kept.filter(({ state, period }) => state === 'open' && period.start <= today)
  const [first] = [...open, ...kept]
  return first?.producerId
}

export function selectionOf(part: Part, extended: boolean): EntrySelection {
  return {
    exercice: part.exercice,
    ...(part.draft ? { draft: true } : {}),
    ...(extended ? { columns: 'extended' as const } : {}),
  }
}

export function readEntries(
  { ledger, signal, source }: Folder,
  part: Part,
  extended: boolean,
  options: StreamOptions = {},
): LedgerStream<Entry> {
  const encoding = isOnThisMachine(source.baseUrl) ? 'identity' : undefined
  return ledger.entries(selectionOf(part, extended), { signal, encoding, ...options })
}

/** @param wait seconds for which the service holds the request if nothing has changed */
export function readChanges(
  { ledger, signal }: Folder,
  part: Part,
  extended: boolean,
  since: string,
  wait = 0,
): Promise<Changes<Entry>> {
  return ledger.changes(since, selectionOf(part, extended), { of: 'entries', wait, signal })
}

export function readRanges(
  { ledger, signal }: Folder,
  part: Part,
  extended: boolean,
  ranges: readonly EntryRange[],
): AsyncGenerator<Uint8Array> {
  const entries = ranges.map((range) => range.join('-')).join(',')
  const query = { ...queryOf(selectionOf(part, extended), 'entries'), entries }
  return new Transfer(ledger.requests, { streamed: 'entries', query }, { signal }).chunks()
}

/** An older service does not know `columns` of entries. */
export function refusesColumns(error: unknown): boolean {
  return error instanceof GrandlivreError && error.issues.some(({ parameter }) => parameter === 'columns')
}

/** The exercice of the part is gone. */
export function isGone(error: unknown): boolean {
  return error instanceof GrandlivreError && error.code === 'ERR-EXERCICE-NOT-FOUND'
}

/** The ledger changed while it was read. */
export function isChanged(error: unknown): boolean {
  return error instanceof GrandlivreError && error.code === 'LEDGER-CHANGED'
}

/** The changes since the cursor are no longer known. */
export function isExpired(error: unknown): boolean {
  return error instanceof GrandlivreError && error.code === 'ERR-CURSOR-EXPIRED'
}
