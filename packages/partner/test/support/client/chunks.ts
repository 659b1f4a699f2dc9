/** What tests do with streams of chunks. */

export async function joined(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks))
}

/** The error of a promise. Without an error, `rejects` would print megabytes. */
export const errorOf = (reading: Promise<unknown>): Promise<unknown> =>
  reading.then(
    () => undefined,
    (error: unknown) => error,
  )
