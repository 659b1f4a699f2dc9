import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

const source = resolve(import.meta.dirname, '../src')

/**
 * Rooms from top to bottom: a room imports from itself and from rooms below. Files directly in src are at
 * either end: entry points and the start of the service above, what every room may use below.
 */
const rooms = [
  'entry',
  'partner',
  'client',
  'start',
  'console',
  'commands',
  'http',
  'webhooks',
  'sample',
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
]
/** What service and package must agree on. */
const agreed = ['error-codes.ts', 'printable.ts', 'webhook-delivery.ts']
const ground = [
  ...agreed,
  'config.ts',
  'errors.ts',
  'listen.ts',
  'log.ts',
  'stop-signal.ts',
  'timing.ts',
  'traces-share.ts',
]
const entries = [
  'main.ts',
  'cli.ts',
  'demo.ts',
  'export-thread.ts',
  'hash-thread.ts',
  'write-parquet.ts',
  'grandlivre.ts',
  'client/grandlivre.ts',
  'client/webhooks.ts',
]
/** Rooms of the package that partners install. The command line may come after the library that it uses. */
const partnerRooms = ['partner', 'client']

/** Written by `npm run docs:api`, as long as the routes of the service are many. */
const generated = ['client/api/routes.ts']

interface SourceFile {
  path: string
  text: string
}

const files = filesIn(source)

function filesIn(folder: string): SourceFile[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path, text: readFileSync(join(folder, path), 'utf8') }))
}

function roomOf(path: string): string {
  if (path.includes('/')) return path.split('/')[0]!
  if (ground.includes(path)) return 'ground'
  return entries.includes(path) ? 'entry' : 'start'
}

function importsOf({ path, text }: SourceFile): string[] {
  const found = [...text.matchAll(/(?:from|import\(|^import)\s*'(\.[^']*)'/gm)].map((match) => match[1]!)
  const targets = found.map((target) => relative(source, resolve(source, dirname(path), target)))
  // JSON holds tables: the version, the words and the chart of the made-up ledger.
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

test('every folder of src is a room', () => {
  const found = new Set(files.map(({ path }) => roomOf(path)))
  expect(new Set([...found, 'partner'])).toEqual(new Set(rooms))
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

test('every file is used', () => {
  const used = new Set(entries.filter((path) => files.some((file) => file.path === path)))
  for (const path of used)
    for (const target of importsOf(files.find((file) => file.path === path)!)) used.add(target)
  expect(files.map(({ path }) => path).filter((path) => !used.has(path))).toEqual([])
})

test('formats know neither the database nor the network', () => {
  const foreign = /from '(?:node:(?:fs|net|http|https|stream|worker_threads)[^']*|pg[^']*|hono[^']*)'/g
  expect(
    offenders(({ path, text }) => (roomOf(path) === 'formats' ? (text.match(foreign) ?? []) : [])),
  ).toEqual([])
  expect(
    offenders((file) =>
      roomOf(file.path) === 'formats'
        ? importsOf(file).filter((target) => !target.startsWith('formats/') && target !== 'printable.ts')
        : [],
    ),
  ).toEqual([])
})

test('a format imports nothing from another format', () => {
  const folders = readdirSync(join(source, 'formats'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  )
  const formats = folders.map(({ name }) => `formats/${name}/`)
  expect(formats.length).toBeGreaterThan(2)
  const foreign = offenders((file) => {
    const own = formats.find((format) => file.path.startsWith(format))
    return importsOf(file).filter((target) =>
      formats.some((format) => own && format !== own && target.startsWith(format)),
    )
  })
  expect(foreign).toEqual([])
})

test('auth knows neither Hono nor node:http', () => {
  expect(
    offenders(({ path, text }) =>
      roomOf(path) === 'auth' ? (text.match(/from '(?:@?hono|node:https?')/g) ?? []) : [],
    ),
  ).toEqual([])
})

test('the verifier that subscribers copy needs nothing but Node', () => {
  const foreign = /from '(?!node:)[^']*'/g
  const verifier = files.filter(({ path }) => path === 'client/webhooks.ts')
  expect(verifier).toHaveLength(1)
  expect(offenders(({ text }) => text.match(foreign) ?? [], verifier)).toEqual([])
})

test('the package of partners needs nothing but Node, its own rooms and what it agrees on with the service', () => {
  const own = files.filter(({ path }) => partnerRooms.includes(roomOf(path)) || path === 'grandlivre.ts')
  // pg is optional: only a database as the target of a copy needs it, so it is imported when one is named.
  const packages = /(?:from|^import) '(?!node:|\.)[^']*'|import\('(?!node:|\.|pg')[^']*'\)/gm
  expect(offenders(({ text }) => withoutComments(text).match(packages) ?? [], own)).toEqual([])
  const foreign = (file: SourceFile) =>
    importsOf(file).filter((target) => !partnerRooms.includes(roomOf(target)) && !agreed.includes(target))
  expect(offenders(foreign, own)).toEqual([])
})

test('nothing of the service imports the package of partners', () => {
  const service = files.filter(({ path }) => !partnerRooms.includes(roomOf(path)) && path !== 'grandlivre.ts')
  const uses = (file: SourceFile) =>
    importsOf(file).filter((target) => partnerRooms.includes(roomOf(target)) || target === 'grandlivre.ts')
  expect(offenders(uses, service)).toEqual([])
})

/** What other files use of the process: a default value, or its end. */
const processUses = new Map([
  ['config.ts', ['process.env']],
  ['log.ts', ['process.stdout']],
  ['stop-signal.ts', ['process.exit']],
  ['start/run-until-signal.ts', ['process.stderr', 'process.exit', 'process.exitCode']],
])

test('only entry points use the environment, the terminal and the exit code of the process', () => {
  const uses = /process\.(?:env|argv|std(?:in|out|err)|exit(?:Code)?)\b/g
  const elsewhere = ({ path, text }: SourceFile) =>
    (text.match(uses) ?? []).filter((use) => !processUses.get(path)?.includes(use))
  expect(offenders((file) => (roomOf(file.path) === 'entry' ? [] : elsewhere(file)))).toEqual([])
})

test('command lines write to the terminal in one room, which makes texts of others safe', () => {
  const writes = /\b(?:out|err|output|input)\.write\(/g
  const elsewhere = ({ path, text }: SourceFile) =>
    /^(?:commands|partner)\/(?!terminal\/)/.test(path) ? (text.match(writes) ?? []) : []
  expect(offenders(elsewhere)).toEqual([])
})

test('examples stand for programs of partners: they import nothing from src', () => {
  const examples = filesIn(resolve(source, '../examples'))
  expect(examples.map(({ path }) => path)).toContain('node/follow.ts')
  expect(offenders(({ text }) => text.match(/'\.\.\/[^']*'/g) ?? [], examples)).toEqual([])
})

test('only config.ts reads the environment', () => {
  const programs = offenders(({ path, text }) =>
    roomOf(path) === 'entry' ? (text.match(/process\.env(?!,)/g) ?? []) : [],
  )
  expect(programs).toEqual([])
})

test('SQL is only in .sql.ts files, in the database room, and in files for one statement', () => {
  const statement =
    /[`'](?:select|insert into|update \w+ set|delete from|copy|with \w+ as|begin|set local|create|alter)\s[^`']*/g
  const elsewhere = offenders(({ path, text }) =>
    path.endsWith('.sql.ts') || roomOf(path) === 'db' ? [] : (withoutComments(text).match(statement) ?? []),
  )
  expect(elsewhere.filter((line) => !statementsInPlace.some((path) => line.startsWith(path)))).toEqual([])
})

test.each(['src', 'test', 'bench', 'examples', 'package'])(
  'a file of %s has one subject: at most 400 lines',
  (folder) => {
    // A file ends with a line break.
    const tooLong = ({ path, text }: SourceFile) => {
      if (folder === 'src' && generated.includes(path)) return []
      const lines = text.split('\n').length - 1
      return lines > 400 ? [`${lines} lines`] : []
    }
    const walked = filesIn(resolve(source, '..', folder))
    expect(walked).not.toEqual([])
    expect(offenders(tooLong, walked)).toEqual([])
  },
)

test.each(['src', 'test', 'bench'])(
  'a folder of %s has one topic: at most twelve files of its own',
  (folder) => {
    const counts = new Map<string, number>()
    // Entry points have no folder of their own.
    const isEntry = (path: string) => folder === 'src' && entries.includes(path)
    for (const { path } of filesIn(resolve(source, '..', folder)).filter(({ path }) => !isEntry(path)))
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
  const tests = resolve(source, '../test')
  const foreign = (path: string) => path === 'node:child_process' || path.includes('/support/servers/')
  const units = filesIn(tests).filter(({ path }) => path.endsWith('.unit.test.ts'))
  expect(units.length).toBeGreaterThan(10)
  expect(offenders(({ path }) => [...reach(join(tests, path))].filter(foreign), units)).toEqual([])
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
