/** Code of earlier versions, from the history of the project. Its packages are those of today, of which it needs the same. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../..')
export const formerCommits = {
  /** The first that promises rolling upgrades. */
  rolling: '947bde8',
  /** The release 0.2.0. */
  released: '89dcf854',
}

/** Not in an archive or a shallow clone. */
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

/** @returns a folder of its own with that code, for which the caller is responsible */
export async function checkOutFormerCode(commit: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-former-code-'))
  const archive = execFileSync('git', ['archive', '--format=tar', commit], { cwd: root, maxBuffer: 1e9 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
