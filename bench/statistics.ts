/** @param share 0.5 for the median; interpolates linearly between two values */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)]!
  const above = sorted[Math.ceil(place)]!
  return below + (above - below) * (place - Math.floor(place))
}

export function median(values: number[]): number {
  return quantile(values, 0.5)
}

/** Null if either is unknown. */
export function highest(values: (number | null)[]): number | null {
  return values.includes(null) ? null : Math.max(...(values as number[]))
}
