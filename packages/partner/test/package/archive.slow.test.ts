/** What `npm pack` makes: the archive that partners install, and its bills of materials. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { sbomOfPackage, sbomOfService } from '../../package/sbom.ts'
import { archiveToTest, checkout, clone, npmEnvironment, pack, remove, run } from '../support/package/copy.ts'
import { runtimes, tools } from '../support/package/runtimes.ts'

/** Most bytes of the archive: a tenth more than it had when these were set. */
const bounds = { packed: 220_000, unpacked: 1_160_000 }

/** The clone in which the package is packed. */
let copy: string
let archive: string
/** The folder with the unpacked files of the archive. */
let unpacked: string

beforeAll(async () => {
  copy = await clone()
  archive = await archiveToTest(copy)
  unpacked = await mkdtemp(join(tmpdir(), 'grandlivre-unpacked-'))
  await run('tar', ['-xzf', archive, '-C', unpacked])
})

afterAll(async () => {
  for (const folder of [copy, unpacked]) if (folder) await remove(folder)
})

const textOf = (path: string) => readFile(path, 'utf8')
const manifest = async () => JSON.parse(await textOf(join(unpacked, 'package/package.json')))
const sha256Of = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

test('the package contains programs, types, a README and a licence', async () => {
  const { stdout } = await run('tar', ['-tzf', archive])
  const names = stdout
    .trimEnd()
    .split('\n')
    .map((name) => name.replace('package/', ''))
  const built = names.filter((name) => name.startsWith('dist/'))
  expect(built.length).toBeGreaterThan(0)
  // No file of the service is among them.
  const ours =
    /^dist\/(?:partner|terminal|contract|commonjs\/partner|commonjs\/contract)\/src\/.*\.(?:js|d\.ts)$/
  expect(built.filter((name) => !ours.test(name))).toEqual(['dist/commonjs/package.json'])
  expect(names.filter((name) => !built.includes(name)).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'package.json',
  ])
})

test('the package has no dependencies and no scripts, and names its owner', async () => {
  const packed = await manifest()
  for (const part of ['dependencies', 'devDependencies', 'optionalDependencies', 'scripts', 'private'])
    expect(packed).not.toHaveProperty(part)
  const { repository } = packed
  expect(packed).toMatchObject({
    name: 'grandlivre',
    bin: { grandlivre: './dist/partner/src/grandlivre.js' },
    engines: { node: '>=20' },
    peerDependenciesMeta: { pg: { optional: true } },
    author: (await textOf(join(checkout, 'LICENSE'))).match(/Copyright \(c\) \d+ (.*)/)![1],
    homepage: `${repository.url.slice('git+'.length, -'.git'.length)}#readme`,
    bugs: `${repository.url.slice('git+'.length, -'.git'.length)}/issues`,
  })
})

test('the package stays below its size limits', async ({ annotate }) => {
  const { size } = await stat(archive)
  const files = await readdir(join(unpacked, 'package'), { recursive: true, withFileTypes: true })
  const sizes = files
    .filter((file) => file.isFile())
    .map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size)
  const bytes = (await Promise.all(sizes)).reduce((sum, each) => sum + each, 0)
  await annotate(`${size} bytes of at most ${bounds.packed}, ${bytes} unpacked of at most ${bounds.unpacked}`)
  expect(size).toBeLessThanOrEqual(bounds.packed)
  expect(bytes).toBeLessThanOrEqual(bounds.unpacked)
})

test('a package built from another clone has the same bytes', async ({ annotate }) => {
  const other = await clone()
  try {
    // Its files have other permissions.
    await run('chmod', ['-R', 'go-rwx', join(other, 'packages'), join(other, 'README.md')])
    const sha256 = await sha256Of(archive)
    await annotate(`SHA-256 ${sha256}`)
    expect(await sha256Of(await pack(other))).toBe(sha256)
  } finally {
    await remove(other)
  }
})

test.skipIf(!existsSync(tools.publint))('publint finds no problem', async () => {
  const words = [tools.publint, archive, '--strict', '--pack', 'false']
  expect((await run(process.execPath, words)).stdout).toMatch(/All good!/)
})

test.skipIf(!existsSync(tools.attw))(
  'every module resolution of TypeScript finds the types that belong to the code',
  async () => {
    const env = { ...npmEnvironment, HOME: unpacked }
    const { stdout } = await run(process.execPath, [tools.attw, archive, '--format', 'json'], { env })
    const { analysis, problems } = JSON.parse(stdout)
    expect(Object.keys(analysis.entrypoints)).toEqual(['.', './sync', './webhooks', './package.json'])
    expect(problems).toEqual({})
  },
)

test('the bill of materials of the package lists only the package; that of the service lists its runtime dependencies', async () => {
  const { metadata, components } = await sbomOfPackage(archive)
  expect(metadata.component).toMatchObject({ name: 'grandlivre', licenses: [{ license: { id: 'MIT' } }] })
  expect(metadata.component.purl).toBe(`pkg:npm/grandlivre@${(await manifest()).version}`)
  expect(components).toEqual([])
  const service = await sbomOfService(checkout)
  const { dependencies, devDependencies } = JSON.parse(await textOf(join(checkout, 'package.json')))
  const named = new Set(service.components.map(({ purl }) => decodeURIComponent(purl)))
  for (const [name, version] of Object.entries(dependencies))
    expect(named).toContain(`pkg:npm/${name}@${version}`)
  expect(named).not.toContain(`pkg:npm/vitest@${devDependencies.vitest}`)
})

test('packing leaves the folder as it was', async () => {
  await pack(copy)
  for (const name of ['package.json', 'README.md'])
    expect(await textOf(join(copy, name))).toBe(await textOf(join(checkout, name)))
  expect(await readdir(copy)).not.toContain('dist')
})

test('a pack that is killed leaves the folder as it was', async () => {
  // The shell stands for npm, and is killed where npm would read the files.
  const script = 'node packages/partner/package/prepack.ts && cat package.json && kill -KILL $$'
  const { stdout } = await run('sh', ['-c', script], { cwd: copy, env: npmEnvironment }).catch(
    (error) => error,
  )
  expect(JSON.parse(stdout)).toHaveProperty('files')
  const original = await textOf(join(checkout, 'package.json'))
  await until(async () => (await textOf(join(copy, 'package.json'))) === original)
  await until(async () => !(await readdir(copy)).includes('dist'))
  expect(await textOf(join(copy, 'README.md'))).toBe(await textOf(join(checkout, 'README.md')))
})

test('the command runs from the checkout without a build', async () => {
  const { mode } = await stat(join(checkout, 'packages/partner/src/grandlivre.ts'))
  expect(mode & 0o111).not.toBe(0)
})

const [oldest] = runtimes

test.skipIf(oldest!.name !== 'Node 20')(
  'npm installs the checkout on Node 20 without a warning',
  async () => {
    const folder = join(unpacked, 'checkout')
    await mkdir(join(folder, 'packages/partner'), { recursive: true })
    for (const name of ['package.json', 'package-lock.json', '.npmrc', 'packages/partner/package.json'])
      await copyFile(join(checkout, name), join(folder, name))
    const [program, ...words] = [...oldest!.withNode, 'npm', 'ci', '--dry-run', '--no-audit', '--no-fund']
    const { stdout, stderr } = await run(program!, words, { cwd: folder, env: npmEnvironment })
    expect(stdout).toMatch(/^added \d+ packages/m)
    expect(stderr).toBe('')
  },
)
