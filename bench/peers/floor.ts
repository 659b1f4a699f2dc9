/**
 * The floor: the time in which the database sends the rows to a process that does nothing with them. `/` is answered when
 * the two streams that the service reads have ended, over two connections at once; `/joined` when the same year has come
 * as one statement over one.
 *
 * The bytes of the socket are counted and dropped. Only the end is detected, and only in the last bytes of a
 * chunk: pg-copy-streams, or any reader that finds rows, would spend time on them, raise the floor, and make
 * whatever is compared with it look better than it is. pg opens the connection (password, settings), and then
 * gives up its socket.
 */
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Connection } from 'pg'
import { announce, peerPool, yearOfPeer } from './peer.ts'
import { copyJoined, copyStreams } from './year.sql.ts'

/** The response to each request, in JSON. */
export interface FloorRun {
  ms: number
  firstByteMs: number
  bytes: number
  /** Of the first statement: of the two streams, with the movements of drafts. */
  rows: number
}

/**
 * ReadyForQuery outside a transaction: the last message of a result, which never occurs within a row of text.
 */
const end = Buffer.from('Z\x00\x00\x00\x05I', 'latin1')
/** Large enough for CommandComplete (`COPY 600000`) and ReadyForQuery. */
const tailBytes = 64

const year = yearOfPeer()
const pool = peerPool(year)
const sockets = await Promise.all([connect(), connect()])
const statements = { '/': copyStreams(year), '/joined': [copyJoined(year)] }
const server = createServer(async ({ url }, response) => {
  const texts = statements[url as keyof typeof statements]
  const runs = await Promise.all(texts.map((text, place) => run(sockets[place]!, queryMessage(text))))
  const floor: FloorRun = {
    ms: Math.max(...runs.map(({ ms }) => ms)),
    firstByteMs: Math.min(...runs.map(({ firstByteMs }) => firstByteMs)),
    bytes: runs.reduce((sum, { bytes }) => sum + bytes, 0),
    rows: runs[0]!.rows,
  }
  response.end(JSON.stringify(floor))
})
server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port))

async function connect(): Promise<Socket> {
  const client = await pool.connect()
  const socket = (client as unknown as { connection: Connection }).connection.stream as Socket
  socket.removeAllListeners('data')
  return socket
}

function run(socket: Socket, query: Buffer): Promise<FloorRun> {
  const { promise, resolve, reject } = Promise.withResolvers<FloorRun>()
  let bytes = 0
  let firstByteMs = 0
  let tail: Buffer = Buffer.alloc(0)
  const started = performance.now()
  const receive = (chunk: Buffer): void => {
    if (bytes === 0) firstByteMs = performance.now() - started
    bytes += chunk.length
    tail = chunk.length >= tailBytes ? chunk : Buffer.concat([tail.subarray(-tailBytes), chunk])
    if (!tail.subarray(-end.length).equals(end)) return
    const ms = performance.now() - started
    socket.off('data', receive)
    const rows = /COPY (\d+)/.exec(tail.subarray(-tailBytes).toString('latin1'))?.[1]
    if (rows === undefined) reject(new Error('the COPY of the floor failed'))
    else resolve({ ms, firstByteMs, bytes, rows: Number(rows) })
  }
  socket.on('data', receive)
  socket.write(query)
  return promise
}

/** `Q`, its length, the text and a zero byte. */
function queryMessage(text: string): Buffer {
  const message = Buffer.alloc(1 + 4 + Buffer.byteLength(text) + 1)
  message.write('Q')
  message.writeInt32BE(message.length - 1, 1)
  message.write(text, 5)
  return message
}
