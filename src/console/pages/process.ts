/**
 * The page of this process: what it needs and whether that is ready, its threads and connections, and charts of the
 * last hour.
 */
import { html } from 'hono/html'
import packageJson from '../../../package.json' with { type: 'json' }
import { chart } from '../chart.ts'
import { bytes, duration, integer } from '../elements.ts'
import type { History } from '../history.ts'
import type { Html, Page, PageContext } from '../page.ts'
import { factList, listTable, type ShownList } from './parts/cells.ts'

const everyMs = 5_000

export function processPage(history: History): Page {
  return {
    path: '/process',
    title: 'Process',
    navigation: 'Process',
    everyMs,
    render: async (context) => html`<h1>Process</h1>
${await needsTable(context)}
${factsOfProcess(context)}
<div class="charts">${charts(history)}</div>
<p class="hint">A value every 10 seconds since this process began. Rows of a stream count when it ends.</p>`,
  }
}

async function needsTable(context: PageContext): Promise<Html> {
  const { readiness } = context.services
  const { missing, degraded } = await readiness.check()
  const found = [
    ...missing.map((need) => ({ ...need, state: 'missing' })),
    ...degraded.map((need) => ({ ...need, state: 'replaced by another' })),
  ]
  const isOf = (name: string) => (need: { name: string }) =>
    need.name === name || need.name.startsWith(`${name} (`)
  const { names } = readiness
  // Requests may find something missing that is not among the needs, such as a free connection.
  const others = found.filter((need) => !names.some((name) => isOf(name)(need)))
  const states = names.map((name) => found.find(isOf(name)) ?? { name, state: 'ready', error: undefined })
  const sentence =
    missing.length === 0 ? 'Ready for requests.' : 'Not ready: balancers send no requests here.'
  return html`<p role="status" aria-live="polite">${sentence}</p>
${listTable(context, needList, [...states, ...others])}`
}

const needList: ShownList<{ name: string; state: string; error: unknown }> = {
  caption: 'What it needs',
  none: 'Nothing.',
  columns: {
    Need: ({ name }) => name,
    State: ({ state }) => html`<span class="state ${state === 'ready' ? 'done' : 'failed'}">${state}</span>`,
    // Without the stack of the error.
    Why: ({ error }) => ({
      foreign: error instanceof Error ? error.message : String(error ?? ''),
      most: 4_000,
    }),
  },
}

function factsOfProcess(context: PageContext): Html {
  const { threads, database } = context.services
  const { exports } = threads
  return html`<h2>This process</h2>
${factList(context, {
  Process: String(process.pid),
  Version: `${packageJson.version}, Node ${process.versions.node}`,
  Since: { at: new Date(Date.now() - process.uptime() * 1000) },
  'Runs for': duration(Math.floor(process.uptime() / 60) * 60_000),
  'Export threads': { count: exports.threads.length },
  'Exports waiting for a thread': { count: exports.queueSize },
  'Connections of requests': `${database.totalCount - database.idleCount} used, ${database.idleCount} idle`,
  'Requests waiting for a connection': { count: database.waitingCount },
})}`
}

function charts(history: History): Html[] {
  const curve = (label: string, name: Parameters<History['values']>[0]) => ({
    label,
    values: history.values(name),
  })
  const perSecond = (show: (value: number) => string) => (value: number) => `${show(value)}/s`
  const rows = (value: number) => integer(Math.round(value))
  const seconds = (value: number) => duration(value * 1000)
  return [
    { title: 'Rows exported', show: perSecond(rows), curves: [curve('rows', 'rows')] },
    { title: 'Bytes exported', show: perSecond(bytes), curves: [curve('bytes', 'bytes')] },
    { title: 'First byte of streams', show: seconds, curves: [curve('slowest', 'firstByte')] },
    {
      title: 'Oldest that waits',
      show: seconds,
      curves: [
        curve('full export in the queue', 'queuedExport'),
        curve('delivery to a receiver that works', 'delivery'),
      ],
    },
    { title: 'Memory', show: bytes, curves: [curve('resident', 'memory')] },
    { title: 'Event-loop delay', show: seconds, curves: [curve('99th percentile', 'eventLoop')] },
  ].map(chart)
}
