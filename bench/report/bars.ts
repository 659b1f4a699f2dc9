/**
 * Draws panels of horizontal bars: each a median, with a line from the least to the most. Readable on light and
 * dark.
 */

import { median } from '../statistics.ts'
import type { Machine } from './results.ts'

const width = 860
const labelWidth = 264
const valueWidth = 120
const barsWidth = width - labelWidth - valueWidth
const lineHeight = 26
const barHeight = 14
const titleHeight = 46
const top = 36

export interface Bar {
  name: string
  kind: 'ours' | 'floor' | 'peer'
  /** Of the rounds. */
  values: number[]
  /** A second part of the bar: the values include it. */
  lighter?: number[]
}

export interface Panel {
  title: string
  bars: Bar[]
  /** The text of a value, with its unit. */
  print: (value: number) => string
  /** A dashed line across all bars. */
  mark?: { value: number; text: string }
}

export function barsOf(title: string, machine: Machine, panels: Panel[]): string {
  let y = top
  const drawn = panels
    .filter(({ bars }) => bars.length > 0)
    .map((panel) => {
      const text = draw(panel, y + titleHeight)
      y += titleHeight + panel.bars.length * lineHeight
      return text
    })
  const height = y + 16
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${xmlText(title)}</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .quiet { fill: #59636e }
  .paper { fill: #ffffff }
  .ours { fill: #1a7f5a }
  .floor { fill: #8c959f }
  .peer { fill: #b9c1c9 }
  .lighter { opacity: 0.5 }
  .spread { stroke: #1f2328; stroke-width: 1.2 }
  .mark { stroke: #cf222e; stroke-dasharray: 3 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .paper { fill: #0d1117 }
    .ours { fill: #3fb98a }
    .floor { fill: #7d8590 }
    .peer { fill: #484f58 }
    .spread { stroke: #e6edf3 }
    .mark { stroke: #ff7b72 }
  }
</style>
<rect class="paper" width="${width}" height="${height}"/>
<text class="quiet" x="16" y="24">${xmlText(`${title}. ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, PostgreSQL ${machine.postgres}`)}</text>
${drawn.join('\n')}
</svg>
`
}

function draw({ title, bars, print, mark }: Panel, y: number): string {
  const scale = barsWidth / longestOf(bars, mark?.value ?? 0)
  const lines = bars.map((bar, index) => drawBar(bar, y + index * lineHeight, scale, print))
  return [
    `<text class="title" x="16" y="${y - 12}">${xmlText(title)}</text>`,
    ...lines,
    ...(mark === undefined ? [] : [drawMark(mark, y, bars.length, scale)]),
  ].join('\n')
}

/** One bar that is much longer than the rest does not make them unreadable: it is cut off. */
function longestOf(bars: Bar[], marked: number): number {
  const [longest = 0, second = longest] = bars.map(({ values }) => Math.max(...values)).sort((a, b) => b - a)
  return Math.max(longest > 2 * second ? 1.25 * second : longest, marked)
}

function drawBar({ name, kind, values, lighter }: Bar, y: number, scale: number, print: Panel['print']) {
  const middle = y + barHeight / 2
  const value = median(values)
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const isCut = value * scale > barsWidth
  const at = (of: number) => (labelWidth + Math.min(of * scale, barsWidth)).toFixed(1)
  const rect = (className: string, from: number, to: number) =>
    `<rect class="${className}" x="${at(from)}" y="${y}" width="${(Number(at(to)) - Number(at(from))).toFixed(1)}" height="${barHeight}"/>`
  const solid = lighter === undefined ? value : value - median(lighter)
  const spread =
    isCut || values.length === 1
      ? ''
      : `<path class="spread" d="M${at(least)} ${middle}H${at(most)}M${at(least)} ${middle - 4}v8M${at(most)} ${middle - 4}v8"/>`
  return `<text x="16" y="${middle + 4.5}">${xmlText(name)}</text>
${rect(kind, 0, solid)}${lighter === undefined ? '' : rect(`${kind} lighter`, solid, value)}${spread}
${isCut ? `<path class="paper" d="M${Number(at(value)) - 22} ${y - 1}h6l-5 ${barHeight + 2}h-6z"/>` : ''}<text x="${(Number(at(isCut ? value : most)) + 8).toFixed(1)}" y="${middle + 4.5}">${xmlText(print(value))}</text>`
}

function drawMark(
  { value, text }: NonNullable<Panel['mark']>,
  y: number,
  bars: number,
  scale: number,
): string {
  const x = (labelWidth + value * scale).toFixed(1)
  return `<path class="mark" d="M${x} ${y - 6}V${y + bars * lineHeight - 6}"/>
<text class="quiet" x="${x}" y="${y - 10}" text-anchor="middle">${xmlText(text)}</text>`
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
