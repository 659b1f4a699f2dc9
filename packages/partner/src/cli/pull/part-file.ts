/**
 * The unfinished file of a pull, `<out>.part`, and beside it what a later run needs to go on: `<out>.part.json`.
 *
 * The state is written after each piece of the file, and replaced whole, so that a kill at any moment leaves a file that
 * is at least as long as its state says. What is longer is cut off. The finished file appears by a rename.
 */
import { type FileHandle, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import { syncFolder } from '../../client/files/part-file.ts'
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

export class PartFile {
  readonly path: string
  readonly file: FileHandle
  /** Where this run goes on. */
  readonly start: Marks
  readonly #out: string
  readonly #source: Source

  private constructor(out: string, source: Source, file: FileHandle, start: Marks) {
    this.path = partOf(out)
    this.#out = out
    this.#source = source
    this.file = file
    this.start = start
  }

  /**
   * Opens the unfinished file, cut to its last whole piece, or begins a new one.
   * @param force discards the unfinished file of another source
   * @throws {Failure} if there is another's unfinished file
   */
  static async open(out: string, source: Source, force: boolean): Promise<PartFile> {
    const size = await sizeOf(partOf(out))
    // A kill just after the rename leaves the state alone.
    const found = size === undefined ? undefined : await stateToContinue(out, source, force)
    if (found === undefined && size !== undefined && !force)
      throw new Failure(
        `${partOf(out)} exists, and is not an unfinished pull`,
        'Move it away, choose another --out, or give --force to replace it.',
      )
    // A crash of the machine may have kept the state and lost the end of the file.
    const goesOn = found !== undefined && found.etag !== '' && found.fileBytes <= size!
    const start = goesOn ? found : nothingYet
    await writeState(out, stateOf(source, start))
    // A new file and not the old one emptied, which another pull may still be writing to.
    if (!goesOn) await rm(partOf(out), { force: true })
    const file = await open(partOf(out), goesOn ? 'r+' : 'wx')
    await file.truncate(start.fileBytes)
    return new PartFile(out, source, file, start)
  }

  async record(marks: Marks): Promise<void> {
    await writeState(this.#out, stateOf(this.#source, marks))
  }

  /** Begins anew. */
  async restart(): Promise<void> {
    await this.record(nothingYet)
    await this.file.truncate(0)
  }

  /** Gives the whole file its name, once it is on the disk. @returns its bytes */
  async finish(): Promise<number> {
    await this.file.sync()
    const { size, ino } = await this.file.stat()
    if (ino !== (await stat(this.path).catch(() => undefined))?.ino)
      throw new Failure(
        `${this.path} was moved, or replaced by another pull`,
        'Let one pull end before another one writes the same file.',
      )
    await this.file.close()
    await rename(this.path, this.#out)
    await syncFolder(dirname(this.#out))
    await rm(stateFileOf(this.#out), { force: true })
    return size
  }

  async close(): Promise<void> {
    await this.file.close()
  }
}

export function partOf(out: string): string {
  return `${out}.part`
}

export function stateFileOf(out: string): string {
  return `${out}.part.json`
}

function stateOf(source: Source, marks: Marks): State {
  const { etag, cursor, after, rows, contentBytes, fileBytes } = marks
  const { baseUrl, society, selection } = source
  const { pid } = process
  return { about, baseUrl, society, selection, etag, cursor, after, rows, contentBytes, fileBytes, pid }
}

async function writeState(out: string, state: State): Promise<void> {
  const draft = `${stateFileOf(out)}.tmp`
  await writeFile(draft, `${JSON.stringify(state, null, 2)}\n`)
  await rename(draft, stateFileOf(out))
}

/** @returns undefined if this pull begins anew */
async function stateToContinue(out: string, source: Source, force: boolean): Promise<State | undefined> {
  const found = await readState(out).catch((error: Error) => {
    if (!force) throw error
  })
  if (found === undefined) return undefined
  if (found.pid !== process.pid && isRunning(found.pid))
    throw new Failure(
      `Another pull, process ${found.pid}, writes ${partOf(out)}`,
      `Wait for its end. If process ${found.pid} is something else, delete ${stateFileOf(out)} and ${partOf(out)}.`,
    )
  if (textOf(found) === textOf(source)) return found
  if (force) return undefined
  throw new Failure(
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
  throw new Failure(
    `${stateFileOf(out)} is not the state of an unfinished pull`,
    'Move it away, choose another --out, or give --force to begin anew.',
  )
}

function textOf({ baseUrl, society, selection }: Source): string {
  const parameters = Object.entries(selection).map(([name, value]) => `${name} ${value}`)
  return `${parameters.sort().join(', ')} of the folder ${society} at ${baseUrl}`
}

function isRunning(pid: number): boolean {
  try {
    // Signal 0 only asks.
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  return found?.size
}
