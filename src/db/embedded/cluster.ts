/**
 * The files of an embedded PostgreSQL: the passwords, created once, and the folder that initdb fills. Several processes
 * may start on an empty folder at once. Each step ends with an atomic operation of the file system (link, rename) that
 * one of them wins; the others use its result.
 */
import { randomBytes } from 'node:crypto'
import { chown, link, mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { canReach, databaseUser, exists, type Programs, runProgram, substituteFolder } from './programs.ts'

export interface Cluster {
  /** PostgreSQL's data folder. */
  path: string
  /** Password of the superuser `grandlivre`. */
  ownerPassword: string
  /** Password of the role `grandlivre_service`. */
  servicePassword: string
}

type Passwords = Omit<Cluster, 'path'>

/** Name of the superuser and of the database. */
export const ownerName = 'grandlivre'

const majorVersion = '18'

/**
 * Finds or creates the cluster of a data folder.
 * @throws {Error} if the folder contains something else or this user cannot use it, with the remedy
 */
export async function openCluster(folder: string, programs: Programs): Promise<Cluster> {
  await mkdir(folder, { recursive: true })
  // A server is identified by the path on its command line, so links are resolved.
  const dataDir = await realpath(folder)
  const passwords = await readOrMakePasswords(join(dataDir, 'postgres.json'))
  const home = await folderOfCluster(dataDir)
  const path = join(home, 'postgres')
  const note = join(dataDir, 'postgres-is-elsewhere.txt')
  if (!(await exists(path))) {
    await refuseToReplace(note, path)
    await initialise(home, path, programs, passwords.ownerPassword)
  }
  if (home !== dataDir) {
    await writeFile(note, `PostgreSQL's user cannot enter this folder. The database is in ${path}\n`)
  }
  await checkVersion(path)
  return { path, ...passwords }
}

/** `dataDir` itself, or a substitute if the database's user cannot enter it. */
async function folderOfCluster(dataDir: string): Promise<string> {
  if (canReach(dataDir)) return dataDir
  if (await exists(join(dataDir, 'postgres')))
    throw new Error(
      `The user nobody can no longer enter ${dataDir}, where the database is; open the folders above it`,
    )
  const folder = await substituteFolder(dataDir, 'database')
  if (!canReach(folder))
    throw new Error(`The user nobody can enter neither ${dataDir} nor ${folder}; set DATABASE_URL`)
  return folder
}

/**
 * Refuses to replace a lost database. A system may empty its temporary folders: if a note says that there was a
 * database and it is missing, it must not silently be replaced by an empty one.
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
    const created: Passwords = { ownerPassword: randomPassword(), servicePassword: randomPassword() }
    const unfinished = `${path}.${process.pid}-${randomPassword().slice(0, 8)}`
    await writeFile(unfinished, `${JSON.stringify(created)}\n`, { mode: 0o600, flag: 'wx' })
    // A link, unlike a rename, does not replace a file that another process has created.
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

async function initialise(folder: string, path: string, programs: Programs, password: string): Promise<void> {
  const unfinished = await mkdtemp(join(folder, 'postgres-unfinished-'))
  const passwordFile = join(unfinished, 'password')
  const draft = join(unfinished, 'postgres')
  try {
    await writeFile(passwordFile, password, { mode: 0o600, flag: 'wx' })
    if (databaseUser) {
      await chown(passwordFile, databaseUser.uid, databaseUser.gid)
      await chown(unfinished, databaseUser.uid, databaseUser.gid)
    }
    await runProgram(programs.initdb, [
      `--pgdata=${draft}`,
      `--username=${ownerName}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      // More iterations make it harder to guess a password from its hash, but our passwords are 24 random bytes. The
      // default of 4,096 takes 1.5 of the 10 ms of processor time of a new connection.
      '--set=scram_iterations=1',
      '--encoding=UTF8',
      // Locales of the C library differ between machines, and an index sorted by one locale is corrupt under another.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
    ])
    await rename(draft, path).catch((error: NodeJS.ErrnoException) => {
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
