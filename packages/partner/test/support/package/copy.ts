/** Packs the partner's package in a clone: `npm pack` changes files of its folder for a moment, and other tests read them. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

export const run = promisify(execFile)

export const checkout = resolve(import.meta.dirname, '../../../../..')

/** The environment of npm and the programs that it starts. npm is offline: the package needs nothing from a registry. */
export const npmEnvironment = {
  PATH: `${join(checkout, 'node_modules/.bin')}:${process.env['PATH']}`,
  HOME: tmpdir(),
  npm_config_offline: 'true',
  npm_config_update_notifier: 'false',
  npm_config_cache: join(tmpdir(), 'grandlivre-npm-cache'),
}

/** Clones the checkout, with its uncommitted changes. @returns the folder, which the caller removes */
export async function clone(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-package-'))
  const git = async (...words: string[]) => (await run('git', ['-C', checkout, ...words])).stdout
  await git('clone', '--quiet', '--shared', '.', folder)
  const changed = await git('diff', '--name-only', '-z', 'HEAD')
  const added = await git('ls-files', '--others', '--exclude-standard', '-z')
  for (const path of `${changed}${added}`.split('\0').filter((each) => each !== ''))
    if (existsSync(join(checkout, path))) await cp(join(checkout, path), join(folder, path))
    else await rm(join(folder, path))
  await symlink(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Runs npm pack. @returns the path of the archive in the folder */
export async function pack(folder: string): Promise<string> {
  const { stdout } = await run('npm', ['pack', '--json'], { cwd: folder, env: npmEnvironment })
  // npm's answer follows the lines of the scripts.
  const [packed] = Object.values(JSON.parse(stdout.slice(stdout.search(/^[[{]/m)))) as { filename: string }[]
  return join(folder, packed!.filename)
}

/** @returns the archive of a release that is rehearsed; otherwise a new one from the clone */
export async function archiveToTest(clone: string): Promise<string> {
  return process.env['REHEARSED'] ?? (await pack(clone))
}

export const remove = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true })
