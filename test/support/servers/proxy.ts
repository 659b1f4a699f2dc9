import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export type Proxy = Awaited<ReturnType<typeof startProxy>>

/** A proxy between a service and its database, so that the database can go away for this service only. */
export async function startProxy(databaseUrl: string) {
  let target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let frozen = false
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      socket.on('error', () => {})
    }
    near.pipe(far).pipe(near)
    if (frozen) near.pause()
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject)
        resolve()
      })
    })
  await listen(0)
  const { port } = server.address() as AddressInfo
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return {
    /** The address of the database through the proxy. */
    url: url.href,
    /** Cuts every connection and refuses new ones, like a server that went down. */
    cut: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
    /** Accepts connections again, on the same port. */
    restore: async () => {
      // A connection of another test may have the port meanwhile.
      for (let isTaken = true; isTaken; )
        isTaken = await listen(port).then(
          () => false,
          async (error: NodeJS.ErrnoException) => {
            if (error.code !== 'EADDRINUSE') throw error
            await delay(100)
            return true
          },
        )
    },
    /** Keeps every connection, new ones too, and forwards no byte, like a server that hangs. */
    freeze: () => {
      frozen = true
      for (const socket of sockets) socket.pause()
    },
    thaw: () => {
      frozen = false
      for (const socket of sockets) socket.resume()
    },
    /** Cuts every connection and forwards new ones to another server, like a DNS name that has changed. */
    redirectTo: (otherUrl: string) => {
      target = new URL(otherUrl)
      for (const socket of sockets) socket.destroy()
    },
  }
}
