/** The package as partners get it: from a registry, on each runtime that it supports, against a service. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seededYear } from '../../../../test/support/ledgers/seeded-year.ts'
import { createTenants, credentials, type Staff } from '../../../../test/support/ledgers/tenants.ts'
import { copyLedger, type TestDatabase } from '../../../../test/support/servers/database.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'
import type { SeededFolder } from '../../../sample/src/seed.ts'
import { archiveToTest, checkout, clone, remove, run } from '../support/package/copy.ts'
import { type Registry, startRegistry } from '../support/package/registry.ts'
import { type Runtime, runtimes, tools } from '../support/package/runtimes.ts'

/** Contains the registry, and a project for each runtime. */
let folder: string
let registry: Registry
let copy: string
let database: TestDatabase
let staff: Staff
let service: TestService
let env: Record<string, string>
/** SHA-256 of the year as NDJSON, and how many movements it has. */
let source: { sha256: string; rows: number }

const consumer = (file: string) => join(import.meta.dirname, 'consumer', file)

const isPossible = existsSync(tools.verdaccio)

beforeAll(async () => {
  if (!isPossible) return
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-published-'))
  const [ledger] = await Promise.all([copyLedger<SeededFolder>(seededYear(2_000)), publish()])
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
    HOME: folder,
    // npm, Deno and Bun read this variable.
    NPM_CONFIG_REGISTRY: registry.url,
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

async function publish(): Promise<void> {
  copy = await clone()
  registry = await startRegistry(join(folder, 'registry'))
  await registry.publish(await archiveToTest(copy))
}

afterAll(async () => {
  await service?.stop()
  await staff?.end()
  await database?.drop()
  await registry?.stop()
  for (const each of [folder, copy]) if (each) await remove(each)
})

const textOf = (path: string) => readFile(path, 'utf8')
const sha256Of = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** The folder of the partner's project for a runtime. It contains nothing but the package. */
const projectOf = ({ name }: Pick<Runtime, 'name'>) => join(folder, name.replace(' ', '-'))

describe.skipIf(!isPossible).each(runtimes)('$name', (runtime: Runtime) => {
  const { program, words, withoutRequireOfModules, install, command, hasSqlite } = runtime
  const runIn = ([first, ...rest]: string[], more: Record<string, string> = {}) =>
    run(first!, rest, { cwd: projectOf(runtime), env: { ...env, ...more }, maxBuffer: 2 ** 26 })
  const grandlivre = (...rest: string[]) => runIn([...command, ...rest])

  test('installs the package alone from a registry', async () => {
    await mkdir(projectOf(runtime))
    await writeFile(join(projectOf(runtime), 'package.json'), '{}')
    await runIn(install)
    const { version } = JSON.parse(await textOf(join(checkout, 'packages/partner/package.json')))
    expect((await grandlivre('--version')).stdout).toBe(`${version}\n`)
    expect((await grandlivre('--help')).stdout).toMatch(/^Usage: grandlivre <command>/)
    const { dependencies } = JSON.parse(await textOf(join(projectOf(runtime), 'package.json')))
    expect(Object.keys(dependencies)).toEqual(['grandlivre'])
    const lock = await Promise.any(
      ['package-lock.json', 'deno.lock', 'bun.lock'].map((name) => textOf(join(projectOf(runtime), name))),
    )
    expect(lock.match(/sha512-/g)).toHaveLength(1)
  })

  test('an ES module can read a year, its changes and a file, and verify a webhook', async () => {
    await copyFile(consumer('program.mjs'), join(projectOf(runtime), 'program.mjs'))
    const file = join(projectOf(runtime), 'folder.csv.gz')
    const { stdout } = await runIn([program, ...words, 'program.mjs'], { OUT: file })
    const said = JSON.parse(stdout)
    expect(said).toMatchObject({ ...source, isProved: true, items: source.rows, webhook: [true, false] })
    expect(said.ledgers).toEqual([expect.any(Number), { kind: 'whole', ledgers: 1, refusals: 0 }])
    expect(said.ledgers[0]).toBeGreaterThan(source.rows)
    expect(said.changed).toBeGreaterThan(0)
    expect(sha256Of(gunzipSync(await readFile(file)))).toBe(said.status.sha256)
  })

  test('a CommonJS program can read a year and copy a ledger', async () => {
    await copyFile(consumer('program.cjs'), join(projectOf(runtime), 'program.cjs'))
    const target = hasSqlite ? { COPY: join(projectOf(runtime), 'required.sqlite') } : undefined
    const { stdout } = await runIn([program, ...words, ...withoutRequireOfModules, 'program.cjs'], target)
    expect(JSON.parse(stdout)).toEqual({
      sha256: source.sha256,
      copied: hasSqlite ? 1 : 'function',
      isOneClass: true,
      webhook: true,
    })
  })

  test('the command can pull a year and prove it', async ({ annotate }) => {
    const file = join(projectOf(runtime), 'year.ndjson')
    const { stdout } = await grandlivre('pull', '--exercice', env['EXERCICE']!, '--out', file)
    expect(stdout).toContain("Whole:   the answer's row count and SHA-256 are those of the file")
    expect(sha256Of(await readFile(file))).toBe(source.sha256)
    await annotate(`${source.rows} movements`)
  })

  test('the command keeps a copy of the ledger, or says that it has no SQLite', async ({ annotate }) => {
    const target = join(projectOf(runtime), 'copy.sqlite')
    if (!hasSqlite) {
      const refusal = await grandlivre('sync', '--to', target).catch(({ stderr }) => stderr as string)
      expect(refusal).toMatch(/Node 20\..* has no SQLite/)
      return annotate(String(refusal).split('\n')[0]!)
    }
    await grandlivre('sync', '--to', target)
    const [, equal] = /: (1 ledgers with [\d,]+ movements are equal);/.exec(
      (await grandlivre('verify', '--to', target)).stdout,
    )!
    await annotate(equal!)
  })
})

describe.skipIf(!isPossible)('the documentation for partners is right:', () => {
  /** The project for Node 26, where the package was installed above. */
  const project = () => projectOf(runtimes.at(-1)!)

  test('the programs of its README run', async () => {
    const readme = await textOf(join(project(), 'node_modules/grandlivre/README.md'))
    const [reads, follows, receives] = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map(
      ([, lines]) => lines!,
    )
    // The ledger of this test has another year.
    await writeFile(join(project(), 'reads.mjs'), reads!.replaceAll('2026', '2025'))
    const { stdout } = await run(process.execPath, ['reads.mjs'], { cwd: project(), env })
    expect(stdout.match(/^2025-\d\d-\d\d \w+ -?[\d.]+$/gm)).toHaveLength(source.rows)
    const opened = reads!
      .slice(0, reads!.indexOf('for await'))
      .replace('{ Grandlivre }', '{ Grandlivre, readRows }')
    await writeFile(join(project(), 'follows.mjs'), opened + follows)
    const followed = await run(process.execPath, ['follows.mjs'], { cwd: project(), env, maxBuffer: 2 ** 26 })
    expect(followed.stdout).toMatch(
      /^folder \d+ at \S+\nfolders \d+\nexercices[\s\S]*\nmovements \d+\ndebit [\d.]+, credit [\d.]+\n$/,
    )
    const given = `const [secret, request, body] = ['glv_secret_', { headers: {} }, '[]']\n`
    await writeFile(join(project(), 'receives.mjs'), given + receives)
    const refused = await run(process.execPath, ['receives.mjs'], { cwd: project(), env })
    expect(refused.stderr).toMatch(/^signature-missing /)
  })

  test('every command in its README exists', async () => {
    const readme = await textOf(join(project(), 'node_modules/grandlivre/README.md'))
    const named = [...readme.matchAll(/^npx grandlivre (\w+)/gm)].map(([, name]) => name!)
    const { stdout } = await run(join(project(), 'node_modules/.bin/grandlivre'), ['--help'], {
      cwd: project(),
      env,
    })
    const commands = [...stdout.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name!)
    expect(named.filter((name) => !commands.includes(name))).toEqual([])
  })

  const current = [process.execPath, join(checkout, 'node_modules/typescript/bin/tsc')]
  const older = [process.execPath, tools.compiler]
  const compilers: [string, string[], Record<string, string>, ('module' | 'commonjs')?][] = [
    ['nodenext', current, { module: 'nodenext' }],
    ['a bundler', current, { module: 'esnext', moduleResolution: 'bundler' }],
    ['nodenext, by an older compiler', older, { module: 'nodenext' }],
    ['CommonJS in nodenext', current, { module: 'nodenext' }, 'commonjs'],
    ['CommonJS in node16, by an older compiler', older, { module: 'node16' }, 'commonjs'],
    ['CommonJS, by an older compiler', older, { module: 'commonjs' }, 'commonjs'],
  ]

  test.each(compilers)(
    'a program compiles for %s without the types of Node',
    async (target, [program, ...words], options, type = 'module') => {
      const its = join(project(), target.replaceAll(/\W/g, '-'))
      await mkdir(its)
      await copyFile(consumer('types.ts'), join(its, 'types.ts'))
      await writeFile(join(its, 'package.json'), JSON.stringify({ type }))
      const compilerOptions = { noEmit: true, strict: true, skipLibCheck: false, target: 'es2022', types: [] }
      const settings = { compilerOptions: { ...compilerOptions, ...options }, files: ['types.ts'] }
      await writeFile(join(its, 'tsconfig.json'), JSON.stringify(settings))
      const compiled = run(program!, [...words, '--project', its])
      expect(
        await compiled.then(
          ({ stdout }) => stdout,
          ({ stdout, message }) => stdout || message,
        ),
      ).toBe('')
    },
  )
})
