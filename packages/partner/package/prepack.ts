/**
 * Runs before `npm pack`, here or at the root of the checkout. Compiles the code that partners run into `dist/`: as ES
 * modules and, for `require`, as CommonJS, since Node runs no TypeScript below `node_modules`. Puts the package's `package.json` and
 * `README.md` in place, which `postpack.ts` takes away again. If npm is killed in between, `after-npm.ts` does.
 */
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { putInPlace, restore } from './in-place.ts'
import { commonJs, packedManifest } from './manifest.ts'

const workspace = resolve(import.meta.dirname, '..')
/** The folder that npm packs. */
const packed = process.cwd()
// Of a pack on a machine that lost its power.
restore(packed)
const dist = join(packed, 'dist')
// Of a build that failed. What it has left would be packed, too.
rmSync(dist, { recursive: true, force: true })
const forRequire = join(dist, commonJs)
for (const [project, outDir] of [
  [workspace, dist],
  [join(import.meta.dirname, 'tsconfig.commonjs.json'), forRequire],
])
  execFileSync('tsc', ['--project', project!, '--outDir', outDir!], { stdio: ['ignore', 2, 2] })
writeFileSync(join(forRequire, 'package.json'), `${JSON.stringify({ type: 'commonjs' })}\n`)
const manifest = packedManifest(JSON.parse(readFileSync(join(workspace, 'package.json'), 'utf8')))
const afterNpm = [join(import.meta.dirname, 'after-npm.ts'), String(process.ppid), packed]
spawn(process.execPath, afterNpm, { detached: true, stdio: 'ignore' }).unref()
putInPlace(packed, {
  'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
  'README.md': readFileSync(join(workspace, 'README.md'), 'utf8'),
})
