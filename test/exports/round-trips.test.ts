/**
 * How often a request waits for the database before its rows come. The service reaches it by a link that is slow one way:
 * each answer arrives late, so that what is sent without waiting for one another is on the link at the same time,
 * however busy the machine is.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'

interface Trip {
  /** One more than that of any trip that was over when this one began. */
  depth: number
  /** The application's name of its connection. */
  from: string
  sent: string
}

/** Of requests; what the service does besides has connections of its own. */
const applications = ['grandlivre', 'grandlivre request slots', 'grandlivre export']

let trips: Trip[] = []
let deepestOver = 0
let link: Server
let stage: ExportStage
let service: TestService

beforeAll(async () => {
  stage = await setExportStage()
  link = await startSlowLink(stage.database.ownerUrl)
  const url = new URL(stage.database.ownerUrl)
  url.port = String((link.address() as AddressInfo).port)
  // One thread, so that each connection has been opened by the first request.
  service = await startTestService({ ownerUrl: url.href })
})

afterAll(async () => {
  await service?.stop()
  link?.close()
  await stage?.close()
})

const answerMs = 40

/** The last of a trip's messages, but for the state of the transaction. */
const readyForQuery = Buffer.from([0x5a, 0, 0, 0, 5])

async function startSlowLink(databaseUrl: string): Promise<Server> {
  const { hostname, port } = new URL(databaseUrl)
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    let from = ''
    let trip: Trip | undefined
    near.on('data', (bytes: Buffer) => {
      const sent = bytes.toString('latin1')
      from ||= /application_name\0([^\0]+)\0/.exec(sent)?.[1] ?? ''
      // The slot of the request before may be given back while the next one comes.
      if (!trip && applications.includes(from) && !sent.includes('pg_advisory_unlock')) {
        trip = { depth: deepestOver + 1, from, sent }
        trips.push(trip)
      }
      far.write(bytes)
    })
    far.on('data', async (bytes: Buffer) => {
      const isLast = bytes.subarray(-6, -1).equals(readyForQuery)
      await delay(answerMs)
      if (isLast && trip) {
        deepestOver = Math.max(deepestOver, trip.depth)
        trip = undefined
      }
      near.write(bytes)
    })
    for (const [socket, other] of [[near, far] as const, [far, near] as const]) {
      socket.on('error', () => {})
      socket.on('close', () => other.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

/** Of a request whose connections are open: by depth, which connections were waited for, up to the first rows. */
async function tripsOf(path: string, headers: Record<string, string>): Promise<string[]> {
  const url = new URL(path, service.url).href
  for (let i = 0; i < 2; i++) expect((await download(url, headers)).status).toBe(200)
  trips = []
  deepestOver = 0
  expect((await download(url, headers)).status).toBe(200)
  const rows = trips.find(({ sent }) => /copy \(/.test(sent))
  expect(rows, 'the rows are read').toBeDefined()
  return Array.from({ length: rows!.depth }, (_, i) =>
    trips
      .filter(({ depth }) => depth === i + 1)
      .map(({ from, sent }) => `${from}: ${whatIn(sent)}`)
      .sort()
      .join(', '),
  )
}

function whatIn(sent: string): string {
  const marks: Record<string, RegExp> = {
    'who calls': /enter/,
    'a slot': /pg_try_advisory_lock|grandlivre place/,
    'the snapshot': /pg_export_snapshot/,
    'the same snapshot': /set transaction snapshot/,
    rows: /copy \(/,
    'what they refer to': /from third_parties/,
    spans: /with spans/,
    'whose folder': /firm_id = /,
    'the selection': /ledger_version/,
  }
  return Object.entries(marks).find(([, mark]) => mark.test(sent))?.[0] ?? sent
}

const url = (items: string, query: Record<string, string>) =>
  movementsUrl(service.url, query).replace('/movements', `/${items}`)

test.each(['movements', 'entries'])('%s wait seven times for the database', async (items) => {
  expect(await tripsOf(url(items, { idExercice: '11' }), stage.company)).toEqual([
    'grandlivre: who calls',
    'grandlivre request slots: a slot',
    'grandlivre: the selection',
    'grandlivre export: the snapshot',
    'grandlivre export: the same snapshot',
    'grandlivre export: the selection, grandlivre export: what they refer to',
    'grandlivre export: rows, grandlivre export: rows',
  ])
})

test('a firm token waits once more for its folder, and a period for where its entries stand', async () => {
  const period = { startDate: '2025-01-01', endDate: '2025-06-30', classAccount: '60' }
  expect(await tripsOf(url('movements', period), { ...stage.firm, 'society-id': '111' })).toEqual([
    'grandlivre: who calls',
    'grandlivre: whose folder',
    'grandlivre request slots: a slot',
    'grandlivre: the selection',
    'grandlivre export: the snapshot',
    'grandlivre export: the same snapshot',
    'grandlivre export: the selection, grandlivre export: what they refer to',
    'grandlivre export: spans',
    'grandlivre export: rows, grandlivre export: rows',
  ])
})
