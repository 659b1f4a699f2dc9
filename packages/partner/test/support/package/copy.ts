/** The partner's package, packed from a copy: `npm pack` changes files of its folder for a moment, which other tests read. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

export const run = promisify(execFile)

export const checkout = resolve(import.meta.dirname, '../../../../..')

const parts = ['packages', 'package.json', 'README.md', 'LICENSE', 'tsconfig.json']

/** What npm and the programs that it starts need. Without a registry: the package needs nothing from one. */
export const npmEnvironment = {
  PATH: `${join(checkout, 'node_modules/.bin')}:${process.env['PATH']}`,
  HOME: tmpdir(),
  npm_config_offline: 'true',
  npm_config_update_notifier: 'false',
  npm_config_cache: join(tmpdir(), 'grandlivre-npm-cache'),
}

/** @returns the folder, which the caller removes */
export async function copyCheckout(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-package-'))
  for (const part of parts) await cp(join(checkout, part), join(folder, part), { recursive: true })
  await symlink(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** @returns the path of the archive in that folder */
export async function pack(folder: string): Promise<string> {
  const { stdout } = await run('npm', ['pack', '--json'], { cwd: folder, env: npmEnvironment })
  // npm's answer follows the lines of the scripts.
  const [packed] = Object.values(JSON.parse(stdout.slice(stdout.search(/^[[{]/m)))) as { filename: string }[]
  return join(folder, packed!.filename)
}

/** An empty project into which the package is installed. @returns its folder, which the caller removes */
export async function install(archive: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-consumer-'))
  const words = ['install', '--no-audit', '--no-fund', archive]
  await run('npm', words, { cwd: folder, env: npmEnvironment })
  return folder
}

export const remove = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true })
