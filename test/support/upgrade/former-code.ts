/** Code of earlier versions, from the history of the project. It needs the packages of today, and uses them. */
import { execFileSync } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { openFolder } from '../fixtures/temporary-folder.ts'

const root = resolve(import.meta.dirname, '../../..')
export const formerCommits = {
  /** The first version that promises rolling upgrades. */
  rolling: '947bde8',
  /** The release 0.2.0. */
  released: '89dcf854',
}

/** False in an archive or a shallow clone. */
export const isFormerCodeKnown = Object.values(formerCommits).every((commit) => {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

/** Warns once per run. */
export function warnIfFormerCodeIsMissing(): void {
  if (!isFormerCodeKnown) console.warn('No test of an upgrade: earlier versions are not in the git history')
}

/** @returns a new folder with that code, which the caller drops */
export async function checkOutFormerCode(commit: string) {
  const folder = await openFolder('former-code')
  const archive = execFileSync('git', ['archive', '--format=tar', commit], { cwd: root, maxBuffer: 1e9 })
  execFileSync('tar', ['-x', '-C', folder.path], { input: archive })
  await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'))
  return folder
}
