/**
 * A Bloom filter: remembers the keys it has seen in 16 MiB, whatever their number. It never forgets a key, but may
 * report a new one as seen (once in 100,000 keys, for 5 million of them). A set of 5 million strings would take 500 MB.
 */
export class BloomFilter {
  readonly #bits = new Uint32Array(2 ** 22)

  /** Adds the key. @returns whether it may have been added before */
  add(key: string): boolean {
    let [low, high] = hashes(key)
    let seen = true
    for (let probe = 0; probe < probesPerKey; probe += 1) {
      // The upper 22 bits select a word and the 5 below them a bit in it.
      const word = low >>> 10
      const bit = 1 << ((low >>> 5) & 31)
      seen &&= (this.#bits[word]! & bit) !== 0
      this.#bits[word]! |= bit
      low = (low + high) | 0
      high = (high + probe) | 0
    }
    return seen
  }
}

const probesPerKey = 6

/** Two independent 32-bit hashes (FNV-1a, each with its own final mix), from which the probes derive. */
function hashes(key: string): [number, number] {
  let hash = 0x811c9dc5
  let other = 0x9747b28c
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at)
    hash = Math.imul(hash ^ code, 0x01000193)
    other = Math.imul(other ^ code, 0x5bd1e995)
    other ^= other >>> 15
  }
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  return [hash | 0, other | 1]
}
