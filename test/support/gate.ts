import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Between exports and their database: what the database sends passes only as far as the test lets it. */
export interface Gate {
  /** The address of the database, by way of the gate. */
  url: string
  /** So many more bytes may pass. */
  allow(bytes: number): void
  /** From now on everything passes. */
  open(): void
  close(): Promise<void>
}

export async function startGate(databaseUrl: string): Promise<Gate> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const waiting: (() => void)[] = []
  // Enough to connect, and nothing of a ledger worth the name.
  let allowed = 64 * 1024
  const pass = (far: Socket, near: Socket, chunk: Buffer): void => {
    allowed -= chunk.length
    near.write(chunk)
    if (allowed > 0) return
    far.pause()
    waiting.push(() => far.resume())
  }
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      socket.on('error', () => {})
    }
    near.pipe(far)
    far.on('data', (chunk: Buffer) => pass(far, near, chunk))
    far.on('close', () => near.destroy())
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
    if (allowed > 0) for (const resume of waiting.splice(0)) resume()
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
