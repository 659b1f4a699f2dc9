/**
 * Requests that wait for a change, by the thousand: each on its own folder, of which a commit changes one; then all on
 * one folder, which a commit changes.
 */
import { Agent, get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Dataset } from '../dataset.ts'
import { startUsage } from '../measure.ts'
import { say } from '../own-process.ts'
import { type ServiceProcess, startServiceProcess, yearUrl } from '../service-process.ts'
import { editEntries } from './edits.sql.ts'
import { countConnections, createFolders, editFolder } from './folders.sql.ts'

export interface Waits {
  waiting: number
  ofMany: {
    /** From sending the statement that changes a folder to the first byte of its answer, for each commit. */
    wokenMs: number[]
    /** Requests answered although their folder had not changed. */
    othersAnswered: number
  }
  ofOne: { firstMs: number; lastMs: number; refused: number }
  /** Of all processes to the database. `busy`: in a query or a transaction while all requests wait. */
  connections: { before: number; whileWaiting: number; busy: number }
  /** Peak of the service in MB, while they wait and after all on one folder are answered; null without /proc. */
  waitingMb: number | null
  answeredMb: number | null
}

const commits = 20
/** After the last request is sent: nothing tells from outside when all are waiting. */
const settleMs = 5_000
/** Pools close connections that have been idle for ten seconds. */
const idleMs = settleMs + 11_000
/** The service notices within this that callers are gone. */
const closeMs = 2_000
/** The longest that the service allows. */
const waitSeconds = 30

export async function measureWaits(
  { ownerUrl, dataDir, year, databasePid }: Dataset,
  waiting: number,
  stack: AsyncDisposableStack,
): Promise<Waits> {
  say(`making ${waiting} small folders`)
  const folders = await createFolders(ownerUrl, year, waiting)
  const service = await startServiceProcess(dataDir)
  stack.defer(service.stop)
  const client = new pg.Client(ownerUrl)
  await client.connect()
  stack.defer(() => client.end())
  const { schemaId } = year

  const requests = await Promise.all(
    folders.map(({ folderId, exerciceId }) =>
      waitingRequest(yearUrl(service, exerciceId), { ...service.firmHeaders, 'society-id': folderId }),
    ),
  )
  await delay(idleMs)
  const before = (await countConnections(client)).open
  const end = startUsage({ pid: service.pid, databasePid })

  const ofMany = await holdAll(requests, service, idleMs)
  const { open: whileWaiting, busy } = await countConnections(client)
  say(`${waiting} requests wait on their own folders; ${commits} commits`)
  const wokenMs: number[] = []
  for (let edit = 0; edit < Math.min(commits, waiting); edit++) {
    const started = performance.now()
    await editFolder(client, { schemaId, folderId: folders[edit]!.folderId }, edit)
    wokenMs.push((await answered(ofMany.answers[edit]!, service)).at - started)
  }
  const othersAnswered = ofMany.count() - wokenMs.length
  const waitingMb = end().peakMb
  ofMany.close()
  await delay(closeMs)

  const onOne = await waitingRequest(yearUrl(service, year.exerciceId), service.headers)
  const ofOne = await holdAll(Array<Held>(waiting).fill(onOne), service, settleMs)
  if (ofOne.count() > 0) throw new Error(`${ofOne.count()} requests were answered before the ledger changed`)
  say(`${waiting} requests wait on one folder; one commit`)
  const started = performance.now()
  await editEntries(client, year, 1, waiting)
  const answers = await Promise.all(ofOne.answers.map((answer) => answered(answer, service)))
  ofOne.close()

  const times = answers.map(({ at }) => at - started)
  return {
    waiting,
    ofMany: { wokenMs, othersAnswered },
    ofOne: {
      firstMs: Math.min(...times),
      lastMs: Math.max(...times),
      refused: answers.filter(({ status }) => status !== 200).length,
    },
    connections: { before, whileWaiting, busy },
    waitingMb,
    answeredMb: end().peakMb,
  }
}

interface Held {
  url: string
  headers: Record<string, string>
}

interface Answer {
  status: number
  /** When its first byte arrived, as of `performance.now()`. */
  at: number
}

interface HeldRequests {
  answers: Promise<Answer>[]
  /** Answered so far. */
  count(): number
  /** Gives up the requests that still wait. */
  close(): void
}

/** Sends the requests, each on its own socket, and lets them wait for so long. */
async function holdAll(requests: Held[], service: ServiceProcess, ms: number): Promise<HeldRequests> {
  const agent = new Agent()
  let count = 0
  const answers = requests.map(async (request) => {
    const answer = await ask(request, agent)
    count += 1
    return answer
  })
  for (const answer of answers) answer.catch(() => {})
  await Promise.race([delay(ms), service.failed])
  return {
    answers,
    count: () => count,
    close: () => agent.destroy(),
  }
}

function answered(answer: Promise<Answer>, { failed }: ServiceProcess): Promise<Answer> {
  return Promise.race([answer, failed])
}

/** Reads the answer to its end and discards it. */
function ask({ url, headers }: Held, agent: Agent): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const sent = get(url, { agent, headers: { ...headers, Accept: 'application/x-ndjson' } }, (response) => {
    const at = performance.now()
    response.on('error', reject)
    response.on('end', () => {
      if (!response.complete) return reject(new Error(`The answer of ${url} broke off`))
      resolve({ status: response.statusCode!, at })
    })
    response.resume()
  })
  sent.on('error', reject)
  return promise
}

const shared = new Agent({ keepAlive: true, maxSockets: 8 })

/** Waits for a change of the ledger from now on. */
async function waitingRequest(url: string, headers: Record<string, string>): Promise<Held> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const collection = `${new URL(url).origin}/api/v1/mad/exercices?version=1.0.0`
  const sent = get(collection, { agent: shared, headers }, (response) => {
    response.resume()
    const cursor = response.headers['x-ledger-cursor']
    if (typeof cursor === 'string') resolve(cursor)
    else reject(new Error(`${collection} answered ${response.statusCode} without a cursor`))
  })
  sent.on('error', reject)
  return { url: `${url}&since=${await promise}&wait=${waitSeconds}`, headers }
}
