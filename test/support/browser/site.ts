/** The site of the documentation, as `npm ci` leaves it. */
import { execFile } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ownFolder } from '../../../docs/site/build.ts'
import { root } from '../../../docs/site/pages.ts'

/** Runs `npm run docs:site`. */
export const runBuild = (...options: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [join(root, 'docs/site/build.ts'), ...options])

/** Made again if what it is made of has changed since. */
export async function currentSite(): Promise<string> {
  const sources = globSync(
    ['*.md', '{bench,fixtures,src}/README.md', 'docs/**/*.md', 'docs/{site,.vitepress}/*.ts'],
    {
      cwd: root,
    },
  )
  const changedAt = Math.max(...sources.map((source) => statSync(join(root, source)).mtimeMs))
  const madeAt = statSync(join(ownFolder, 'llms.txt'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (madeAt < changedAt) await runBuild()
  return ownFolder
}
