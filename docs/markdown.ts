/** Tables in Markdown, and the figures in them. */
import { median } from '../bench/statistics.ts'

export function table(heading: string[], lines: string[][]): string[] {
  return [heading, heading.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`)
}

/** `1.74 (1.70-1.81)`: the median, then the least and the most; one number if they are printed alike. */
export function spreadOf(values: number[], decimals: number): string {
  const print = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
  const middle = print(median(values))
  const ends = [print(Math.min(...values)), print(Math.max(...values))]
  return ends.every((end) => end === middle) ? middle : `${middle} (${ends.join('-')})`
}
