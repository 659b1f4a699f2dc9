/** A collector of OpenTelemetry. It takes metrics and traces by OTLP over HTTP, and keeps what the tests look at. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedSpan {
  name: string
  traceId: string
  spanId: string
  /** The parent's id; '' if the span began the trace. */
  parentId: string
  traceState: string
  /** Attributes; numbers are text. */
  attributes: Record<string, string>
}

export async function startCollector() {
  const spans: ReceivedSpan[] = []
  const metrics = new Map<string, string>()
  const requests: { path: string; headers: IncomingHttpHeaders }[] = []
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    requests.push({ path: request.url!, headers: request.headers })
    // The body is one message of OTLP. Its parts have the same numbers for metrics and traces.
    const sent = within(within(messages(body, 1), 2), 2)
    if (request.url === '/v1/traces') spans.push(...sent.map(spanOf))
    else for (const metric of sent) metrics.set(textOf(metric, 1), textOf(metric, 3))
    response.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    /** Names and units of the metrics. */
    metrics,
    requests,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

function spanOf(span: Buffer): ReceivedSpan {
  const hex = (field: number) => messages(span, field)[0]?.toString('hex') ?? ''
  return {
    name: textOf(span, 5),
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    traceState: textOf(span, 3),
    attributes: Object.fromEntries(
      messages(span, 9).map((pair) => [textOf(pair, 1), valueText(messages(pair, 2)[0]!)]),
    ),
  }
}

/** The text of a string, a boolean, an integer or a double. */
function valueText(value: Buffer): string {
  const [{ field, bytes, number } = { field: 0, bytes: undefined, number: 0n }] = fieldsOf(value)
  if (field === 1) return bytes!.toString()
  return field === 4 ? String(bytes!.readDoubleLE()) : String(number)
}

function textOf(message: Buffer, field: number): string {
  return messages(message, field)[0]?.toString() ?? ''
}

function within(outer: Buffer[], field: number): Buffer[] {
  return outer.flatMap((message) => messages(message, field))
}

function messages(message: Buffer, field: number): Buffer[] {
  return fieldsOf(message).flatMap((each) => (each.field === field && each.bytes ? [each.bytes] : []))
}

interface Field {
  field: number
  bytes?: Buffer
  number?: bigint
}

/** The fields of a message in the wire format of Protocol Buffers. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = Number(varint())
    const [field, type] = [tag >> 3, tag & 7]
    if (type === 0) fields.push({ field, number: varint() })
    else {
      const length = type === 2 ? Number(varint()) : type === 1 ? 8 : 4
      fields.push({ field, bytes: message.subarray(at, at + length) })
      at += length
    }
  }
  return fields
}
