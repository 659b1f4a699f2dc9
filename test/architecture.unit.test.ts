import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/**
 * Rooms that both the service and the partners' package import: error codes and deliveries, and what both command lines
 * show.
 */
const neutral = ['packages/terminal/src', 'packages/contract/src']

/**
 * Rooms from top to bottom: a room imports from itself and from rooms below. Files directly in src are at both ends.
 * Entry points and the start of the service are above; what every room may use is below.
 */
const rooms = [
  'entry',
  'packages/partner/src/cli',
  'packages/partner/src/sync',
  'packages/partner/src/client',
  'packages/sample/src',
  'start',
  'console',
  'commands',
  'acts',
  'lists',
  'http',
  'erasure',
  'webhooks',
  'auth',
  'jobs',
  'exports',
  'ledger',
  'events',
  'audit',
  'db',
  'threads',
  'store',
  'formats',
  'telemetry',
  'ground',
  ...neutral,
]
const ground = [
  'config.ts',
  'errors.ts',
  'listen.ts',
  'log.ts',
  'stop-signal.ts',
  'timing.ts',
  'settings.ts',
  'traces-share.ts',
]
const entries = [
  'main.ts',
  'cli.ts',
  'packages/sample/src/demo.ts',
  'export-thread.ts',
  'hash-thread.ts',
  'write-parquet.ts',
  'packages/partner/src/grandlivre.ts',
  'packages/partner/src/client/grandlivre.ts',
  'packages/partner/src/client/webhooks.ts',
  'packages/partner/src/sync/sync.ts',
]
const isOfPartner = (path: string) => path.startsWith('packages/partner/')
const isNeutral = (path: string) => neutral.some((room) => path.startsWith(`${room}/`))

/** `npm run docs -- api` generates it. It is long because the service has many routes. */
const generated = ['packages/partner/src/client/api/routes.ts']

interface SourceFile {
  path: string
  text: string
}

const packages = readdirSync(join(root, 'packages'))
/** Files of the service by their path in src, files of packages by their path from the root. */
const files = [
  ...filesIn(join(root, 'src')),
  ...packages.flatMap((name) =>
    filesIn(join(root, 'packages', name, 'src')).map(({ path, text }) => ({
      path: `packages/${name}/src/${path}`,
      text,
    })),
  ),
]

function filesIn(folder: string): SourceFile[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path, text: readFileSync(join(folder, path), 'utf8') }))
}

function roomOf(path: string): string {
  const inPackage = rooms.find((room) => room.startsWith('packages/') && path.startsWith(`${room}/`))
  // demo.ts is an entry point that starts the service.
  if (inPackage && path !== 'packages/sample/src/demo.ts') return inPackage
  if (entries.includes(path)) return 'entry'
  if (path.startsWith('packages/partner/src/')) return 'packages/partner/src/client'
  if (path.includes('/')) return path.split('/')[0]!
  if (ground.includes(path)) return 'ground'
  return 'start'
}

function importsOf({ path, text }: SourceFile): string[] {
  const found = [...text.matchAll(/(?:from|import\(|^import)\s*'(\.[^']*)'/gm)].map((match) => match[1]!)
  const folder = join(root, path.startsWith('packages/') ? '' : 'src', dirname(path))
  const targets = found.map((target) => relative(root, resolve(folder, target)).replace(/^src\//, ''))
  // JSON files contain tables: the version, the words and the chart of the made-up ledger.
  return targets.filter((target) => !target.endsWith('.json'))
}

/**
 * Files that exist for their one statement: the snapshot's two connections, the sequence of ids, the COPY
 * that the loader builds from its table of columns.
 */
const statementsInPlace = ['exports/read/snapshot.ts', 'ledger/ids.ts', 'ledger/load.ts']

const withoutComments = (text: string) =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*/g, '')

/** Paths of the files that break a rule, each with the offending text. */
function offenders(rule: (file: SourceFile) => string[], among = files): string[] {
  return among.flatMap((file) => rule(file).map((what) => `${file.path}: ${what}`))
}

test('the walk finds the files and their imports', () => {
  expect(files.length).toBeGreaterThan(30)
  expect(files.flatMap(importsOf).length).toBeGreaterThan(100)
  expect(files.flatMap(importsOf).filter((target) => !files.some(({ path }) => path === target))).toEqual([])
})

test('every folder of src is listed as a room', () => {
  expect(new Set(files.map(({ path }) => roomOf(path)))).toEqual(new Set(rooms))
})

test('a room imports only from rooms below it', () => {
  const upward = offenders((file) =>
    importsOf(file).filter((target) => rooms.indexOf(roomOf(target)) < rooms.indexOf(roomOf(file.path))),
  )
  expect(upward).toEqual([])
})

test('files import each other without cycles, types included', () => {
  const targets = new Map(files.map((file) => [file.path, importsOf(file)]))
  const cycles: string[] = []
  const walk = (path: string, trail: string[]): void => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '))
    else for (const target of targets.get(path) ?? []) walk(target, [...trail, path])
  }
  for (const path of targets.keys()) walk(path, [])
  expect(cycles).toEqual([])
})

test('every file is imported or is an entry point', () => {
  const used = new Set(entries.filter((path) => files.some((file) => file.path === path)))
  for (const path of used)
    for (const target of importsOf(files.find((file) => file.path === path)!)) used.add(target)
  expect(files.map(({ path }) => path).filter((path) => !used.has(path))).toEqual([])
})

test('every name that a file exports is imported somewhere, except by entry points and what partners install', () => {
  const imported = new Set<string>()
  for (const folder of ['src', 'packages', 'test', 'bench', 'docs'])
    for (const { path, text } of filesIn(join(root, folder)).filter(
      ({ path }) => !path.includes('node_modules'),
    ))
      for (const [, what, target] of text.matchAll(
        /^(?:import|export| {2}const) (?:type )?([^;']*?) (?:from|= await import\() ?'(\.[^']*)'/gm,
      )) {
        const file = relative(root, resolve(root, folder, dirname(path), target!)).replace(/^src\//, '')
        for (const name of what!.matchAll(/\w+(?= as \w)|\w+(?=,|\s*\}|$)/g))
          imported.add(`${file} ${name[0]}`)
        if (what!.startsWith('*')) imported.add(`${file} *`)
      }
  const unused = offenders(({ path, text }) =>
    [...text.matchAll(/^export (?:async )?(?:function\*? |const |class |interface |type )(\w+)/gm)]
      .map((match) => match[1]!)
      .filter((name) => !imported.has(`${path} ${name}`) && !imported.has(`${path} *`)),
  )
  const installed = /^packages\/(?:partner\/src\/(?:client|sync)|contract\/src)\//
  const isPublic = (path: string) => entries.includes(path) || installed.test(path)
  expect(unused.filter((offender) => !isPublic(offender.split(':')[0]!))).toEqual([])
})

test('formats import neither the database nor the network', () => {
  const foreign = /from '(?:node:(?:fs|net|http|https|stream|worker_threads)[^']*|pg[^']*|hono[^']*)'/g
  expect(
    offenders(({ path, text }) => (roomOf(path) === 'formats' ? (text.match(foreign) ?? []) : [])),
  ).toEqual([])
  expect(
    offenders((file) =>
      roomOf(file.path) === 'formats'
        ? importsOf(file).filter((target) => !target.startsWith('formats/') && !isNeutral(target))
        : [],
    ),
  ).toEqual([])
})

test('every format may import items and itself, but no other format; items import no format', () => {
  const folders = readdirSync(join(root, 'src/formats'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  )
  const formats = folders.map(({ name }) => `formats/${name}/`)
  expect(formats).toContain('formats/items/')
  expect(formats.length).toBeGreaterThan(3)
  const foreign = offenders((file) => {
    const own = formats.find((format) => file.path.startsWith(format))
    return importsOf(file).filter((target) =>
      formats.some((format) => own && ![own, 'formats/items/'].includes(format) && target.startsWith(format)),
    )
  })
  expect(foreign).toEqual([])
})

test('auth imports neither Hono nor node:http', () => {
  expect(
    offenders(({ path, text }) =>
      roomOf(path) === 'auth' ? (text.match(/from '(?:@?hono|node:https?')/g) ?? []) : [],
    ),
  ).toEqual([])
})

test('the verifier that subscribers copy needs only Node', () => {
  const foreign = /from '(?!node:)[^']*'/g
  const verifier = files.filter(({ path }) => path.endsWith('client/webhooks.ts'))
  expect(verifier).toHaveLength(1)
  expect(offenders(({ text }) => text.match(foreign) ?? [], verifier)).toEqual([])
})

test('the package for partners needs only Node, itself and the neutral rooms', () => {
  const own = files.filter(({ path }) => isOfPartner(path) || isNeutral(path))
  // pg is optional: only a database as the target of a copy needs it, so it is imported when one is named.
  const installed = /(?:from|^import) '(?!node:|\.)[^']*'|import\('(?!node:|\.|pg')[^']*'\)/gm
  expect(offenders(({ text }) => withoutComments(text).match(installed) ?? [], own)).toEqual([])
  const foreign = (file: SourceFile) =>
    importsOf(file).filter((target) => !isOfPartner(target) && !isNeutral(target))
  expect(offenders(foreign, own)).toEqual([])
})

test('the service imports only the neutral rooms of the packages; its entry points also import the made-up ledger', () => {
  const service = files.filter(({ path }) => !path.startsWith('packages/'))
  const uses = (file: SourceFile) =>
    importsOf(file).filter(
      (target) =>
        target.startsWith('packages/') &&
        !isNeutral(target) &&
        !(roomOf(file.path) === 'entry' && target.startsWith('packages/sample/')),
    )
  expect(offenders(uses, service)).toEqual([])
})

test('the package for partners has the version and the licence of the service', () => {
  const textOf = (path: string) => readFileSync(join(root, path), 'utf8')
  const versionOf = (path: string) => JSON.parse(textOf(path)).version
  expect(versionOf('packages/partner/package.json')).toBe(versionOf('package.json'))
  expect(textOf('packages/partner/LICENSE')).toBe(textOf('LICENSE'))
})

/** Other files may use these of the process: a default value, and its end. */
const processUses = new Map([
  ['config.ts', ['process.env']],
  ['log.ts', ['process.stdout']],
  ['stop-signal.ts', ['process.exit']],
  ['start/run-until-signal.ts', ['process.stderr', 'process.exit', 'process.exitCode']],
])

test('only entry points access the environment, the terminal and the exit code of the process', () => {
  const uses = /process\.(?:env|argv|std(?:in|out|err)|exit(?:Code)?)\b/g
  const elsewhere = ({ path, text }: SourceFile) =>
    (text.match(uses) ?? []).filter((use) => !processUses.get(path)?.includes(use))
  expect(offenders((file) => (roomOf(file.path) === 'entry' ? [] : elsewhere(file)))).toEqual([])
})

test('command lines write to the terminal in one room, which escapes control characters in texts of others', () => {
  const writes = /\b(?:out|err|output|input)\.write\(/g
  const elsewhere = ({ path, text }: SourceFile) =>
    /^(?:commands\/|packages\/partner\/src\/.*\/|packages\/sample\/src\/)/.test(path)
      ? (text.match(writes) ?? [])
      : []
  expect(offenders(elsewhere)).toEqual([])
})

test('examples import nothing from src, as the programs of partners could not', () => {
  const examples = filesIn(join(root, 'examples'))
  expect(examples.map(({ path }) => path)).toContain('receiver-node.ts')
  expect(offenders(({ text }) => text.match(/'\.\.\/[^']*'/g) ?? [], examples)).toEqual([])
})

test('only config.ts reads the environment', () => {
  const programs = offenders(({ path, text }) =>
    roomOf(path) === 'entry' ? (text.match(/process\.env(?!,)/g) ?? []) : [],
  )
  expect(programs).toEqual([])
})

test('SQL is only in .sql.ts files, in the database room, and in files that hold a single statement', () => {
  const statement =
    /[`'](?:select|insert into|update \w+ set|delete from|copy|with \w+ as|begin|set local|create|alter)\s[^`']*/g
  const elsewhere = offenders(({ path, text }) =>
    path.endsWith('.sql.ts') || roomOf(path) === 'db' ? [] : (withoutComments(text).match(statement) ?? []),
  )
  expect(elsewhere.filter((line) => !statementsInPlace.some((path) => line.startsWith(path)))).toEqual([])
})

test.each(['src', 'packages', 'test', 'bench', 'examples'])(
  'a file of %s has at most 400 lines',
  (folder) => {
    // Subtracts one, because a file ends with a line break.
    const tooLong = ({ path, text }: SourceFile) => {
      if (generated.includes(`${folder}/${path}`)) return []
      const lines = text.split('\n').length - 1
      return lines > 400 ? [`${lines} lines`] : []
    }
    const walked = filesIn(join(root, folder))
    expect(walked).not.toEqual([])
    expect(offenders(tooLong, walked)).toEqual([])
  },
)

test.each(['src', 'packages', 'test', 'bench'])(
  'a folder of %s has at most twelve files of its own',
  (folder) => {
    const counts = new Map<string, number>()
    // Entry points have no folder of their own.
    const isEntry = (path: string) => entries.includes(folder === 'src' ? path : `${folder}/${path}`)
    for (const { path } of filesIn(join(root, folder)).filter(({ path }) => !isEntry(path)))
      counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
    expect([...counts].filter(([, count]) => count > 12)).toEqual([])
  },
)

test('a unit test needs neither a server nor another process', () => {
  const imports = /^(?:im|ex)port (?!type )(?:[^']* from )?'(\.[^']*|node:child_process)'/gm
  const reach = (path: string, seen = new Set<string>()): Set<string> => {
    seen.add(path)
    if (!path.endsWith('.ts')) return seen
    for (const [, target = ''] of readFileSync(path, 'utf8').matchAll(imports)) {
      const file = target.startsWith('.') ? resolve(dirname(path), target) : target
      if (!seen.has(file)) reach(file, seen)
    }
    return seen
  }
  const foreign = (path: string) => path === 'node:child_process' || path.includes('/support/servers/')
  const units = ['test', 'packages'].flatMap((folder) =>
    filesIn(join(root, folder))
      .filter(({ path }) => path.endsWith('.unit.test.ts'))
      .map(({ path, text }) => ({ path: join(folder, path), text })),
  )
  expect(units.length).toBeGreaterThan(10)
  expect(offenders(({ path }) => [...reach(join(root, path))].filter(foreign), units)).toEqual([])
})

test('no file has a vague name', () => {
  const vague =
    /(?:util|helper|manager|common|handler|worker|(?<!micro)service(?!s\.)|^base|^data)s?(?:\.|\/|$)/i
  expect(files.map(({ path }) => path).filter((path) => vague.test(path))).toEqual([])
})

test('there are no barrels, no default exports, no enums', () => {
  const shapes = /^export (?:default|\*|(?:const )?enum)/gm
  expect(offenders(({ text }) => text.match(shapes) ?? [])).toEqual([])
  expect(files.filter(({ path }) => path.endsWith('index.ts'))).toEqual([])
})

test('no TODO, FIXME or XXX is left', () => {
  expect(offenders(({ text }) => text.match(/\b(?:TODO|FIXME|XXX)\b/g) ?? [])).toEqual([])
})
