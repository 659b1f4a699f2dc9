/** The ways of getting movements that are compared. */
import type { YearOfFolder } from '../dataset.ts'
import { say, script, startListener } from '../own-process.ts'
import type { FloorRun } from '../peers/floor.ts'
import type { Peer } from '../peers/peers.ts'
import { type Way, wayOver } from '../rounds.ts'
import { floorName, joinedName, oursName, type Transfer, withoutDigestName } from '../rows.ts'
import { movementsPath, type ServiceProcess, yearUrl } from '../service-process.ts'

/** The floor first. */
export async function startFloors(year: YearOfFolder, stack: AsyncDisposableStack): Promise<[Way, Way]> {
  const floor = await startListener(script('./peers/floor.ts'), { env: environmentOf(year) })
  stack.defer(floor.stop)
  const read = async (path: string): Promise<FloorRun> => {
    const answer = await Promise.race([fetch(new URL(path, floor.url)), floor.failed])
    return (await answer.json()) as FloorRun
  }
  const way = (name: string, run: () => Promise<Transfer>): Way => ({
    name,
    pid: undefined,
    address: undefined,
    run,
  })
  return [
    // It counts drafts, too, which the export leaves out.
    way(floorName, async () => ({ ...(await read('/')), rows: null })),
    way(joinedName, () => read('/joined')),
  ]
}

/** Ours as JSON first. */
export function waysOfService(service: ServiceProcess, { exerciceId }: YearOfFolder): Way[] {
  const url = yearUrl(service, exerciceId)
  const way = (name: string, headers: Record<string, string>): Way =>
    wayOver(name, service, url, { ...service.headers, ...headers })
  return [
    way(oursName, {}),
    way(withoutDigestName, { 'Want-Content-Digest': 'sha-256=0' }),
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

/** Those that can be built here. */
export async function startPeers(
  peers: Peer[],
  year: YearOfFolder,
  stack: AsyncDisposableStack,
): Promise<Way[]> {
  const ways: Way[] = []
  for (const { name, command, build } of peers) {
    const missing = await build?.()
    if (missing !== undefined) {
      say(`${name}: left out: ${missing}`)
      continue
    }
    const peer = await startListener(command, { env: environmentOf(year) })
    stack.defer(peer.stop)
    ways.push(wayOver(name, peer, peer.url, {}))
  }
  return ways
}

/** See peers/peers.ts. */
export function environmentOf({
  databaseUrl,
  schemaId,
  folderId,
  exerciceId,
}: YearOfFolder): Record<string, string> {
  return { DATABASE_URL: databaseUrl, SCHEMA_ID: schemaId, FOLDER_ID: folderId, EXERCICE_ID: exerciceId }
}
