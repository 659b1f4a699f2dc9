import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new temporary folder, which is removed by `drop`, or at the end of a block with `await using`. */
export async function openFolder(name: string) {
  const path = await mkdtemp(join(tmpdir(), `grandlivre-${name}-`))
  // Accessible to the user nobody, as whom PostgreSQL runs if the tests run as root.
  await chmod(path, 0o755)
  const drop = () => rm(path, { recursive: true, force: true })
  return { path, drop, [Symbol.asyncDispose]: drop }
}
