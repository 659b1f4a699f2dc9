/** What `npm pack` makes, and how it runs where partners install it: without a registry, on each runtime that it names. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seededYear } from '../../../../test/support/ledgers/seeded-year.ts'
import { createTenants, credentials, type Staff } from '../../../../test/support/ledgers/tenants.ts'
import { copyLedger, type TestDatabase } from '../../../../test/support/servers/database.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import type { SeededFolder } from '../../../sample/src/seed.ts'
import {
  checkout,
  copyCheckout,
  install,
  npmEnvironment,
  pack,
  remove,
  run,
} from '../support/package/copy.ts'
import { olderCompiler, type Runtime, runtimes } from '../support/package/runtimes.ts'

/** Where the package was packed. */
let copy: string
let archive: string
/** A partner's project, with nothing in it but the package. */
let project: string
let database: TestDatabase
let staff: Staff
let service: TestService
let env: Record<string, string>
/** SHA-256 of the year as NDJSON, and how many movements it has. */
let source: { sha256: string; rows: number }

const consumer = (file: string) => join(import.meta.dirname, 'consumer', file)

beforeAll(async () => {
  const [ledger] = await Promise.all([copyLedger<SeededFolder>(seededYear(2_000)), setProject()])
  database = ledger.database
  staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const { token } = await staff.token('PARTNER', 'api', ledger.facts)
  service = await startTestService(database)
  const exercice = ledger.facts.exercices[1]!.id
  const year = () =>
    fetch(`${service.url}/api/v1/mad/movements?version=1.0.0&idExercice=${exercice}`, {
      headers: { ...credentials(token, secret), Accept: 'application/x-ndjson' },
    })
  const before = await year()
  await before.body!.cancel()
  await staff.client.query(changeOfOneEntry, [exercice])
  const text = await (await year()).text()
  source = { sha256: sha256Of(text), rows: text.split('\n').length - 1 }
  env = {
    PATH: process.env['PATH']!,
    HOME: project,
    GRANDLIVRE_URL: service.url,
    GRANDLIVRE_TOKEN: token,
    GRANDLIVRE_SECRET: secret,
    EXERCICE: exercice,
    OLD_CURSOR: before.headers.get('x-ledger-cursor')!,
  }
})

const changeOfOneEntry = `
update grandlivre.entries set comment = 'changed'
where id = (select min(id) from grandlivre.entries where exercice_id = $1 and validated_at is not null)`

async function setProject(): Promise<void> {
  copy = await copyCheckout()
  archive = await pack(copy)
  project = await install(archive)
  await copyFile(consumer('program.mjs'), join(project, 'program.mjs'))
}

afterAll(async () => {
  await service?.stop()
  await staff?.end()
  await database?.drop()
  for (const folder of [project, copy]) if (folder) await remove(folder)
})

const textOf = (path: string) => readFile(path, 'utf8')
const sha256Of = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')

test('the package holds programs, types, a README and a licence', async () => {
  const { stdout } = await run('tar', ['-tzf', archive])
  const names = stdout
    .trimEnd()
    .split('\n')
    .map((name) => name.replace('package/', ''))
  const built = names.filter((name) => name.startsWith('dist/'))
  expect(built.length).toBeGreaterThan(0)
  // Nothing of the service.
  const ours = /^dist\/(?:partner|terminal|contract)\/src\/.*\.(?:js|d\.ts)$/
  expect(built.filter((name) => !ours.test(name))).toEqual([])
  expect(names.filter((name) => !built.includes(name)).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'package.json',
  ])
})

test('it needs nothing, and has no scripts', async () => {
  const { stdout } = await run('tar', ['-xzOf', archive, 'package/package.json'])
  const manifest = JSON.parse(stdout)
  for (const part of ['dependencies', 'devDependencies', 'optionalDependencies', 'scripts', 'private'])
    expect(manifest).not.toHaveProperty(part)
  expect(manifest).toMatchObject({
    name: 'grandlivre',
    bin: { grandlivre: './dist/partner/src/grandlivre.js' },
    engines: { node: '>=20' },
    peerDependenciesMeta: { pg: { optional: true } },
  })
})

test('afterwards the folder is as it was', async () => {
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

test('an install brings the package alone', async () => {
  const lock = JSON.parse(await readFile(join(project, 'package-lock.json'), 'utf8'))
  expect(Object.keys(lock.packages)).toEqual(['', 'node_modules/grandlivre'])
  expect(existsSync(join(project, 'node_modules/.bin/grandlivre'))).toBe(true)
})

test('in the checkout the command can be run without a build', async () => {
  const { mode } = await stat(join(checkout, 'packages/partner/src/grandlivre.ts'))
  expect(mode & 0o111).not.toBe(0)
})

test('the programs of its README run', async () => {
  const readme = await textOf(join(project, 'node_modules/grandlivre/README.md'))
  const [reads, follows, receives] = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map(([, lines]) => lines!)
  // The year of the ledger here.
  await writeFile(join(project, 'reads.mjs'), reads!.replaceAll('2026', '2025'))
  const { stdout } = await run(process.execPath, ['reads.mjs'], { cwd: project, env })
  expect(stdout.match(/^2025-\d\d-\d\d \w+ -?[\d.]+$/gm)).toHaveLength(source.rows)
  const opened = reads!
    .slice(0, reads!.indexOf('for await'))
    .replace('{ Grandlivre }', '{ Grandlivre, readRows }')
  await writeFile(join(project, 'follows.mjs'), opened + follows)
  const followed = await run(process.execPath, ['follows.mjs'], { cwd: project, env, maxBuffer: 2 ** 26 })
  expect(followed.stdout).toMatch(
    /^folder \d+ at \S+\nfolders \d+\nexercices[\s\S]*\nmovements \d+\ndebit [\d.]+, credit [\d.]+\n$/,
  )
  const given = `const [secret, request, body] = ['glv_secret_', { headers: {} }, '[]']\n`
  await writeFile(join(project, 'receives.mjs'), given + receives)
  const refused = await run(process.execPath, ['receives.mjs'], { cwd: project, env })
  expect(refused.stderr).toMatch(/^signature-missing /)
})

test('its README names commands that there are', async () => {
  const readme = await textOf(join(project, 'node_modules/grandlivre/README.md'))
  const named = [...readme.matchAll(/^npx grandlivre (\w+)/gm)].map(([, name]) => name!)
  const { stdout } = await run(join(project, 'node_modules/.bin/grandlivre'), ['--help'], {
    cwd: project,
    env,
  })
  const commands = [...stdout.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name!)
  expect(named.filter((name) => !commands.includes(name))).toEqual([])
})

describe.each(runtimes)('$name', ({ name, program, words }: Runtime) => {
  const out = () => join(project, name.replace(' ', '-'))
  const command = (...rest: string[]) =>
    run(program, [...words, 'node_modules/grandlivre/dist/partner/src/grandlivre.js', ...rest], {
      cwd: project,
      env,
    })

  test.concurrent('a program reads a year, its changes and a file, and verifies a webhook', async () => {
    await mkdir(out(), { recursive: true })
    const file = join(out(), 'folder.csv.gz')
    const { stdout } = await run(program, [...words, 'program.mjs'], {
      cwd: project,
      env: { ...env, OUT: file },
    })
    const found = JSON.parse(stdout)
    expect(found).toMatchObject({ ...source, isProved: true, items: source.rows, webhook: [true, false] })
    expect(found.ledgers).toEqual([expect.any(Number), { kind: 'whole', ledgers: 1, refusals: 0 }])
    expect(found.ledgers[0]).toBeGreaterThan(source.rows)
    expect(found.changed).toBeGreaterThan(0)
    expect(sha256Of(gunzipSync(await readFile(file)))).toBe(found.status.sha256)
  })

  test.concurrent('the command shows its version and help, and pulls a year', async () => {
    const { version } = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8'))
    expect((await command('--version')).stdout).toBe(`${version}\n`)
    expect((await command('--help')).stdout).toMatch(/^Usage: grandlivre <command>/)
    await mkdir(out(), { recursive: true })
    const file = join(out(), 'year.ndjson')
    await command('pull', '--exercice', env['EXERCICE']!, '--out', file)
    expect(sha256Of(await readFile(file))).toBe(source.sha256)
  })

  test.concurrent('the command keeps a copy of the ledger', async () => {
    await mkdir(out(), { recursive: true })
    const target = join(out(), 'copy.sqlite')
    if (name === 'Node 20')
      return expect(command('sync', '--to', target)).rejects.toThrow(/Node 20\..* has no SQLite/)
    await command('sync', '--to', target)
    expect((await command('verify', '--to', target)).stdout).toMatch(
      /: 1 ledgers with [\d,]+ movements are equal;/,
    )
  })
})

const compiler = join(checkout, 'node_modules/.bin/tsc')

const compilers: [string, string[], Record<string, string>][] = [
  ['nodenext', [compiler], { module: 'nodenext' }],
  ['a bundler', [compiler], { module: 'esnext', moduleResolution: 'bundler' }],
  ['nodenext, by an older compiler', [process.execPath, olderCompiler], { module: 'nodenext' }],
]

test.each(compilers.filter(([, words]) => existsSync(words.at(-1)!)))(
  'a program compiles for %s, without types of Node',
  async (target, [program, ...words], options) => {
    const folder = join(project, target.replaceAll(/\W/g, '-'))
    await mkdir(folder)
    await copyFile(consumer('types.ts'), join(folder, 'types.ts'))
    const compilerOptions = { noEmit: true, strict: true, skipLibCheck: false, target: 'es2022', types: [] }
    const settings = { compilerOptions: { ...compilerOptions, ...options }, files: ['types.ts'] }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings))
    const compiled = run(program!, [...words, '--project', folder])
    expect(
      await compiled.then(
        ({ stdout }) => stdout,
        ({ stdout, message }) => stdout || message,
      ),
    ).toBe('')
  },
)
