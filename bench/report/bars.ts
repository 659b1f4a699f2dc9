/**
 * Draws panels of horizontal bars side by side, with a line for each name: each bar a median, with a line from the
 * least to the most. Readable on light and dark.
 */

import { median } from '../statistics.ts'
import type { Machine } from './results.ts'

const width = 880
const labelWidth = 270
const valueWidth = 62
const lineHeight = 24
const barHeight = 13
const headHeight = 78

/** Bars longer than this many times the one in the middle are cut off, so that the others can be read. */
const longestOfMiddle = 3

export interface Line {
  name: string
  kind: 'ours' | 'floor' | 'peer'
}

export interface Panel {
  title: string
  /** What is measured, in a few words. */
  subtitle: string
  /** For each line the values of its rounds; undefined where they are not known. */
  bars: (Bar | undefined)[]
  /** The text of a value, with its unit. */
  print: (value: number) => string
  /** A dashed line across all bars. */
  mark?: number
}

export interface Bar {
  values: number[]
  /** A second part of the bar: the values include it. */
  paler?: number[]
}

export function barsOf(title: string, machine: Machine, lines: Line[], panels: Panel[]): string {
  const height = headHeight + lines.length * lineHeight + 8
  const panelWidth = (width - labelWidth) / panels.length
  const drawn = panels.map((panel, place) =>
    drawPanel(panel, lines, labelWidth + place * panelWidth, panelWidth - valueWidth),
  )
  const where = `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, PostgreSQL ${machine.postgres}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${xmlText(title)}</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .quiet { fill: #59636e }
  .small { font-size: 12px }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 4 }
  .paper { fill: #ffffff }
  .ours { fill: #1a7f5a }
  .floor { fill: #8c959f }
  .peer { fill: #b9c1c9 }
  .paler { opacity: 0.5 }
  .spread { stroke: #1f2328; stroke-width: 1.2 }
  .mark { stroke: #cf222e; stroke-dasharray: 3 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .value { stroke: #0d1117 }
    .paper { fill: #0d1117 }
    .ours { fill: #3fb98a }
    .floor { fill: #a4abb4 }
    .peer { fill: #656c76 }
    .spread { stroke: #e6edf3 }
    .mark { stroke: #ff7b72 }
  }
</style>
<rect class="paper" width="${width}" height="${height}"/>
<text class="quiet" x="12" y="22">${xmlText(`${title}. ${where}`)}</text>
${lines.map(({ name }, place) => `<text x="12" y="${middleOf(place) + 4.5}">${xmlText(name)}</text>`).join('\n')}
${drawn.join('\n')}
</svg>
`
}

function middleOf(place: number): number {
  return headHeight + place * lineHeight + barHeight / 2
}

function drawPanel(
  { title, subtitle, bars, print, mark }: Panel,
  lines: Line[],
  left: number,
  barsWidth: number,
): string {
  const scale = barsWidth / longestOf(bars, mark ?? 0)
  const drawn = bars.flatMap((bar, place) =>
    bar === undefined
      ? []
      : [drawBar(bar, lines[place]!.kind, middleOf(place), left, barsWidth, scale, print)],
  )
  return [
    `<text class="title" x="${left}" y="48">${xmlText(title)}</text>`,
    `<text class="quiet small" x="${left}" y="65">${xmlText(subtitle)}</text>`,
    ...(mark === undefined ? [] : [drawMark(left + mark * scale, lines.length)]),
    ...drawn,
  ].join('\n')
}

function longestOf(bars: (Bar | undefined)[], marked: number): number {
  const longest = bars.flatMap((bar) => (bar === undefined ? [] : [Math.max(...bar.values)]))
  const limit = longestOfMiddle * median(longest)
  const whole = longest.filter((value) => value <= limit)
  // The end of a bar that is cut off is further out than that of any other.
  return Math.max(...whole.map((value) => (whole.length < longest.length ? 1.2 * value : value)), marked)
}

function drawBar(
  { values, paler }: Bar,
  kind: Line['kind'],
  middle: number,
  left: number,
  barsWidth: number,
  scale: number,
  print: Panel['print'],
): string {
  const top = middle - barHeight / 2
  const value = median(values)
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const isCut = value * scale > barsWidth
  const at = (of: number) => left + Math.min(of * scale, barsWidth)
  const rect = (className: string, from: number, to: number) =>
    `<rect class="${className}" x="${at(from).toFixed(1)}" y="${top}" width="${(at(to) - at(from)).toFixed(1)}" height="${barHeight}"/>`
  const solid = paler === undefined ? value : value - median(paler)
  const [start, end] = [at(least).toFixed(1), at(most).toFixed(1)]
  const spread =
    isCut || values.length === 1
      ? ''
      : `<path class="spread" d="M${start} ${middle}H${end}M${start} ${middle - 4}v8M${end} ${middle - 4}v8"/>`
  const gap = isCut ? `<path class="paper" d="M${at(value) - 16} ${top - 1}h5l-4 ${barHeight + 2}h-5z"/>` : ''
  return `${rect(kind, 0, solid)}${paler === undefined ? '' : rect(`${kind} paler`, solid, value)}${spread}${gap}
<text class="value" x="${(at(isCut ? value : most) + 6).toFixed(1)}" y="${middle + 4.5}">${xmlText(print(value))}</text>`
}

function drawMark(x: number, lines: number): string {
  return `<path class="mark" d="M${x.toFixed(1)} ${headHeight - 5}v${lines * lineHeight}"/>`
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
