/** Traces and metrics that reach a collector, from the whole service. */
import { expect, test } from 'vitest'
import { defaultTiming } from '../../src/timing.ts'
import { download, movementsUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { startTestService } from '../support/service.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { setReceivingStage } from '../support/stages/receiving-stage.ts'
import { startCollector } from '../support/telemetry/collector.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerSpan = 'b7ad6b7169203331'
const quick = {
  ...defaultTiming,
  telemetry: { exportMs: 200, spanBatchMs: 50, sendMs: 1_000, flushMs: 3_000 },
}

const collector = forTests(startCollector)
const stage = forTests(() => setExportStage({ otlpEndpoint: collector.url }, quick))
const webhooks = forTests(() => setReceivingStage({ otlpEndpoint: collector.url }, quick))

const spansOf = (id: string) => collector.spans.filter((span) => span.traceId === id)
const named = (id: string, name: string) => spansOf(id).find((span) => span.name === name)

test('a trace goes on from the caller through a request to the receiver of a delivery', async () => {
  const { id } = await webhooks.subscribe('/traced')
  const caller = { traceparent: `00-${traceId}-${callerSpan}-01`, tracestate: 'vendor=opaque' }
  await webhooks.call('POST', `/${id}/ping`, undefined, { ...webhooks.own, ...caller })
  const { traceparent, tracestate } = webhooks.receiver.requests('/traced')[0]!.headers
  expect(tracestate).toBe('vendor=opaque')
  const [version, sentTrace, sentSpan, flags] = String(traceparent).split('-')
  expect([version, sentTrace, flags]).toEqual(['00', traceId, '01'])
  await until(() => spansOf(traceId).length === 2)
  const request = named(traceId, 'POST /api/v1/webhook/{id}/ping')!
  expect(request.parentId).toBe(callerSpan)
  expect(request.traceState).toBe('vendor=opaque')
  expect(request.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.route': '/api/v1/webhook/{id}/ping',
    'http.response.status_code': '200',
  })
  const attempt = named(traceId, 'delivery attempt')!
  expect(attempt.parentId).toBe(request.spanId)
  expect(attempt.spanId).toBe(sentSpan)
})

test('a trace that its caller does not record is continued, and not recorded here either', async () => {
  const { id } = await webhooks.subscribe('/unrecorded')
  const other = 'f'.repeat(32)
  const caller = { traceparent: `00-${other}-${callerSpan}-00` }
  await webhooks.call('POST', `/${id}/ping`, undefined, { ...webhooks.own, ...caller })
  const { traceparent } = webhooks.receiver.requests('/unrecorded')[0]!.headers
  expect(traceparent).toMatch(new RegExp(`^00-${other}-[0-9a-f]{16}-00$`))
  // A span that is recorded later arrives, and the unrecorded one does not.
  const last = await webhooks.subscribe('/later')
  await until(() => collector.spans.some(({ name }) => name === 'POST /api/v1/webhook'))
  expect(last.id).toBeGreaterThan(0)
  expect(spansOf(other)).toEqual([])
})

test.each(['00-zz-b7ad6b7169203331-01', `00-${'0'.repeat(32)}-${callerSpan}-01`, 'x'.repeat(4_000)])(
  'a malformed traceparent begins a new trace (%#)',
  async (traceparent) => {
    const requestId = `malformed-${traceparent.length}-${traceparent.slice(0, 8)}`
    const url = movementsUrl(stage.service.url, { idExercice: '12' })
    const answer = await download(url, { ...stage.company, traceparent, 'x-request-id': requestId })
    expect(answer.status).toBe(200)
    const found = () =>
      collector.spans.find(
        ({ name, attributes }) => name.startsWith('GET') && attributes['grandlivre.request.id'] === requestId,
      )
    await until(() => found() !== undefined)
    expect(found()!.parentId).toBe('')
  },
)

test('an export is a span of its request with a child for each stage, and reveals nothing about the query', async () => {
  const id = 'a'.repeat(32)
  const url = movementsUrl(stage.service.url, { idExercice: '12', classAccount: '401' })
  await download(url, { ...stage.company, traceparent: `00-${id}-${callerSpan}-01` })
  await until(() => spansOf(id).length >= 6)
  const request = named(id, 'GET /api/v1/mad/movements')!
  const exported = named(id, 'export movements')!
  expect(exported.parentId).toBe(request.spanId)
  for (const name of ['export wait', 'export snapshot', 'export first_row', 'export rows'])
    expect(named(id, name)!.parentId).toBe(exported.spanId)
  const secrets = /401|classAccount|idExercice|glv_|\?/
  // The digits of a duration may be those of the account.
  const texts = spansOf(id).flatMap(({ name, attributes }) => [
    name,
    ...Object.keys(attributes),
    ...Object.values(attributes).filter((value) => Number.isNaN(Number(value))),
  ])
  expect(texts.filter((text) => secrets.test(text))).toEqual([])
})

test('a full export continues the trace of its trigger', async () => {
  const id = 'b'.repeat(32)
  const headers = { ...stage.company, traceparent: `00-${id}-${callerSpan}-01` }
  const { body } = await trigger(stage.service.url, headers)
  await ended(stage.service.url, stage.company, body.id)
  await until(() => named(id, 'export folder') !== undefined)
  expect(named(id, 'export folder')!.parentId).toBe(named(id, 'GET /api/v1/mad/all')!.spanId)
  expect(named(id, 'export folder')!.attributes).toMatchObject({ outcome: 'done' })
  // The first stage of the export is its time in the queue.
  expect(named(id, 'export queue')!.parentId).toBe(named(id, 'export folder')!.spanId)
})

test('metrics arrive with the names and units of OpenTelemetry', async () => {
  await until(() => collector.metrics.has('http.server.request.duration'))
  expect(collector.metrics.get('http.server.request.duration')).toBe('s')
  expect(collector.metrics.get('grandlivre.export.bytes')).toBe('By')
})

test('a process that stops sends its remaining spans', async () => {
  const slow = { ...quick, telemetry: { ...quick.telemetry, exportMs: 60_000, spanBatchMs: 60_000 } }
  const service = await startTestService(stage.database, { otlpEndpoint: collector.url }, { timing: slow })
  const id = 'c'.repeat(32)
  await download(`${service.url}/healthz`, { traceparent: `00-${id}-${callerSpan}-01` })
  await service.stop()
  expect(named(id, 'GET /healthz')).toBeDefined()
})

test('an unreachable collector is logged once for traces and once for metrics, and requests still succeed', async () => {
  const gone = await startCollector()
  await gone.close()
  const service = await startTestService(stage.database, { otlpEndpoint: gone.url }, { timing: quick })
  const logged = () => service.lines.filter((line) => line.includes('telemetry.notSent'))
  for (let request = 0; request < 20; request += 1)
    expect((await download(movementsUrl(service.url, { idExercice: '12' }), stage.company)).status).toBe(200)
  // Metrics and traces are sent separately, so each fails for the first time once.
  await until(() => logged().length === 2)
  await download(`${service.url}/healthz`, {})
  await service.stop()
  expect(logged()).toHaveLength(2)
})
