/**
 * Charts of the last hour, drawn as SVG. The drawing stretches with the page; its labels are outside it, so that they
 * keep their size.
 */
import { html } from 'hono/html'
import type { Html } from './page.ts'

const width = 360
const height = 100

interface Chart {
  title: string
  /** Turns a value into text with its unit. */
  show: (value: number) => string
  /** The curves, each with its values, oldest first; NaN if nothing was measured. */
  curves: readonly { label: string; values: readonly number[] }[]
}

/** The smallest of 1, 2, 5, 10, 20 ... that is at least the value; 1 for 0. */
export function roundUp(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9))!
}

/** The commands of an SVG path. After a gap a new line begins; a single value between gaps becomes a short dash. */
export function curvePath(values: readonly number[], top: number): string {
  let path = ''
  let isDrawing = false
  for (const [i, value] of values.entries()) {
    if (Number.isNaN(value)) {
      isDrawing = false
      continue
    }
    const x = ((i / (values.length - 1)) * width).toFixed(1)
    const y = (height - (Math.min(value, top) / top) * height).toFixed(1)
    path += isDrawing ? `L${x} ${y}` : `M${x} ${y}h0.1`
    isDrawing = true
  }
  return path
}

export function chart({ title, show, curves }: Chart): Html {
  const highest = Math.max(0, ...curves.flatMap(({ values }) => [...values].filter((value) => value > 0)))
  const top = roundUp(highest)
  const legend = curves.map(
    ({ label, values }, i) =>
      html`<li><span class="line series-${i + 1}" aria-hidden="true"></span>${label} <strong>${latest(values, show)}</strong></li>`,
  )
  return html`<figure class="chart">
<figcaption><h2>${title}</h2><ul>${legend}</ul></figcaption>
<div class="drawing"><span class="top">${show(top)}</span>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${title} in the last hour: ${show(highest)} at most">
<path class="grid" d="M0 0H${width}M0 ${height / 2}H${width}M0 ${height}H${width}"></path>
${curves.map(({ values }, i) => html`<path class="curve series-${i + 1}" d="${curvePath(values, top)}"></path>`)}
</svg></div>
<p class="axis"><span>an hour ago</span><span>now</span></p>
</figure>`
}

function latest(values: readonly number[], show: (value: number) => string): string {
  const value = values.at(-1)!
  return Number.isNaN(value) ? 'no value' : show(value)
}
