/** Books that a TRA file cannot hold, for another reason than a value too long for its field. The message is for the caller. */
export class TraUnfit extends Error {
  override name = 'TraUnfit'
}
