/** What a stream of many ledgers costs the service and the database, and what other requests wait beside it. */
import { setTimeout as delay } from 'node:timers/promises'
import { startUsage } from '../measure.ts'
import type { ServiceProcess } from '../service-process.ts'
import type { Access } from './command.ts'

const headersOf = ({ GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret }: Access) => ({
  Authorization: `Bearer ${token}`,
  'X-Third-Party-Secret': secret,
})

/** Reads all ledgers of the token in one answer. @returns how many */
async function readAll(url: string, access: Access): Promise<number> {
  const answer = await fetch(`${url}/api/v1/mad/ledgers/changes?version=1.0.0`, {
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
  await readAll(service.url, access)
  const measured: { serviceMs: number; databaseMs: number }[] = []
  for (let round = 0; round < rounds; round++) {
    const end = startUsage({ pid: service.pid, databasePid })
    const folders = await readAll(service.url, access)
    const { cpuMs, databaseCpuMs } = end()
    measured.push({ serviceMs: cpuMs! / folders, databaseMs: databaseCpuMs! / folders })
  }
  return measured
}

const requests = 300
const pauseMs = 20

/** @returns milliseconds of each `key/info`, one after the other, beside two streams of the firm */
export async function measureBesideStreams(service: ServiceProcess, access: Access): Promise<number[]> {
  let isOver = false
  const stream = async () => {
    while (!isOver) await readAll(service.url, access)
  }
  const streams = [stream(), stream()]
  const times: number[] = []
  for (let sent = 0; sent < requests; sent++) {
    const started = performance.now()
    await (await fetch(`${service.url}/api/v1/key/info`, { headers: service.headers })).text()
    times.push(performance.now() - started)
    await delay(pauseMs)
  }
  isOver = true
  await Promise.all(streams)
  return times
}
