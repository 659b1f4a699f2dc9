/** Lists and numbers of the documents agree with the code that they describe. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from '@hono/zod-openapi'
import { expect, test } from 'vitest'
import { pythonContract, pythonContractFile } from '../docs/python-contract.ts'
import { ledgerTables } from '../packages/contract/src/ledger-tables.ts'
import { limits, readConfig } from '../src/config.ts'
import { kinds } from '../src/events/kinds.ts'
import { blocksText } from '../src/exports/blocks/block.ts'
import { fileFormatNames } from '../src/formats/file-formats.ts'
import { flatColumns } from '../src/formats/flat/columns.ts'
import { sourceCodes } from '../src/formats/items/entry.ts'
import { JsonNumber } from '../src/formats/minor-units.ts'
import { routes } from '../src/http/app.ts'
import { ChangesLine } from '../src/http/schemas/changes-schema.ts'
import { openApiDocument } from '../src/http/schemas/openapi.ts'
import { readFixture } from './support/fixtures/fixture-files.ts'

const root = join(import.meta.dirname, '..')
const read = (page: string) => readFileSync(join(root, page), 'utf8')

/** The text below a heading, up to the next one. */
function sectionOf(page: string, heading: string): string {
  const [, section] = read(page).split(new RegExp(`^#+ ${heading}\n`, 'm'))
  expect(section, `${page} has no section ${heading}`).toBeDefined()
  return section!.split(/^#/m)[0]!
}

/** The cells of each row of the section's tables, without their heads. */
function rowsOf(page: string, heading: string): string[][] {
  const tables = sectionOf(page, heading).matchAll(/^\|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)
  const rows = [...tables].flatMap(([, lines]) => lines!.trim().split('\n'))
  return rows.map((row) =>
    row
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
}

const quoted = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text!)
const firstQuoted = (page: string, heading: string) => rowsOf(page, heading).flatMap(([cell]) => quoted(cell))

const wordsIn = (text: string): string[] => text.match(/\w+/g) ?? []

interface Schema {
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

const ownFields = ({ properties = {}, anyOf = [] }: Schema): string[] => [
  ...Object.keys(properties),
  ...anyOf.flatMap(ownFields),
]

const allFields = (schema: Schema): string[] => [
  ...ownFields(schema),
  ...[...Object.values(schema.properties ?? {}), ...(schema.anyOf ?? []), schema.items ?? []]
    .flat()
    .flatMap(allFields),
]

test('the specification lists exactly the kinds of events, with their operations and data', () => {
  const rows = rowsOf('docs/spec/webhooks.md', 'Events')
  expect(rows.map(([kind, operations]) => `${quoted(kind)}: ${operations}`)).toEqual(
    Object.entries(kinds).map(([kind, operations]) => `${kind}: ${Object.keys(operations).join(', ')}`),
  )
  const schemas = Object.values(kinds).map((operations) => Object.values(operations))
  for (const [i, [kind, , data]] of rows.entries())
    for (const field of schemas[i]!.flatMap((schema) => allFields(z.toJSONSchema(schema) as Schema)))
      expect(wordsIn(data!), `${kind} ${field}`).toContain(field)
})

/** `POST`, `GET /a/b` are two methods of one path; `GET /a/b`, `c` are two paths. */
function routesIn(page: string): string[] {
  return rowsOf(page, 'Routes').flatMap(([cell]) => {
    const named = quoted(cell)
    const paths = named.flatMap((text) => /\/.*/.exec(text) ?? [])
    const last = paths.at(-1)!
    return named.flatMap((text) => {
      if (/^[A-Z]+$/.test(text)) return [`${text} ${last}`]
      return [text.startsWith('/') || text.includes(' ') ? text : `GET ${last.replace(/[^/]+$/, text)}`]
    })
  })
}

test('the specification lists exactly the routes', () => {
  const served = routes.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted()
  const listed = routesIn('docs/spec/interface.md').filter(
    (route) => !/^GET \/(?:files|docs|llms)\b/.test(route),
  )
  expect(listed.toSorted()).toEqual(served)
  const ofWebhooks = served.filter((route) => route.includes('/webhook'))
  expect(routesIn('docs/spec/webhooks.md').toSorted()).toEqual(ofWebhooks)
})

test('the page on versions lists everything that is deprecated', () => {
  const deprecated = routes.filter((route) => route.deprecated).map(({ path }) => path)
  expect(firstQuoted('docs/versions.md', 'Deprecated now')).toEqual(deprecated)
})

test('the page of questions quotes messages that the code has, and each answer has a link', () => {
  const page = read('docs/questions.md')
  const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading!)
  const rows = headings.flatMap((heading) => rowsOf('docs/questions.md', heading))
  expect(rows.length).toBeGreaterThan(45)
  expect(rows.filter(([, answer]) => !/\]\([^)]+\)/.test(answer!))).toEqual([])
  const code = ['src', 'packages'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.includes('node_modules'))
      .map((path) => read(join(folder, path))),
  )
  const quotes = rows.flatMap(([question]) =>
    [...question!.matchAll(/"([^"]+)"/g)].map(([, words]) => words!),
  )
  expect(quotes.length).toBeGreaterThan(4)
  expect(quotes.filter((words) => !code.some((text) => text.includes(words)))).toEqual([])
})

/** Without accountingFolderId, which all routes of a folder take (docs/spec/interface.md#folder-of-a-request). */
const parametersOf = (path: string) =>
  Object.keys(routes.find((route) => route.path === `/api/v1/mad/${path}`)!.query.shape)
    .filter((name) => name !== 'accountingFolderId')
    .toSorted()

test('the specification lists exactly the parameters of the exports', () => {
  const listed = (heading: string) => firstQuoted('docs/spec/exports.md', heading).toSorted()
  expect(listed('Movements')).toEqual(parametersOf('movements'))
  expect(listed('Full exports')).toEqual(parametersOf('all'))
  const [, notOfBlocks] = /without (.*?), which/s.exec(sectionOf('docs/spec/changes.md', 'Blocks'))!
  expect(listed('Movements').filter((name) => !quoted(notOfBlocks).includes(name))).toEqual(
    parametersOf('movements/blocks'),
  )
  const [, without] = /without (.*?), plus:/s.exec(sectionOf('docs/spec/exports.md', 'Entries'))!
  const ofMovements = listed('Movements').filter((name) => !quoted(without).includes(name))
  expect([...new Set([...ofMovements, ...listed('Entries')])].toSorted()).toEqual(parametersOf('entries'))
  expect(listed('One entry')).toEqual(parametersOf('entry'))
  expect(listed('Balance')).toEqual(parametersOf('balance'))
})

test('the specification lists the columns of flat files, with their types and contents', () => {
  // The page has links where the declaration has names.
  const rows = rowsOf('docs/spec/exports.md', 'CSV and Parquet files').map((cells) =>
    cells.map((cell) => cell.replace(/`|\[([^\]]+)\]\([^)]+\)/g, '$1')),
  )
  expect(rows).toEqual(flatColumns.map(({ name, type, description }) => [name, type, description]))
})

test.each(Object.entries(ledgerTables))(
  'the specification lists the columns of the table %s',
  (table, { columns }) => {
    expect(rowsOf('docs/spec/ledgers.md', table)).toEqual(
      columns.map(({ name, type, description }) => [`\`${name}\``, `\`${type}\``, description]),
    )
  },
)

test('the specification lists exactly the formats of files and the source codes', () => {
  const row = rowsOf('docs/spec/exports.md', 'Full exports').find(([name]) => name === '`format`')!
  expect(quoted(row[1]!.split('.')[0])).toEqual(fileFormatNames)
  expect(quoted(sectionOf('docs/spec/resources.md', 'Source codes'))).toEqual(sourceCodes)
})

/** The schema of one item of each route, with the name of the route. Routes of many ledgers have a page of their own. */
const itemSchemas = routes.flatMap(({ path, answers }) => {
  if (path.startsWith('/api/v1/mad/ledgers')) return []
  const answer = answers[200]
  const line = answer && 'content' in answer ? answer.content?.['application/x-ndjson'] : undefined
  if (!line || !('schema' in line)) return []
  const union = line.schema instanceof z.ZodUnion ? line.schema.options : []
  const schema = union.includes(ChangesLine) ? union[0] : line.schema
  return [{ name: path.split('/').at(-1)!, schema: schema as z.ZodType }]
})

const linesOf = (fixture: string): unknown[] =>
  readFixture(fixture)
    .toString('utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

test.each(itemSchemas.filter(({ name }) => name !== 'society'))(
  'the document of the API has the fields of $name, in their order',
  ({ name, schema }) => {
    const { data } = JSON.parse(readFixture('ledger.mad.json').toString('utf8'))
    const own: Record<string, unknown[]> = {
      entry: data.entries,
      blocks: JSON.parse(blocksText([{ first: 0, rows: 2, sha256: 'a'.repeat(64) }], 'json')),
    }
    const items = own[name] ?? (data[name] ? [data[name]].flat() : linesOf(`${name}.ndjson`))
    expect(items).not.toEqual([])
    // A schema drops fields that it does not have, and puts the others into its own order.
    const hasExactNumbers = [
      'movements',
      'entries',
      'entry',
      'balance',
      'accountingFolder',
      'accounts',
      'exercices',
      'vats',
    ].includes(name)
    for (const item of items)
      if (hasExactNumbers)
        expect(fieldsIn(schema.parse(withExactNumbers(item)))).toEqual(fieldsIn(withExactNumbers(item)))
      else expect(JSON.stringify(schema.parse(item))).toBe(JSON.stringify(item))
  },
)

/** Replaces numbers by exact ones, which the schemas of a MAD file take. */
function withExactNumbers(item: unknown): unknown {
  return JSON.parse(JSON.stringify(item), (_, value) =>
    typeof value === 'number' ? new JsonNumber(String(value)) : value,
  )
}

/** The fields in their order, with their values. Numbers are left out, because schemas turn them into units. */
function fieldsIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fieldsIn)
  if (typeof value === 'bigint' || value instanceof JsonNumber) return 'a number'
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value).map(([name, inner]) => [name, fieldsIn(inner)])
}

test('the collections in the specification are the same as in the routes', () => {
  const own = ['movements', 'blocks', 'entries', 'entry', 'balance', 'society']
  const listed = quoted(sectionOf('docs/spec/exports.md', 'Collections').split(/only parameters/)[0]).slice(1)
  expect(listed.toSorted()).toEqual(
    itemSchemas
      .map(({ name }) => name)
      .filter((name) => !own.includes(name))
      .toSorted(),
  )
})

const components = (openApiDocument(routes).components?.schemas ?? {}) as Record<string, Schema>
const itemNames = new Set(itemSchemas.map(({ schema }) => String(schema.meta()?.['id'])))
const resources = [...itemNames]
  .map((name) => ({ name, schema: inFull(components[name]!) }))
  .filter(({ name }) => read('docs/spec/resources.md').includes(`\n## ${name}\n`))

/** Puts the schemas that a schema refers to in the place of the references. */
function inFull({ $ref, ...schema }: Schema & { $ref?: string }): Schema {
  if ($ref) return inFull(components[$ref.replace('#/components/schemas/', '')]!)
  return JSON.parse(JSON.stringify(schema), (_, value) => (value?.$ref ? inFull(value) : value))
}

test('the specification has a section for the items of each route', () => {
  expect(resources).toHaveLength(itemNames.size)
  expect(itemNames.size).toBeGreaterThan(12)
})

test.each(resources)('the specification names exactly the fields of $name', ({ name, schema }) => {
  const section = sectionOf('docs/spec/resources.md', name)
  expect(ownFields(schema).filter((field) => !wordsIn(section).includes(field))).toEqual([])
  // Fields that several resources share have a section of their own, such as Address.
  const page = wordsIn(read('docs/spec/resources.md'))
  expect(allFields(schema).filter((field) => !page.includes(field))).toEqual([])
  const tables = section.matchAll(/^\| (?:Field|company|employee) \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)
  const cells = [...tables].flatMap(([, rows]) => rows!.match(/^\| [^|(]+/gm)!)
  expect(cells).not.toEqual([])
  expect(cells.flatMap(wordsIn).filter((field) => !allFields(schema).includes(field))).toEqual([])
})

test('the README lists every setting, with its default', () => {
  const asked = new Set<string>()
  const required = {
    MASTER_KEY: 'ab'.repeat(32),
    S3_ENDPOINT: 'https://s3.test',
    S3_BUCKET: 'exports',
    S3_ACCESS_KEY: 'key',
    S3_SECRET_KEY: 'secret',
  }
  const recording = (env: NodeJS.ProcessEnv) =>
    new Proxy(env, {
      get: (settings, name: string) => {
        asked.add(name)
        return settings[name]
      },
    })
  const config = readConfig(recording(required))
  const rows = rowsOf('README.md', 'Settings')
  expect(rows.flatMap(([names]) => quoted(names)).toSorted()).toEqual([...asked].toSorted())
  const defaults = rows.filter(([, value]) => /^`[^`]+`$/.test(value!))
  expect(defaults.length).toBeGreaterThan(8)
  for (const [name, value] of defaults)
    expect(readConfig({ ...required, [quoted(name)[0]!]: quoted(value)[0] }), name).toEqual(config)
})

const { auditRetentionMonths, changesRetentionDays, fileRetentionDays, rateLimit, webhookSubscriptionsMax } =
  readConfig({})
const day = 24 * 3_600_000

/** How long this number of requests takes within the rate limit. */
const secondsOfRequests = (count: number) => (count / rateLimit.requests) * (rateLimit.windowMs / 1000)

/** The result of a recorded run. */
const resultOf = (name: string) => JSON.parse(read(`bench/results/${name}.json`))

/** Of all recorded failovers. */
function secondsWithoutWrites(): string {
  const { failovers } = resultOf('failovers')
  const seconds = failovers.map((each: { secondsWithoutWrites: number }) => each.secondsWithoutWrites)
  return `${Math.min(...seconds)} to ${Math.max(...seconds)}`
}

test.each([
  ['docs/operators.md', /deliveries are kept for (\d+) days/, limits.eventRetentionDays],
  ['docs/operators.md', /holds up to (\d+) events/, limits.deliveryEventsMax],
  ['docs/operators.md', /may create (\d+) subscriptions/, webhookSubscriptionsMax],
  ['docs/operators.md', /serves (\d+) subscriptions at/, limits.deliveriesAtOnceMax],
  [
    'docs/spec/webhooks.md',
    /A process holds ([\d,]+) of them/,
    limits.waitingRequestsMax.toLocaleString('en'),
  ],
  ['docs/spec/webhooks.md', /more than (\d+) MiB/, limits.eventPageBytesMax / 1024 ** 2],
  ['docs/errors.md', /more than (\d+) days ago and was deleted/, limits.eventRetentionDays],
  ['docs/operators.md', /parts of (\d+) MiB/, limits.storePartBytes / 1024 ** 2],
  ['docs/guides/year-every-night.md', /kept for (\d+) days by default/, fileRetentionDays],
  ['docs/errors.md', /retention period \((\d+) days by default\)/, fileRetentionDays],
  ['docs/spec/exports.md', /kept for (\d+) days by default/, fileRetentionDays],
  ['docs/spec/changes.md', /remembered for (\d+) days/, changesRetentionDays],
  ['docs/operators.md', /forgotten after (\d+) days/, changesRetentionDays],
  ['docs/spec/changes.md', /last (\d+) full days/, limits.changesExactDays],
  ['docs/spec/exports.md', /and (\d+) days later 404/, limits.expiredDays],
  ['docs/spec/exports.md', /has the first (\d+) of their ids/, limits.ambiguousEntriesMax],
  ['docs/errors.md', /lists the first (\d+) of them/, limits.ambiguousEntriesMax],
  ['docs/spec/interface.md', /by default (\d+) in a window/, rateLimit.requests],
  ['docs/spec/interface.md', /in a window of (\d+) seconds/, rateLimit.windowMs / 1000],
  ['docs/spec/interface.md', /one folder \| by default (\d+)/, rateLimit.concurrent],
  ['docs/spec/interface.md', /in one process \| (\d+)/, limits.exportQueueMax],
  ['docs/spec/interface.md', /URL \| (\d+) KiB/, limits.urlBytesMax / 1024],
  ['docs/spec/interface.md', /body \| (\d+) KiB/, limits.bodyBytesMax / 1024],
  ['docs/spec/webhooks.md', /deliveries are kept for (\d+) days/, limits.eventRetentionDays],
  ['docs/spec/webhooks.md', /can create (\d+) subscriptions/, webhookSubscriptionsMax],
  ['docs/spec/webhooks.md', /signs for (\d+) hours beside/, limits.signingSecretKeptMs / 3_600_000],
  ['docs/spec/webhooks.md', /At most (four) secrets/, limits.signingSecretsMax === 4 ? 'four' : ''],
  ['docs/spec/webhooks.md', /the newest (\d+): number/, limits.shownAttemptsMax],
  ['docs/spec/webhooks.md', /the first (1,024) bytes/, limits.shownAnswerBytes.toLocaleString('en')],
  ['docs/spec/webhooks.md', /At most (1,000) numbers/, limits.replayedEventsMax.toLocaleString('en')],
  ['docs/spec/webhooks.md', /(\d+) replayed deliveries of the subscription wait/, limits.pendingReplaysMax],
  ['docs/spec/webhooks.md', /second one within a (second)/, limits.pingEveryMs === 1_000 ? 'second' : ''],
  ['docs/guides/webhooks.md', /both sign for (\d+) hours/, limits.signingSecretKeptMs / 3_600_000],
  ['docs/operators/audit.md', /up to ([\d,]+) rows wait/, limits.auditRowsMax.toLocaleString('en')],
  ['docs/guides/sizes.md', /in 10 seconds \| (\d+)/, rateLimit.requests],
  ['docs/guides/sizes.md', /of one token in (\d+) seconds/, rateLimit.windowMs / 1000],
  ['docs/guides/sizes.md', /for one folder \| (\d+)/, rateLimit.concurrent],
  ['docs/guides/sizes.md', /ledgers at once \| (\d+)/, limits.ledgersAtOnceMax],
  ['docs/guides/sizes.md', /in a body of (\d+) MiB/, limits.largeBody.bytesMax / 1024 ** 2],
  ['docs/guides/sizes.md', /in a schema \| (\d+)/, webhookSubscriptionsMax],
  ['docs/guides/sizes.md', /kept for (\d+) days by default/, fileRetentionDays],
  ['docs/guides/sizes.md', /300 folders takes (\d+) seconds/, secondsOfRequests(300)],
  ['docs/guides/sizes.md', /3,000 folders (\d+) minutes/, secondsOfRequests(3_000) / 60],
  ['docs/guides/consent.md', /kept for (\d+) months/, auditRetentionMonths],
  ['docs/guides/availability.md', /good for \[(\d+) days\]/, changesRetentionDays],
  ['docs/guides/availability.md', /events are kept for (\d+)\./, limits.eventRetentionDays],
  ['docs/guides/availability.md', /(\d+) restarts under/, resultOf('restarts').restarts],
  ['docs/guides/availability.md', /(\d+) failovers of eight/, resultOf('failovers').count],
  ['docs/guides/availability.md', /changed for ([\d.]+ to [\d.]+) seconds/, secondsWithoutWrites()],
  [
    'docs/spec/webhooks.md',
    /by (five) days without/,
    limits.subscriptionFailingMsMax === 5 * day ? 'five' : '',
  ],
])('on the page %s, the number in %s equals that in the code', (page, pattern, number) => {
  const [, found] = pattern.exec(read(page).replaceAll('\n', ' ')) ?? []
  expect(found).toBe(String(number))
})

test('the package for Python has the same error remedies and tables as the service (npm run docs -- python)', () => {
  expect(readFileSync(pythonContractFile, 'utf8')).toBe(pythonContract())
})
