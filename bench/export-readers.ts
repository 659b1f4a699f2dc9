/** Reads exports without a pause, several side by side, until it is stopped: load for what is measured meanwhile. */
import { drain } from './drain.ts'

export interface ExportReaders {
  url: string
  headers: Record<string, string>
  /** Side by side. */
  count: number
}

process.once('disconnect', () => process.exit())
process.once('message', ({ url, headers, count }: ExportReaders) => {
  let reading = 0
  const read = async (): Promise<void> => {
    let isFirst = true
    for (;;) {
      await drain(url, headers, () => {
        if (isFirst && ++reading === count) process.send?.('reading')
        isFirst = false
      })
    }
  }
  for (let reader = 0; reader < count; reader++) void read()
})
