/** A collector that accepts everything and keeps nothing. Prints its address. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const server = createServer((request, response) => {
  request.resume().once('end', () => response.end())
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
process.stdin.once('end', () => process.exit()).resume()
