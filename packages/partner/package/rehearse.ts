/**
 * `npm run long -- release`: everything that a release of the package does, on this machine. Packs what is committed,
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

/** How a test ended. */
interface Check {
  /** The runtime, or what else several tests are about. */
  suite: string | undefined
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
  if (missing.length > 0) throw new Error(`.cache/runtimes lacks ${missing.join(', ')}: run .ci/run install.`)
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

const states = { passed: 'ok', failed: 'FAILED', skipped: 'left out', pending: 'left out' }

/** Shows each check as it ends. */
function showChecks(checks: Check[]): Reporter {
  return {
    onTestCaseResult(test: TestCase) {
      const check = {
        suite: test.parent.type === 'suite' ? test.parent.name : undefined,
        name: test.name,
        state: states[test.result().state],
        seconds: (test.diagnostic()?.duration ?? 0) / 1_000,
        says: test
          .annotations()
          .map(({ message }) => message)
          .join('; '),
      }
      checks.push(check)
      const { suite, name, state, seconds } = check
      console.log(line(state, seconds, suite === undefined ? name : `${suite}: ${name}`))
    },
  }
}

const line = (state: string, seconds: number, text: string) =>
  `${state.padEnd(8)}  ${seconds.toFixed(1).padStart(5)} s  ${text}`

/** A line for each check by itself, and one for those about the same. */
function table(checks: Check[]): string {
  const rows = Map.groupBy(checks, ({ suite, name }) => suite ?? name)
  const width = Math.max(...[...rows.keys()].map((name) => name.length))
  return [...rows]
    .map(([name, its]) => {
      const worst = its.find(({ state }) => state !== 'ok')?.state ?? 'ok'
      const seconds = its.reduce((sum, each) => sum + each.seconds, 0)
      const count =
        its[0]!.suite === undefined
          ? []
          : [`${its.filter(({ state }) => state === 'ok').length} of ${its.length}`]
      const says = [...count, ...its.map((each) => each.says).filter((text) => text !== '')]
      return line(worst, seconds, `${name.padEnd(width)}  ${says.join('; ')}`).trimEnd()
    })
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
  const took = `in ${Math.round((performance.now() - started) / 1_000)} s`
  console.log(`\n${table(checks)}\n`)
  if (isReady)
    console.log(
      `The rehearsal passed: ${checks.length} checks ${took}. ${relative('.', out)}/ has, by their SHA-256:\n\n${await readFile(join(out, 'SHA256SUMS'), 'utf8')}`,
    )
  else console.log(`The rehearsal failed: ${bad.length} of ${checks.length} checks did not pass, ${took}.`)
  return isReady
}

try {
  if (!(await rehearse())) process.exitCode = 1
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
