/** What a stream of many ledgers costs the service and the database, and what other requests wait beside it. */
import { startUsage } from '../measure.ts'
import { script, startListener } from '../own-process.ts'
import type { ServiceProcess } from '../service-process.ts'
import { measureLatency } from '../small/latency.ts'
import type { Access } from './command.ts'

const headersOf = ({ GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret }: Access) => ({
  Authorization: `Bearer ${token}`,
  'X-Third-Party-Secret': secret,
})

const changesOf = ({ url }: ServiceProcess) => `${url}/api/v1/mad/ledgers/changes?version=1.0.0`

/** Reads all ledgers of the token in one answer. @returns how many */
async function readAll(service: ServiceProcess, access: Access): Promise<number> {
  const answer = await fetch(changesOf(service), {
    method: 'POST',
    headers: { ...headersOf(access), 'Content-Type': 'application/json', 'Accept-Encoding': 'identity' },
    body: '{}',
  })
  if (answer.status !== 200) throw new Error(`ledgers/changes answered ${answer.status}`)
  let tail = ''
  for await (const chunk of answer.body!)
    tail = (tail + Buffer.from(chunk).subarray(-200).toString()).slice(-200)
  return (JSON.parse(tail.trimEnd().split('\n').at(-1)!) as { whole: number }).whole
}

/** @returns processor milliseconds for each folder of an answer, of some warm ones */
export async function measureStream(
  service: ServiceProcess,
  access: Access,
  databasePid: number,
  rounds: number,
): Promise<{ serviceMs: number; databaseMs: number }[]> {
  await readAll(service, access)
  const measured: { serviceMs: number; databaseMs: number }[] = []
  for (let round = 0; round < rounds; round++) {
    const end = startUsage({ pid: service.pid, databasePid })
    const folders = await readAll(service, access)
    const { cpuMs, databaseCpuMs } = end()
    measured.push({ serviceMs: cpuMs! / folders, databaseMs: databaseCpuMs! / folders })
  }
  return measured
}

const requests = 1_000

/** @returns the p99 of `key/info`, in milliseconds, one after the other, beside two streams that another process reads */
export async function measureBesideStreams(
  service: ServiceProcess,
  access: Access,
  databasePid: number,
): Promise<number> {
  const readers = await startListener(script('./export-readers.ts'), {
    env: { URL: changesOf(service), HEADERS: JSON.stringify(headersOf(access)), COUNT: '2', BODY: '{}' },
  })
  try {
    const keyInfo = {
      url: `${service.url}/api/v1/key/info`,
      headers: service.headers,
      status: 200,
      requests,
    }
    const name = 'key/info while two streams run'
    const { p99Ms } = await Promise.race([
      measureLatency(name, keyInfo, service, databasePid),
      readers.failed,
    ])
    return p99Ms!
  } finally {
    await readers.stop()
  }
}
