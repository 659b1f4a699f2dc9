/** The ways of getting a year of movements that are compared, each a function that gets it once. */
import type { YearOfFolder } from './dataset.ts'
import { drain } from './drain.ts'
import type { FloorRun } from './floor.ts'
import type { OwnProcess } from './own-process.ts'
import { nextMessage, startPeer } from './own-process.ts'
import type { ServiceProcess } from './service-process.ts'

/** One getting of the year. */
export interface Transfer {
  seconds: number
  /** Null where the answer is a file that is fetched later. */
  firstByteMs: number | null
  /** Over the wire. */
  bytes: number
}

export interface Way {
  /** As the table names it. */
  name: string
  /** The process whose memory and CPU time are measured; none for the floor, which makes nothing. */
  pid: number | undefined
  /** Where the answer is to be had, for a look at its content; none for the floor. */
  address: { url: string; headers: Record<string, string> } | undefined
  run(): Promise<Transfer>
}

export const floorName = 'floor: COPY to nowhere'
export const oursName = 'Grandlivre'
export const objectPerRowName = 'object per row, JSON.stringify'
export const databaseJsonName = 'JSON made by the database'

/** @param store where the file goes */
export const fullExportName = (store: string) => `full export to ${store}`

export const traExportName = 'full export in TRA'

export const movementsPath = '/api/v1/mad/movements?version=1.0.0'

export async function startFloor(year: YearOfFolder, stack: AsyncDisposableStack): Promise<Way> {
  const peer = startPeer(new URL('./floor.ts', import.meta.url))
  stack.defer(peer.stop)
  peer.child.send(year)
  await nextMessage(peer)
  const run = async (): Promise<Transfer> => {
    peer.child.send('run')
    const { ms, firstByteMs, bytes } = await nextMessage<FloorRun>(peer)
    return { seconds: ms / 1000, firstByteMs, bytes }
  }
  return { name: floorName, pid: undefined, address: undefined, run }
}

export function waysOfService(service: ServiceProcess, { exerciceId }: YearOfFolder): Way[] {
  const url = `${service.url}${movementsPath}&idExercice=${exerciceId}`
  const way = (name: string, headers: Record<string, string>): Way =>
    wayOver(name, service, url, { ...service.headers, ...headers })
  return [
    way(oursName, {}),
    way(`${oursName}, a line each (NDJSON)`, { Accept: 'application/x-ndjson' }),
    way(`${oursName}, zstd`, { 'Accept-Encoding': 'zstd' }),
    way(`${oursName}, gzip`, { 'Accept-Encoding': 'gzip' }),
  ]
}

export async function startPeers(year: YearOfFolder, stack: AsyncDisposableStack): Promise<Way[]> {
  const start = async (name: string, script: string): Promise<Way> => {
    const peer = startPeer(new URL(script, import.meta.url))
    stack.defer(peer.stop)
    peer.child.send(year)
    const { url } = await nextMessage<{ url: string }>(peer)
    return wayOver(name, peer, url, {})
  }
  return [
    await start(objectPerRowName, './object-per-row.ts'),
    await start(databaseJsonName, './database-json.ts'),
  ]
}

function wayOver(name: string, from: OwnProcess, url: string, headers: Record<string, string>): Way {
  const run = async (): Promise<Transfer> => {
    const { ms, firstByteMs, bytes } = await Promise.race([drain(url, headers), from.failed])
    return { seconds: ms / 1000, firstByteMs, bytes }
  }
  return { name, pid: from.pid, address: { url, headers }, run }
}
