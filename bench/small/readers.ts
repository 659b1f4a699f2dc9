/**
 * The clients of many folders, in a process of their own: each request to it (a `Pass` in JSON) reads every folder
 * once, and is answered with what the clients saw (`PassSeen`).
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { Connection, type Drained, Refused } from '../drain.ts'
import { announce } from '../peers/peer.ts'
import { quantile } from '../statistics.ts'

export interface Pass {
  /** Addresses of the service processes, over which the clients are spread. */
  origins: string[]
  /** Path and query: the same for all folders. */
  path: string
  thirdPartySecret: string
  /** One for each folder. */
  tokens: string[]
  /** Each has one connection, and takes the next folder when it has read one. */
  clients: number
  /** What each folder answers. */
  expected: Pick<Drained, 'rows' | 'sha256' | 'bytes'>
}

export interface PassSeen {
  ms: number
  bytes: number
  rows: number
  /** Of the clients. */
  cpuMs: number
  /** Statuses of the answers that were not 200. */
  refused: number[]
  /** Answers that were not as expected. */
  different: number
  firstByteMs: { p50: number; p99: number }
  wholeMs: { p50: number; p99: number }
}

const server = createServer(async (request, response) => {
  response.end(JSON.stringify(await run((await json(request)) as Pass)))
})
server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port))

async function run(pass: Pass): Promise<PassSeen> {
  const answers: Drained[] = []
  const refused: number[] = []
  const waiting = pass.tokens.values()
  const before = process.cpuUsage()
  const started = performance.now()
  await Promise.all(
    Array.from({ length: pass.clients }, (_, client) =>
      readFolders(pass, pass.origins[client % pass.origins.length]!, waiting, answers, refused),
    ),
  )
  const ms = performance.now() - started
  const { user, system } = process.cpuUsage(before)
  const { rows, sha256, bytes } = pass.expected
  const quantiles = (values: number[]) => ({ p50: quantile(values, 0.5), p99: quantile(values, 0.99) })
  return {
    ms,
    bytes: answers.reduce((sum, answer) => sum + answer.bytes, 0),
    rows: answers.reduce((sum, answer) => sum + (answer.rows ?? 0), 0),
    cpuMs: (user + system) / 1e3,
    refused,
    different: answers.filter((a) => a.rows !== rows || a.sha256 !== sha256 || a.bytes !== bytes).length,
    firstByteMs: quantiles(answers.map(({ firstByteMs }) => firstByteMs)),
    wholeMs: quantiles(answers.map(({ ms }) => ms)),
  }
}

/** One client: until no folder is left. */
async function readFolders(
  { path, thirdPartySecret }: Pass,
  origin: string,
  waiting: Iterator<string>,
  answers: Drained[],
  refused: number[],
): Promise<void> {
  let connection = new Connection(new URL(origin))
  for (let next = waiting.next(); !next.done; next = waiting.next()) {
    const headers = { Authorization: `Bearer ${next.value}`, 'X-Third-Party-Secret': thirdPartySecret }
    try {
      answers.push(await connection.send(origin + path, headers))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      refused.push(error.status)
      connection.close()
      connection = new Connection(new URL(origin))
    }
  }
  connection.close()
}
