/**
 * Before `npm pack`, here or at the root of the checkout: compiles what partners run to `dist/`, since Node runs no
 * TypeScript below `node_modules`, and puts the package's `package.json` and `README.md` in place. `postpack.ts` takes
 * them away again. If npm is killed in between, `after-npm.ts` does.
 */
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { putInPlace, restore } from './in-place.ts'
import { packedManifest } from './manifest.ts'

const workspace = resolve(import.meta.dirname, '..')
/** The folder that npm packs. */
const packed = process.cwd()
// Of a pack on a machine that lost its power.
restore(packed)
const dist = join(packed, 'dist')
// Of a build that failed. What it has left would be packed, too.
rmSync(dist, { recursive: true, force: true })
execFileSync('tsc', ['--project', workspace, '--outDir', dist], { stdio: ['ignore', 2, 2] })
const manifest = packedManifest(JSON.parse(readFileSync(join(workspace, 'package.json'), 'utf8')))
const afterNpm = [join(import.meta.dirname, 'after-npm.ts'), String(process.ppid), packed]
spawn(process.execPath, afterNpm, { detached: true, stdio: 'ignore' }).unref()
putInPlace(packed, {
  'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
  'README.md': readFileSync(join(workspace, 'README.md'), 'utf8'),
})
