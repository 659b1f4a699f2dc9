/**
 * A full export from its trigger to its end: its states, what makes two triggers the same, and what its caller is told
 * when it fails. Pure.
 */
import { createHash } from 'node:crypto'

/** Waiting for a process, with one, or ended. Drawn in src/README.md. */
export const jobStates = ['queued', 'running', 'done', 'failed'] as const
export type JobState = (typeof jobStates)[number]

/**
 * What can happen to a job: a process takes it, from the queue or from a process that died; gives it back, to be tried
 * again; has stored its file; has failed for good; and somebody else ends it, whoever has it.
 */
export const jobEvents = ['claim', 'release', 'finish', 'fail', 'end'] as const
export type JobEvent = (typeof jobEvents)[number]

/** Undefined: cannot happen, and changes nothing. */
export const transitions: Readonly<Record<JobState, Readonly<Record<JobEvent, JobState | undefined>>>> = {
  queued: { claim: 'running', release: undefined, finish: undefined, fail: undefined, end: 'failed' },
  running: { claim: 'running', release: 'queued', finish: 'done', fail: 'failed', end: 'failed' },
  done: { claim: undefined, release: undefined, finish: undefined, fail: undefined, end: undefined },
  failed: { claim: undefined, release: undefined, finish: undefined, fail: undefined, end: undefined },
}

/** The states in which that can happen. */
export function statesBefore(event: JobEvent): JobState[] {
  return jobStates.filter((state) => transitions[state][event] !== undefined)
}

/** As callers know it (interface, section 3.1). */
export function statusOf(state: JobState): 'INIT' | 'DONE' | 'FAILED' {
  if (state === 'done') return 'DONE'
  return state === 'failed' ? 'FAILED' : 'INIT'
}

/** What a trigger asks for. Ids are decimal digits, days `YYYY-MM-DD`, both inclusive. */
export interface ExportParameters {
  schemaId: string
  folderId: string
  version: string
  /** In any letter case. */
  format: string
  exerciceId?: string | undefined
  period?: { start: string; end: string } | undefined
  /** A set: order and repetition say nothing. Empty: all journals. */
  journalIds?: string[] | undefined
}

/** The same for triggers that ask for the same, 64 hexadecimal digits. */
export function identityOf(parameters: ExportParameters): string {
  const { schemaId, folderId, version, format, exerciceId, period, journalIds = [] } = parameters
  const asked = [
    wholeNumber(schemaId),
    wholeNumber(folderId),
    version,
    format.toUpperCase(),
    exerciceId === undefined ? null : wholeNumber(exerciceId),
    period === undefined ? null : [period.start, period.end],
    setOfIds(journalIds),
  ]
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex')
}

/** Ascending as numbers, each once. */
export function setOfIds(ids: string[]): string[] {
  const numbers = [...new Set(ids.map(BigInt))]
  return numbers.sort((a, b) => (a < b ? -1 : 1)).map(String)
}

function wholeNumber(digits: string): string {
  return String(BigInt(digits))
}

/**
 * What an export failed of: the database or the store was away too long; the store refused; the folder is gone, or
 * holds what the format cannot say; our own mistake; the process ended each time without a word; staff cancelled it;
 * nothing worked on it any more.
 */
export type FailureCause =
  | 'database'
  | 'store'
  | 'refused'
  | 'folder'
  | 'unfit'
  | 'internal'
  | 'died'
  | 'cancelled'
  | 'forgotten'

/** What happened, and what a new export would come to: the same trigger makes none within its hour. */
const causes: Record<FailureCause, string> = {
  database: 'The ledger could not be read to its end, although it was tried again. A new export may succeed.',
  store: 'The file could not be stored, although it was tried again. A new export may succeed.',
  refused:
    'The file could not be stored. A new export fails alike until the operators of the service have made room or ' +
    'given access.',
  folder: 'The folder is no longer there. A new export of it fails alike.',
  unfit: 'The folder holds what a file of this format cannot; a new export fails alike until that is mended.',
  internal:
    'The service failed to make the file. A new export is likely to fail alike until its operators have mended that.',
  died: 'The service was interrupted each time it made the file. A new export may succeed.',
  cancelled: 'The operators of the service cancelled the export. Ask them before you start a new export.',
  forgotten: 'The service did not get to this export in time. A new export may succeed.',
}

/**
 * A sentence for the caller, without internals.
 * @param requestId of the trigger
 * @param note what staff said when they cancelled it; what does not fit into the file
 */
export function reasonOf(cause: FailureCause, requestId: string, note?: string): string {
  const said = note === undefined ? '' : cause === 'cancelled' ? ` They say: ${note}.` : ` ${note}.`
  return `${causes[cause]}${said} Quote request ${requestId} to the operators if you need their help.`
}

/** The reason of a failed export, with the moment at which a new one can be started (ISO 8601). */
export function reasonWithExpiry(reason: string, answersUntil: string): string {
  return `${reason} The same parameters are answered with this failure until ${answersUntil}, and start a new export then.`
}
