/**
 * Uses chunks one after the other, each while the next is rendered: other threads compress, write and hash them. One
 * after the other, a JSON file in zstd took 1.4 times as long.
 */
export async function eachBesideNext<Chunk>(
  chunks: AsyncIterable<Chunk>,
  use: (chunk: Chunk) => Promise<void>,
): Promise<void> {
  let used = Promise.resolve()
  for await (const chunk of chunks) {
    await used
    used = use(chunk)
    // Reported by the next await, unless rendering fails first.
    used.catch(() => {})
  }
  await used
}
