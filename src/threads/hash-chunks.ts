/** SHA-256 of the chunks of an export, in a hash thread. */
import { createHash } from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import type { Credit, FromThread } from './channel.ts'

export interface HashTask {
  /** Where the messages of a ChannelWriter or a ThreadHash come from. */
  from: MessagePort
  /** Where they go, and credit comes from. Absent: back. */
  to?: MessagePort
}

/** Passes messages on, and adds the digest to the end. Resolves when a side has closed its port; closes the other. */
export function hashChunks({ from, to = from }: HashTask): Promise<void> {
  const hash = createHash('sha256')
  from.on('message', (message: FromThread<unknown, object>) => {
    switch (message.kind) {
      case 'chunk':
        hash.update(message.bytes)
        to.postMessage(message, [message.bytes.buffer])
        break
      case 'end': {
        const summary = { ...message.summary, sha256: hash.digest('hex') }
        to.postMessage({ ...message, summary }, message.buffers)
        break
      }
      default:
        to.postMessage(message)
    }
  })
  if (to !== from) {
    to.on('message', (credit: Credit) => from.postMessage(credit, credit.buffers))
    to.on('close', () => from.close())
  }
  return new Promise((resolve) => {
    from.on('close', () => {
      to.close()
      resolve()
    })
  })
}
