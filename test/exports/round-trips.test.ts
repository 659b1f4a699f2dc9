/**
 * How often a request waits for the database before its first row, counted on the wire: the link between the service
 * and the database holds answers back until everything that is sent without waiting for them has been sent.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import { download, madUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { withoutPooler } from '../support/pooled/pooled-run.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { until } from '../support/until.ts'

// These tests count round trips to the database itself.
withoutPooler()

interface Trip {
  /** The application_name of its connection. */
  from: string
  sent: string
  /** Releases its answer. */
  answer(): void
}

/** Connections that serve requests; the service does everything else on others. */
const applications = ['grandlivre', 'grandlivre request slots', 'grandlivre export']

/** Statements sent whose answer is held back. */
let waiting: Trip[] = []
let isHolding = false
let link: Server
const stage = forTests(setExportStage)
let service: TestService

beforeAll(async () => {
  link = await startLink(stage.database.ownerUrl)
  const url = new URL(stage.database.ownerUrl)
  url.port = String((link.address() as AddressInfo).port)
  // One thread, so that each connection has been opened by the first request.
  service = await startTestService({ ownerUrl: url.href })
})

afterAll(async () => {
  await service?.stop()
  link?.close()
})

async function startLink(databaseUrl: string): Promise<Server> {
  const { hostname, port } = new URL(databaseUrl)
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    let from = ''
    let held: Buffer[] | undefined
    near.on('data', (bytes: Buffer) => {
      const sent = bytes.toString('latin1')
      from ||= /application_name\0([^\0]+)\0/.exec(sent)?.[1] ?? ''
      // The slot of the previous request may be freed while the next request arrives, and its row of the audit written.
      const isOfFormer = sent.includes('unlock') || sent.includes('append_requests')
      if (isHolding && !held && applications.includes(from) && !isOfFormer) {
        held = []
        const answer = () => {
          for (const part of held ?? []) near.write(part)
          held = undefined
        }
        waiting.push({ from, sent, answer })
      }
      far.write(bytes)
    })
    far.on('data', (bytes: Buffer) => {
      if (held) held.push(bytes)
      else near.write(bytes)
    })
    for (const [socket, other] of [[near, far] as const, [far, near] as const]) {
      socket.on('error', () => {})
      socket.on('close', () => other.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

/** Waits until `count` statements have been sent, then releases their answers. */
async function takeTrips(count: number): Promise<string[]> {
  await until(() => waiting.length >= count)
  const trips = waiting
  waiting = []
  for (const { answer } of trips) answer()
  return trips.map(({ from, sent }) => `${from}: ${whatIn(sent)}`).sort()
}

/** @param expected what is sent at once in each step, up to the rows. A further or a smaller step fails the test. */
async function expectTrips(
  url: string,
  headers: Record<string, string>,
  expected: string[][],
): Promise<void> {
  for (let i = 0; i < 2; i++) expect((await download(url, headers)).status).toBe(200)
  // While the audit appends their rows, another connection may be opened beside it.
  await delay(2 * limits.auditAppendMs)
  waiting = []
  isHolding = true
  const answer = download(url, headers)
  try {
    for (const trips of expected) expect(await takeTrips(trips.length)).toEqual(trips)
  } finally {
    isHolding = false
    await takeTrips(0)
  }
  expect((await answer).status).toBe(200)
}

function whatIn(sent: string): string {
  // Later executions of a named statement contain only its name.
  const marks: Record<string, RegExp> = {
    'who calls': /admit/,
    'a slot': /try locks/,
    'the snapshot': /pg_export_snapshot/,
    'the same snapshot': /set transaction snapshot/,
    'its transaction': /begin isolation level repeatable read/,
    rows: /copy \(/,
    'what they refer to': /dictionary/,
    spans: /with spans/,
    'whose folder': /firm_id = /,
    'the selection': /ledger_version|resolve (movements|entries)/,
  }
  return Object.entries(marks).find(([, mark]) => mark.test(sent))?.[0] ?? sent
}

const url = (items: string, query: Record<string, string>) => madUrl(service.url, items, query)

test.each(['movements', 'entries'])('%s make seven round trips to the database', async (items) => {
  await expectTrips(url(items, { idExercice: '11' }), stage.company, [
    ['grandlivre: who calls'],
    ['grandlivre request slots: a slot'],
    ['grandlivre: the selection'],
    ['grandlivre export: its transaction', 'grandlivre export: the snapshot'],
    ['grandlivre export: the same snapshot'],
    ['grandlivre export: the selection', 'grandlivre export: what they refer to'],
    ['grandlivre export: rows', 'grandlivre export: rows'],
  ])
})

test('a firm token costs one more round trip for its folder, and a period one more for its entry segments', async () => {
  const period = { startDate: '2025-01-01', endDate: '2025-06-30', classAccount: '60' }
  await expectTrips(url('movements', period), { ...stage.firm, 'society-id': '111' }, [
    ['grandlivre: who calls'],
    ['grandlivre: whose folder'],
    ['grandlivre request slots: a slot'],
    ['grandlivre: the selection'],
    ['grandlivre export: its transaction', 'grandlivre export: the snapshot'],
    ['grandlivre export: the same snapshot'],
    ['grandlivre export: the selection', 'grandlivre export: what they refer to'],
    ['grandlivre export: spans'],
    ['grandlivre export: rows', 'grandlivre export: rows'],
  ])
})
