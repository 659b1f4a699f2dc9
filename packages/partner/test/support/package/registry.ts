/** A registry on this machine. It has only what is published to it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../../../../test/support/servers/pgbouncer.ts'
import { until } from '../../../../../test/support/until.ts'
import { npmEnvironment, run } from './copy.ts'
import { tools } from './runtimes.ts'

export interface Registry {
  url: string
  publish(archive: string): Promise<void>
  stop(): Promise<void>
}

/** @param folder for the registry's files; the caller removes it */
export async function startRegistry(folder: string): Promise<Registry> {
  await mkdir(folder, { recursive: true })
  const rights = { access: '$all', publish: '$all' }
  const settings = {
    storage: join(folder, 'storage'),
    // No other registry is asked.
    uplinks: {},
    packages: { '**': rights },
    publish: { allow_offline: true },
    web: { enable: false },
    log: { type: 'stdout', format: 'json', level: 'warn' },
  }
  const config = join(folder, 'config.yaml')
  // JSON is YAML.
  await writeFile(config, JSON.stringify(settings))
  const address = `127.0.0.1:${await freePort()}`
  const words = [tools.verdaccio, '--config', config, '--listen', address]
  const child = spawn(process.execPath, words, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const from of [child.stdout, child.stderr])
    from.on('data', (bytes) => {
      printed += bytes
    })
  const url = `http://${address}/`
  const answers = () =>
    fetch(`${url}-/ping`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(async () => child.exitCode !== null || (await answers()))
  if (child.exitCode !== null) throw new Error(`The registry ended: ${printed}`)
  return {
    url,
    async publish(archive) {
      // npm requires a token, though this registry does not.
      const words = ['publish', archive, '--registry', url, `--//${address}/:_authToken=none`]
      await run('npm', words, { env: { ...npmEnvironment, npm_config_offline: 'false' } })
    },
    async stop() {
      const ended = once(child, 'close')
      child.kill()
      await ended
    },
  }
}
