/**
 * Lines of the file: `{"exercice":"1115","draft":false,"movement":<the line of the movement>}`, where the movement has the
 * exact bytes that the service gives.
 */
import { Buffer } from 'node:buffer'
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Part } from '../targets/target.ts'

const tail = Buffer.from('}\n')
const beforeMovement = Buffer.from(',"movement":')
const beforeEntryId = Buffer.from('"entry":{"producerId":"')

export function wrappingOf({ exercice, draft }: Part): Buffer {
  return Buffer.from(`{"exercice":"${exercice}","draft":${draft},"movement":`)
}

/** @param movement with its line feed */
export function wrapped(wrapping: Buffer, movement: Buffer): Buffer {
  return Buffer.concat([wrapping, movement.subarray(0, -1), tail])
}

/** The line of the movement without its line feed. */
export function movementOf(line: Buffer): Buffer {
  return line.subarray(line.indexOf(beforeMovement) + beforeMovement.length, -tail.length)
}

/** Id of the entry. Texts before it cannot hold these bytes: a quote in a text follows a backslash. */
export function entryOf(line: Buffer): number {
  let id = 0
  for (let at = line.indexOf(beforeEntryId) + beforeEntryId.length; line[at] !== quote; at += 1)
    id = id * 10 + line[at]! - 48
  return id
}

const quote = 34
const chunkBytes = 1024 * 1024

/** Lines with their line feeds, of a part of a file. */
export async function* linesBetween(path: string, start: number, end: number): AsyncGenerator<Buffer> {
  if (start === end) return
  let rest: Buffer = Buffer.alloc(0)
  const chunks = createReadStream(path, { start, end: end - 1, highWaterMark: chunkBytes })
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    let from = 0
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, from)) {
      yield bytes.subarray(from, at + 1)
      from = at + 1
    }
    rest = bytes.subarray(from)
  }
}

/** Writes lines to a file, some MB at a time. */
export class LineWriter {
  readonly #file: FileHandle
  #lines: Buffer[] = []
  #waitingBytes = 0
  /** Where the next line goes. */
  at: number

  constructor(file: FileHandle, at: number) {
    this.#file = file
    this.at = at
  }

  add(line: Buffer): Promise<void> | undefined {
    this.#lines.push(line)
    this.#waitingBytes += line.length
    this.at += line.length
    return this.#waitingBytes < chunkBytes ? undefined : this.flush()
  }

  async flush(): Promise<void> {
    const bytes = Buffer.concat(this.#lines)
    let done = 0
    const start = this.at - this.#waitingBytes
    while (done < bytes.length)
      done += (await this.#file.write(bytes, done, bytes.length - done, start + done)).bytesWritten
    this.#lines = []
    this.#waitingBytes = 0
  }
}
