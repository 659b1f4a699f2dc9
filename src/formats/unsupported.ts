/**
 * The format cannot hold these books. A retry does not help: the books need a change. The message is for the caller.
 */
export class UnsupportedByFormat extends Error {
  override name = 'UnsupportedByFormat'
}
