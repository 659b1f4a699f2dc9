import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A new data folder.
 * @param stack removes it
 */
export async function makeDataDir(stack: AsyncDisposableStack): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Accessible to the user nobody, as whom PostgreSQL runs if the bench runs as root.
  await chmod(dataDir, 0o755)
  return dataDir
}
