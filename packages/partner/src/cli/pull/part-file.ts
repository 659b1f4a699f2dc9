/**
 * The unfinished file of a pull, `<out>.part`, and beside it what a later run needs to go on: `<out>.part.json`.
 *
 * The state is written after each piece of the file, and replaced whole, so that a kill at any moment leaves a file that
 * is at least as long as its state says. What is longer is cut off. The finished file appears by a rename.
 */
import { open, readFile, rm, stat } from 'node:fs/promises'
import { createPart, namePart, partOf, replaceState, stateFileOf } from '../../client/files/part-file.ts'
import { localFailure } from '../exit-codes.ts'
import { isRunning } from '../running-process.ts'
import { beginning, type Checkpoint } from './piece-writer.ts'

/** What a file consists of. Two pulls with the same source make the same file. */
export interface Source {
  baseUrl: string
  /** Id of the folder. */
  society: string
  /** The parameters of the selection. */
  selection: Readonly<Record<string, unknown>>
}

interface State extends Source, Marks {
  /** For readers of the file. */
  about: string
  /** Of the process that writes, so that no other one does. */
  pid: number
}

const about = 'An unfinished pull by grandlivre. The same command goes on with it.'

/** How far the file is, and of which state of the ledger. */
export interface Marks extends Checkpoint {
  /** Of the first answer; empty before it. */
  etag: string
  cursor: string
}

export const nothingYet: Marks = { ...beginning, etag: '', cursor: '' }

export type PartFile = Awaited<ReturnType<typeof openPart>>

/**
 * Opens the unfinished file, cut to its last whole piece, or begins a new one.
 * @param force discards the unfinished file of another source
 * @throws {Failure} if there is another's unfinished file
 */
export async function openPart(out: string, source: Source, force: boolean) {
  const path = partOf(out)
  const size = await sizeOf(path)
  // A kill just after the rename leaves the state alone.
  const left = size === undefined ? undefined : await stateToContinue(out, source, force)
  if (left === undefined && size !== undefined && !force)
    throw localFailure(
      `${path} exists, and is not an unfinished pull`,
      'Move it away, choose another --out, or give --force to replace it.',
    )
  // A crash of the machine may have kept the state and lost the end of the file.
  const goesOn = left !== undefined && left.etag !== '' && left.fileBytes <= size!
  const start: Marks = goesOn ? left : nothingYet
  await writeState(out, source, start)
  const file = goesOn ? await open(path, 'r+') : await createPart(out)
  await file.truncate(start.fileBytes)
  let { etag } = start
  const record = (marks: Marks) => {
    etag = marks.etag
    return writeState(out, source, marks)
  }
  return {
    path,
    file,
    /** Where this run goes on. */
    start,
    record,

    /** Begins again. */
    async restart(): Promise<void> {
      await record(nothingYet)
      await file.truncate(0)
    },

    /** Leaves nothing of a pull that the service refused, or that wrote nothing yet for another reason. */
    async removeEmpty(): Promise<void> {
      if (etag === '') for (const each of [path, stateFileOf(out)]) await rm(each, { force: true })
    },

    /** Gives the whole file its name, once it is on the disk. @returns its bytes */
    async finish(): Promise<number> {
      await file.sync()
      const { size, ino } = await file.stat()
      if (ino !== (await stat(path).catch(() => undefined))?.ino)
        throw localFailure(
          `${path} was moved, or replaced by another pull`,
          'Let one pull end before another one writes the same file.',
        )
      await file.close()
      await namePart(out)
      return size
    },
  }
}

function writeState(out: string, { baseUrl, society, selection }: Source, marks: Marks): Promise<void> {
  const { etag, cursor, after, rows, contentBytes, fileBytes } = marks
  const { pid } = process
  const ofSource = { about, baseUrl, society, selection }
  const state: State = { ...ofSource, etag, cursor, after, rows, contentBytes, fileBytes, pid }
  return replaceState(out, `${JSON.stringify(state, null, 2)}\n`)
}

/** @returns undefined if this pull begins again */
async function stateToContinue(out: string, source: Source, force: boolean): Promise<State | undefined> {
  const found = await readState(out).catch((error: Error) => {
    if (!force) throw error
  })
  if (found === undefined) return undefined
  if (found.pid !== process.pid && isRunning(found.pid))
    throw localFailure(
      `Another pull, process ${found.pid}, writes ${partOf(out)}`,
      `Wait for its end. If process ${found.pid} is something else, delete ${stateFileOf(out)} and ${partOf(out)}.`,
    )
  // Killed before its first piece: there is nothing to lose.
  if (textOf(found) === textOf(source) || found.etag === '') return found
  if (force) return undefined
  throw localFailure(
    `${partOf(out)} is an unfinished pull of ${textOf(found)}, and this one is of ${textOf(source)}`,
    'Finish that one first, choose another --out, or give --force to discard it.',
  )
}

export function isStateOfPull(text: string): boolean {
  try {
    return JSON.parse(text)?.about === about
  } catch {
    return false
  }
}

async function readState(out: string): Promise<State | undefined> {
  const text = await readFile(stateFileOf(out), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
  if (text === undefined) return undefined
  if (isStateOfPull(text)) return JSON.parse(text)
  throw localFailure(
    `${stateFileOf(out)} is not the state of an unfinished pull`,
    'Move it away, choose another --out, or give --force to begin again.',
  )
}

function textOf({ baseUrl, society, selection }: Source): string {
  const parameters = Object.entries(selection).map(([name, value]) => `${name} ${value}`)
  return `${parameters.sort().join(', ')} of the folder ${society} at ${baseUrl}`
}

async function sizeOf(path: string): Promise<number | undefined> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  return found?.size
}
