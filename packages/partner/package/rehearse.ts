/**
 * `npm run release:rehearse`: everything that a release of the package does, on this machine. Packs what is committed,
 * writes bills of materials, and runs the tests of the package with that archive: they publish it to a registry on
 * loopback, install it on each runtime, and use it against a service. Shows each check as it ends, a table of all, and
 * whether this can be released, which the exit code says, too. `out/release/` then holds what to publish.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { type Reporter, startVitest, type TestCase } from 'vitest/node'
import { checkout, clone, pack, remove } from '../test/support/package/copy.ts'
import { missingForPackage } from '../test/support/package/runtimes.ts'
import { readManifest } from './api-report.ts'
import { sbomOfPackage, sbomOfService } from './sbom.ts'

const out = resolve(checkout, 'out/release')
const started = performance.now()

interface Check {
  name: string
  state: string
  seconds: number
  says: string
}

/** @throws {Error} if what would be rehearsed is not what would be released, or a part would be left out */
function checkStart(): void {
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: checkout, encoding: 'utf8' })
  if (changed !== '')
    throw new Error(`A release is made of what is committed. Commit these, or remove them:\n${changed}`)
  const missing = missingForPackage()
  if (missing.length > 0)
    throw new Error(`.cache/runtimes lacks ${missing.join(', ')}. .ci/run installs it (install_runtimes).`)
}

/** @returns the path of the archive in `out/release/`, beside which are its SHA-256 and the bills of materials */
async function makeArtifacts(): Promise<string> {
  await rm(out, { recursive: true, force: true })
  await mkdir(out, { recursive: true })
  const copy = await clone()
  try {
    const packed = await pack(copy)
    const archive = join(out, basename(packed))
    await copyFile(packed, archive)
    const { version } = await readManifest()
    const documents = {
      [`grandlivre-${version}.cdx.json`]: await sbomOfPackage(archive),
      [`grandlivre-service-${version}.cdx.json`]: await sbomOfService(copy),
    }
    for (const [name, sbom] of Object.entries(documents))
      await writeFile(join(out, name), `${JSON.stringify(sbom, null, 2)}\n`)
    const sums = [basename(archive), ...Object.keys(documents)].map(
      async (name) =>
        `${createHash('sha256')
          .update(await readFile(join(out, name)))
          .digest('hex')}  ${name}\n`,
    )
    await writeFile(join(out, 'SHA256SUMS'), (await Promise.all(sums)).join(''))
    return archive
  } finally {
    await remove(copy)
  }
}

/** Shows each check as it ends. */
function showChecks(checks: Check[]): Reporter {
  return {
    onTestCaseResult(test: TestCase) {
      const { parent, name } = test
      const check = {
        name: parent.type === 'suite' ? `${parent.name}: ${name}` : name,
        state: { passed: 'ok', failed: 'FAILED', skipped: 'left out', pending: 'left out' }[
          test.result().state
        ],
        seconds: (test.diagnostic()?.duration ?? 0) / 1_000,
        says: test
          .annotations()
          .map(({ message }) => message)
          .join('; '),
      }
      checks.push(check)
      console.log(line(check))
    },
  }
}

const line = ({ name, state, seconds }: Check) =>
  `${state.padEnd(8)}  ${seconds.toFixed(1).padStart(5)} s  ${name}`

function table(checks: Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  return checks
    .map((check) => `${line({ ...check, name: check.name.padEnd(width) })}  ${check.says}`.trimEnd())
    .join('\n')
}

/** @returns whether everything passed */
async function rehearse(): Promise<boolean> {
  checkStart()
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: checkout,
    encoding: 'utf8',
  }).trim()
  const { version } = await readManifest()
  console.log(`Rehearsing the release of grandlivre ${version}, commit ${commit}\n`)
  const archive = await makeArtifacts()
  process.env['REHEARSED'] = archive
  const checks: Check[] = []
  const vitest = await startVitest(['packages/partner/test/package/'], {
    project: ['slow', 'service'],
    reporters: ['minimal', showChecks(checks)],
    watch: false,
  })
  await vitest.close()
  const bad = checks.filter(({ state }) => state !== 'ok')
  const isReady = checks.length > 0 && bad.length === 0 && process.exitCode !== 1
  const seconds = Math.round((performance.now() - started) / 1_000)
  console.log(`\n${table(checks)}\n`)
  console.log(
    isReady
      ? `grandlivre ${version} can be released: ${checks.length} checks passed in ${seconds} s. It is in ${relative('.', out)}/:\n\n${await readFile(join(out, 'SHA256SUMS'), 'utf8')}`
      : `grandlivre ${version} cannot be released: ${bad.length} of ${checks.length} checks did not pass, in ${seconds} s.`,
  )
  return isReady
}

try {
  if (!(await rehearse())) process.exitCode = 1
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
