/**
 * Movements of a block. Small blocks, because changes are scattered: of 600,000 movements 0.1 % changed entries touch a
 * third of the blocks of 1,000, and two thirds of those of 2,900. Part of ETags.
 */
export const blockSizes = {
  /** Where nothing else counts, a block ends with the entry that reaches this size. */
  usual: 1000,
  /** A block that has grown to this size is cut. */
  most: 2000,
  /** A smaller one is joined with the next when either is rendered again. */
  least: 500,
} as const
