/**
 * The files of an embedded PostgreSQL: the passwords, made once, and the folder that initdb fills. Several
 * processes may come to an empty folder at once; each step ends in one atomic act of the file system (link, rename),
 * which one of them wins, and the others go on with what the winner made.
 */
import { randomBytes } from 'node:crypto'
import { chown, link, mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { canReach, databaseUser, exists, type Programs, placeBeside, runProgram } from './programs.ts'

export interface Cluster {
  /** PostgreSQL's data folder. */
  path: string
  /** Of the superuser `grandlivre`. */
  ownerPassword: string
  /** Of the role `grandlivre_service`. */
  servicePassword: string
}

type Passwords = Omit<Cluster, 'path'>

/** The superuser, and the database that everything lives in. */
export const ownerName = 'grandlivre'

const majorVersion = '18'

/**
 * Finds the cluster of a data folder, or makes it.
 * @throws {Error} where the folder holds something else, or cannot be used by this user, with what to do
 */
export async function openCluster(folder: string, programs: Programs): Promise<Cluster> {
  await mkdir(folder, { recursive: true })
  // A server is known by the path on its command line, whatever links lead there.
  const dataDir = await realpath(folder)
  const passwords = await readOrMakePasswords(join(dataDir, 'postgres.json'))
  const place = await placeOfCluster(dataDir)
  const path = join(place, 'postgres')
  const note = join(dataDir, 'postgres-is-elsewhere.txt')
  if (!(await exists(path))) {
    await refuseToReplace(note, path)
    await initialise(place, path, programs, passwords.ownerPassword)
  }
  if (place !== dataDir) {
    await writeFile(note, `PostgreSQL's user cannot enter this folder. The database is in ${path}\n`)
  }
  await checkVersion(path)
  return { path, ...passwords }
}

/** `dataDir` itself, or a stand-in where the database's user cannot enter it. */
async function placeOfCluster(dataDir: string): Promise<string> {
  if (canReach(dataDir)) return dataDir
  if (await exists(join(dataDir, 'postgres')))
    throw new Error(
      `The user nobody can no longer enter ${dataDir}, where the database is; open the folders above it`,
    )
  const place = await placeBeside(dataDir, 'database')
  if (!canReach(place))
    throw new Error(`The user nobody can enter neither ${dataDir} nor ${place}; set DATABASE_URL`)
  return place
}

/**
 * A system may empty its temporary folders. Where a note says that there was a database, a missing one is lost, and
 * must not quietly be replaced by an empty one.
 */
async function refuseToReplace(note: string, path: string): Promise<void> {
  if (!(await exists(note))) return
  throw new Error(
    `The embedded database is gone: it was in ${path}, among temporary files. Remove ${note} to begin with an empty ` +
      'one, and keep the project where the user nobody can enter, or set DATABASE_URL',
  )
}

async function readOrMakePasswords(path: string): Promise<Passwords> {
  if (!(await exists(path))) {
    const made: Passwords = { ownerPassword: randomPassword(), servicePassword: randomPassword() }
    const unfinished = `${path}.${process.pid}-${randomPassword().slice(0, 8)}`
    await writeFile(unfinished, `${JSON.stringify(made)}\n`, { mode: 0o600, flag: 'wx' })
    // A link, unlike a rename, does not replace what another process made meanwhile.
    await link(unfinished, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    await rm(unfinished)
  }
  const text = await readFile(path, 'utf8')
  try {
    return JSON.parse(text) as Passwords
  } catch (cause) {
    throw new Error(`${path} is damaged; restore it, or move it and the folder postgres away`, { cause })
  }
}

function randomPassword(): string {
  return randomBytes(24).toString('hex')
}

async function initialise(place: string, path: string, programs: Programs, password: string): Promise<void> {
  const unfinished = await mkdtemp(join(place, 'postgres-unfinished-'))
  const passwordFile = join(unfinished, 'password')
  const made = join(unfinished, 'postgres')
  try {
    await writeFile(passwordFile, password, { mode: 0o600, flag: 'wx' })
    if (databaseUser) {
      await chown(passwordFile, databaseUser.uid, databaseUser.gid)
      await chown(unfinished, databaseUser.uid, databaseUser.gid)
    }
    await runProgram(programs.initdb, [
      `--pgdata=${made}`,
      `--username=${ownerName}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      // The C library's locales differ between machines, and an index sorted by one is corrupt under another.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
    ])
    await rename(made, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

async function checkVersion(path: string): Promise<void> {
  const version = await readFile(join(path, 'PG_VERSION'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} is not a data folder of PostgreSQL that this user can read; move it away`, {
      cause: error,
    })
  })
  if (version.trim() !== majorVersion)
    throw new Error(
      `${path} was made by PostgreSQL ${version.trim()} and this code brings ${majorVersion}: dump it with the old ` +
        'version (pg_dump), move the folder away, start again and restore the dump',
    )
}
