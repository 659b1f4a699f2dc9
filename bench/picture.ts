/**
 * Draws the ways as horizontal bars: seconds, and the memory of the process that answers. Readable on light
 * and dark.
 */
import type { Machine } from './results.ts'
import { medianMs, type Row } from './rounds.ts'
import { highest } from './statistics.ts'
import { floorName, oursName } from './ways.ts'

const width = 860
const labelWidth = 250
const valueWidth = 90
const lineHeight = 28
const barHeight = 16
const panelGap = 46
const top = 64

interface Bar {
  name: string
  value: number
  text: string
}

/** @param rows of the year, including the floor and ours */
export function pictureOf(machine: Machine, rows: Row[]): string {
  const movements = rows.find(({ name }) => name === oursName)!.samples[0]!.rows!
  const seconds = rows.map((row): Bar => {
    const value = medianMs(row) / 1000
    return { name: row.name, value, text: `${value.toFixed(2)} s` }
  })
  const memory = rows.flatMap(({ name, samples }): Bar[] => {
    const value = highest(samples.map(({ peakMb }) => peakMb))
    return value === null ? [] : [{ name, value, text: `${value.toFixed(0)} MB` }]
  })
  const memoryTop = top + seconds.length * lineHeight + panelGap
  const height = memoryTop + memory.length * lineHeight + 24
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>Time and memory of exporting ${count(movements)} movements</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .quiet { fill: #59636e }
  .paper { fill: #ffffff }
  .ours { fill: #1a7f5a }
  .floor { fill: #8c959f }
  .peer { fill: #b9c1c9 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .paper { fill: #0d1117 }
    .ours { fill: #3fb98a }
    .floor { fill: #7d8590 }
    .peer { fill: #484f58 }
  }
</style>
<rect class="paper" width="${width}" height="${height}"/>
<text class="quiet" x="16" y="22">${xmlText(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, PostgreSQL ${machine.postgres}`)}</text>
${panel(`Seconds to export ${count(movements)} movements to a local client (shorter is better)`, seconds, top)}
${memory.length === 0 ? '' : panel('Peak memory of the process that answers', memory, memoryTop)}
</svg>
`
}

function panel(title: string, bars: Bar[], y: number): string {
  const longest = Math.max(...bars.map(({ value }) => value))
  const lines = bars.map(({ name, value, text }, index) => {
    const lineTop = y + index * lineHeight
    const middle = lineTop + barHeight / 2 + 5
    const length = (value / longest) * (width - labelWidth - valueWidth)
    const kind = name === floorName ? 'floor' : name.startsWith(oursName) ? 'ours' : 'peer'
    return `<text x="16" y="${middle}">${xmlText(name)}</text>
<rect class="${kind}" x="${labelWidth}" y="${lineTop}" width="${length.toFixed(1)}" height="${barHeight}" rx="2"/>
<text x="${(labelWidth + length + 8).toFixed(1)}" y="${middle}">${text}</text>`
  })
  return [`<text class="title" x="16" y="${y - 14}">${xmlText(title)}</text>`, ...lines].join('\n')
}

function count(value: number): string {
  return value.toLocaleString('en')
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
