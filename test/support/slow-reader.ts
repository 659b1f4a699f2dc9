import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { expect } from 'vitest'
import { open } from './download.ts'

export interface SlowReader {
  message: IncomingMessage
  /** Bytes read so far. */
  bytes: number
  /** Reads so many bytes, or to the end, and gives them to the hash. */
  read(bytes: number): Promise<void>
  digest(): string
}

/** Begins an export whose bytes are read when the test says so. */
export async function slowReader(url: string, headers: Record<string, string>): Promise<SlowReader> {
  const message = await open(url, headers)
  expect(message.statusCode).toBe(200)
  const hash = createHash('sha256')
  const reader: SlowReader = {
    message,
    bytes: 0,
    digest: () => hash.digest('hex'),
    async read(bytes) {
      const target = reader.bytes + bytes
      while (reader.bytes < target && !message.readableEnded) {
        const chunk = message.read() as Buffer | null
        if (chunk) {
          hash.update(chunk)
          reader.bytes += chunk.length
        } else {
          const heard = new AbortController()
          const { signal } = heard
          await Promise.race(['readable', 'end'].map((event) => once(message, event, { signal }))).finally(
            () => heard.abort(),
          )
        }
      }
    },
  }
  return reader
}
