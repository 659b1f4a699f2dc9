/** The service as it runs for its callers: the command of `npm start` in a process of its own, on the data folder of the bench. */
import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import packageJson from '../package.json' with { type: 'json' }
import type { Credentials } from '../src/sample/demo-folder.ts'
import type { OwnProcess } from './own-process.ts'
import { startCommand } from './own-process.ts'

export interface ServiceProcess extends OwnProcess {
  url: string
  /** Of a company token. */
  headers: Record<string, string>
}

/** @param settings beside those of every run */
export async function startServiceProcess(
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<ServiceProcess> {
  const credentialsFile = join(dataDir, 'credentials.json')
  // The service writes it anew as soon as its port is bound, with the port it got.
  rmSync(credentialsFile, { force: true })
  const service = startCommand(packageJson.scripts.start, {
    // The runtime that npm puts in front.
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    DATA_DIR: dataDir,
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'warn',
    RATE_LIMIT_REQUESTS: '1000000',
    ...settings,
  })
  try {
    const { baseUrl, companyToken, thirdPartySecret } = await Promise.race([
      readWhenThere(credentialsFile),
      service.failed,
    ])
    const headers = { Authorization: `Bearer ${companyToken}`, 'X-Third-Party-Secret': thirdPartySecret }
    return { ...service, url: baseUrl, headers }
  } catch (error) {
    await service.stop()
    throw error
  }
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
  throw new Error(`The service has not come up: ${path} is still missing after a minute`)
}
