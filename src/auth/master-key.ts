import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'

/**
 * Returns the 32-byte key that encrypts partner secrets: the setting MASTER_KEY, or a key generated once and kept in
 * `dataDir/master.key`, readable only by its owner.
 * @throws {Error} if that file holds anything else; says what to do
 */
export async function loadMasterKey(config: Pick<Config, 'masterKey' | 'dataDir'>): Promise<Buffer> {
  if (config.masterKey) return config.masterKey
  const path = join(config.dataDir, 'master.key')
  const kept = (await readIfThere(path)) ?? (await makeKeyFile(path))
  if (!/^[0-9a-f]{64}\s*$/i.test(kept))
    throw new Error(
      `${path} must hold 64 hexadecimal digits. Restore it, or set MASTER_KEY to the key it held.`,
    )
  return Buffer.from(kept.trim(), 'hex')
}

/** Two processes that start at the same time must get the same key, and must never read a partial file. */
async function makeKeyFile(path: string): Promise<string> {
  await mkdir(join(path, '..'), { recursive: true })
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
  try {
    // Unlike a rename, a link fails if the other process was first.
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
  return readFile(path, 'utf8')
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
