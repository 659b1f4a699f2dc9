/**
 * The service as callers use it: the command of `npm start` in its own process, on the data folder of the
 * bench.
 */
import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Credentials } from '../src/http/reference/demo-credentials.ts'
import { type OwnProcess, project, startProcess } from './own-process.ts'

export interface ServiceProcess extends OwnProcess {
  url: string
  /** Headers of a company token. */
  headers: Record<string, string>
  /** Of a firm token; the header `society-id` is still missing. */
  firmHeaders: Record<string, string>
  /** Exercices of the folder that the token opens, earliest first. */
  exercices: Credentials['exercices']
}

/**
 * @param settings added to those of every run
 * @param checkout of the service, by default this one
 */
export async function startServiceProcess(
  dataDir: string,
  settings: Record<string, string> = {},
  checkout = project,
): Promise<ServiceProcess> {
  const credentialsFile = join(dataDir, 'credentials.json')
  // The service rewrites it as soon as its port is bound, with the actual port.
  rmSync(credentialsFile, { force: true })
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    scripts: { start: string }
  }
  const env = {
    ...environmentOf(dataDir),
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'warn',
    RATE_LIMIT_REQUESTS: '1000000',
    ...settings,
  }
  const service = startProcess(['sh', '-c', scripts.start], { env, cwd: checkout })
  try {
    const { baseUrl, companyToken, firmToken, thirdPartySecret, exercices } = await Promise.race([
      readWhenThere(credentialsFile),
      service.failed,
    ])
    await Promise.race([untilReady(baseUrl), service.failed])
    const headersWith = (token: string) => ({
      Authorization: `Bearer ${token}`,
      'X-Third-Party-Secret': thirdPartySecret,
    })
    const headers = headersWith(companyToken)
    return { ...service, url: baseUrl, headers, firmHeaders: headersWith(firmToken), exercices }
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** A module of a checkout, which may be another one than this. */
export function importFrom<Module>(checkout: string, file: string): Promise<Module> {
  return import(pathToFileURL(join(checkout, file)).href)
}

/** Uses the runtime that npm puts first on the PATH. */
export function environmentOf(dataDir: string): Record<string, string> {
  return { PATH: `${dirname(process.execPath)}:${process.env['PATH']}`, DATA_DIR: dataDir }
}

async function readWhenThere(path: string): Promise<Credentials> {
  for (let waitedMs = 0; waitedMs < 60_000; waitedMs += 50) {
    try {
      return JSON.parse(readFileSync(path, 'utf8'))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    await delay(50)
  }
  throw new Error(`The service did not start: ${path} is still missing after a minute`)
}

/** The port is bound while the database is still being opened. */
async function untilReady(baseUrl: string): Promise<void> {
  while ((await fetch(`${baseUrl}/readyz`)).status !== 200) await delay(20)
}

export const movementsPath = '/api/v1/mad/movements?version=1.0.0'

/** The URL of the movements of an exercice. */
export function yearUrl(service: ServiceProcess, exerciceId: string): string {
  return `${service.url}${movementsPath}&idExercice=${exerciceId}`
}
