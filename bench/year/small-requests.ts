/** Small requests to the service of the year, one after the other: alone, and beside exports. */

import { script, startListener } from '../own-process.ts'
import type { Row } from '../rows.ts'
import type { ServiceProcess } from '../service-process.ts'
import { measureLatency, request } from '../small/latency.ts'

const requests = 1_000
const exportsSideBySide = 2

export async function measureSmallRequests(
  service: ServiceProcess,
  yearUrl: string,
  databasePid: number,
): Promise<Row[]> {
  const { headers } = service
  const keyInfo = { url: `${service.url}/api/v1/key/info`, headers, status: 200, requests }
  await measureLatency('key/info, warming up', keyInfo, service, databasePid)
  const idle = await measureLatency('key/info, idle', keyInfo, service, databasePid)
  // Any ETag: `If-None-Match: *` matches whatever exists.
  const { etag } = (await request(yearUrl, { ...headers, 'If-None-Match': '*' })).headers
  const unchanged = {
    url: yearUrl,
    headers: { ...headers, 'If-None-Match': String(etag) },
    status: 304,
    requests,
  }
  const notModified = await measureLatency('year unchanged (304)', unchanged, service, databasePid)
  const readers = await startListener(script('./export-readers.ts'), {
    env: { URL: yearUrl, HEADERS: JSON.stringify(headers), COUNT: String(exportsSideBySide) },
  })
  try {
    const name = 'key/info while two exports run'
    const busy = await Promise.race([measureLatency(name, keyInfo, service, databasePid), readers.failed])
    return [idle, notModified, withoutAverages(busy)]
  } finally {
    await readers.stop()
  }
}

/** What was consumed meanwhile is that of the exports. The peak is theirs, too: the memory of two at once. */
function withoutAverages(row: Row): Row {
  return { ...row, samples: row.samples.map((sample) => ({ ...sample, cpuMs: null, databaseCpuMs: null })) }
}
