/**
 * Before `npm pack`: compiles what partners run to `dist/`, since Node runs no TypeScript below `node_modules`, and puts
 * the package's `package.json` and `README.md` in place. `postpack.ts` takes them away again. If npm is killed in
 * between, `after-npm.ts` does.
 */
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { putInPlace, restore } from './in-place.ts'
import { packedManifest } from './manifest.ts'

const root = resolve(import.meta.dirname, '..')
// Of a pack on a machine that lost its power.
restore(root)
// Of a build that failed. What it has left would be packed, too.
rmSync(join(root, 'dist'), { recursive: true, force: true })
execFileSync('tsc', ['--project', 'tsconfig.package.json'], { cwd: root, stdio: ['ignore', 2, 2] })
const manifest = packedManifest(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')))
const afterNpm = [join(import.meta.dirname, 'after-npm.ts'), String(process.ppid)]
spawn(process.execPath, afterNpm, { detached: true, stdio: 'ignore' }).unref()
putInPlace(root, {
  'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
  'README.md': readFileSync(join(import.meta.dirname, 'README.md'), 'utf8'),
})
