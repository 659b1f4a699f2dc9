/** Books that a format cannot hold. No retry helps: the books themselves need a change. The message is for the caller. */
export class UnsupportedByFormat extends Error {
  override name = 'UnsupportedByFormat'
}
