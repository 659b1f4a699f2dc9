/** A DNS server on this machine that answers A and AAAA from a table, which a test may change at any time. */
import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import { SocketAddress } from 'node:net'

export interface NameServer {
  /**
   * Addresses by name. A missing name does not exist; one that begins with `silent` gets no reply, one that
   * begins with `half` gets none about IPv6.
   */
  names: Map<string, string[]>
  /** Queried names, in order. */
  queried: string[]
  close(): Promise<void>
}

const header = { bytes: 12, answered: 0x8180, noSuchName: 0x8183 }
const types: Record<number, 'ipv4' | 'ipv6'> = { 1: 'ipv4', 28: 'ipv6' }

/** Until it is closed, this process uses it as its only name server. */
export async function startNameServer(names: Record<string, string[]> = {}): Promise<NameServer> {
  const table = new Map(Object.entries(names))
  const queried: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    let at = header.bytes
    const labels: string[] = []
    for (let length = query[at]!; length > 0; length = query[at]!) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length))
      at += 1 + length
    }
    const name = labels.join('.').toLowerCase()
    const type = query.readUInt16BE(at + 1)
    queried.push(name)
    if (name.startsWith('silent') || (name.startsWith('half') && types[type] === 'ipv6')) return
    const known = table.get(name)
    const answers = (known ?? [])
      .filter((address) => familyOf(address) === types[type])
      .map((a) => record(type, a))
    const reply = Buffer.concat([query.subarray(0, at + 5), ...answers])
    reply.writeUInt16BE(known ? header.answered : header.noSuchName, 2)
    reply.writeUInt16BE(answers.length, 6)
    reply.writeUInt32BE(0, 8)
    socket.send(reply, from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const before = dns.getServers()
  dns.setServers([`127.0.0.1:${socket.address().port}`])
  return {
    names: table,
    queried,
    close: async () => {
      dns.setServers(before)
      socket.close()
      await once(socket, 'close')
    },
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4'
}

/** A pointer to the name in the question, the type, class IN, a TTL of zero. */
function record(type: number, address: string): Buffer {
  const bytes = addressBytes(address)
  const fixed = Buffer.from([0xc0, header.bytes, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length])
  return Buffer.concat([fixed, bytes])
}

function addressBytes(address: string): Buffer {
  if (familyOf(address) === 'ipv4') return Buffer.from(address.split('.').map(Number))
  // Normalizes, also an address that ends in IPv4 notation.
  const { address: text } = new SocketAddress({ address, family: 'ipv6' })
  const [head = '', tail] = text.split('::')
  const groups = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const [first, last] = [groups(head), groups(tail ?? '')]
  const all =
    tail === undefined ? first : [...first, ...Array(8 - first.length - last.length).fill(0), ...last]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}
