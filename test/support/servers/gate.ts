import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * A proxy between exports and their database: on each connection alike, what the database sends passes only
 * as far as the test lets it. So timing does not decide which of two streams that are read concurrently gets
 * ahead.
 */
export type Gate = Awaited<ReturnType<typeof startGate>>

export async function startGate(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const passages = new Set<() => void>()
  // Enough to connect, but for hardly any of a ledger.
  let allowed = 64 * 1024
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      socket.on('error', () => {})
    }
    near.pipe(far)
    let passed = 0
    let held: Buffer = Buffer.alloc(0)
    const pass = () => {
      const part = held.subarray(0, allowed - passed)
      held = held.subarray(part.length)
      passed += part.length
      near.write(part)
      if (held.length > 0) far.pause()
      else far.resume()
    }
    passages.add(pass)
    far.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      pass()
    })
    far.on('close', () => {
      passages.delete(pass)
      near.destroy()
    })
    near.on('close', () => far.destroy())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  const allow = (bytes: number) => {
    allowed += bytes
    for (const pass of passages) pass()
  }
  return {
    /** The address of the database through the gate. */
    url: url.href,
    /** Lets this many more bytes pass on each connection, present and future. */
    allow,
    /** Lets everything pass from now on. */
    open: () => allow(Number.MAX_SAFE_INTEGER),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
