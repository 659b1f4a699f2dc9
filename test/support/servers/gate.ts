import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * Between exports and their database: what the database sends passes only as far as the test lets it, on each
 * connection alike. So it does not depend on the moment which of two streams that are read side by side gets ahead.
 */
export interface Gate {
  /** The address of the database, by way of the gate. */
  url: string
  /** So many more bytes may pass on each connection, those to come included. */
  allow(bytes: number): void
  /** From now on everything passes. */
  open(): void
  close(): Promise<void>
}

export async function startGate(databaseUrl: string): Promise<Gate> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const passages = new Set<() => void>()
  // Enough to connect, and nothing of a ledger worth the name.
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
    url: url.href,
    allow,
    open: () => allow(Number.MAX_SAFE_INTEGER),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
