/** The ways of getting movements that are compared, each a function that gets them once. */
import type { YearOfFolder } from './dataset.ts'
import { drain } from './drain.ts'
import type { OwnProcess } from './own-process.ts'
import { script, startListener } from './own-process.ts'
import type { FloorRun } from './peers/floor.ts'
import { peers } from './peers/peers.ts'
import type { ServiceProcess } from './service-process.ts'

/** One run of a way. */
export interface Transfer {
  ms: number
  /** Null if the response is a file that is fetched later. */
  firstByteMs: number | null
  /** Bytes over the wire, or of the file. Null if nothing is read. */
  bytes: number | null
  /** Movements, if the response says how many. */
  rows: number | null
}

export interface Way {
  /** Its name in the table. */
  name: string
  /** The process whose memory and CPU time are measured; none for the floor, which renders nothing. */
  pid: number | undefined
  /** The URL of the response, to compare its content; none for the floor. */
  address: { url: string; headers: Record<string, string> } | undefined
  run(): Promise<Transfer>
}

export const floorName = 'floor: COPY to nowhere'
export const oursName = 'Grandlivre'

const movementsPath = '/api/v1/mad/movements?version=1.0.0'

/** The URL of the movements of an exercice. */
export function yearUrl(service: ServiceProcess, exerciceId: string): string {
  return `${service.url}${movementsPath}&idExercice=${exerciceId}`
}

export async function startFloor(year: YearOfFolder, stack: AsyncDisposableStack): Promise<Way> {
  const floor = await startListener(script('./peers/floor.ts'), { env: environmentOf(year) })
  stack.defer(floor.stop)
  const run = async (): Promise<Transfer> => {
    const answer = await Promise.race([fetch(floor.url), floor.failed])
    return (await answer.json()) as FloorRun
  }
  return { name: floorName, pid: undefined, address: undefined, run }
}

export function waysOfService(service: ServiceProcess, { exerciceId }: YearOfFolder): Way[] {
  const url = yearUrl(service, exerciceId)
  const way = (name: string, headers: Record<string, string>): Way =>
    wayOver(name, service, url, { ...service.headers, ...headers })
  return [
    way(oursName, {}),
    way(`${oursName}, a line each (NDJSON)`, { Accept: 'application/x-ndjson' }),
    way(`${oursName}, zstd`, { 'Accept-Encoding': 'zstd' }),
    way(`${oursName}, gzip`, { 'Accept-Encoding': 'gzip' }),
  ]
}

/** @param period days of the exercice */
export function partsOfYear(
  service: ServiceProcess,
  { exerciceId }: YearOfFolder,
  period: { start: string },
): Way[] {
  const month = period.start.slice(0, 5)
  const part = (name: string, query: string): Way =>
    wayOver(name, service, `${service.url}${movementsPath}&${query}`, service.headers)
  const inYear = `idExercice=${exerciceId}`
  return [
    part('one month (March)', `startDate=${month}03-01&endDate=${month}03-31`),
    part('accounts 60', `${inYear}&classAccount=60`),
    part('accounts 512', `${inYear}&classAccount=512`),
    part('one source (QUADRA)', `${inYear}&source=QUADRA`),
    part('drafts', `${inYear}&draft=1`),
  ]
}

export async function startPeers(year: YearOfFolder, stack: AsyncDisposableStack): Promise<Way[]> {
  const ways: Way[] = []
  for (const { name, command } of peers) {
    const peer = await startListener(command, { env: environmentOf(year) })
    stack.defer(peer.stop)
    ways.push(wayOver(name, peer, peer.url, {}))
  }
  return ways
}

/** See peers/peers.ts. */
function environmentOf({
  databaseUrl,
  schemaId,
  folderId,
  exerciceId,
}: YearOfFolder): Record<string, string> {
  return { DATABASE_URL: databaseUrl, SCHEMA_ID: schemaId, FOLDER_ID: folderId, EXERCICE_ID: exerciceId }
}

export function wayOver(name: string, from: OwnProcess, url: string, headers: Record<string, string>): Way {
  const run = () => Promise.race([drain(url, headers), from.failed])
  return { name, pid: from.pid, address: { url, headers }, run }
}
