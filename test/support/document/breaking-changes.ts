/** What of the API's document breaks clients of an earlier one, and whether the changelog says it. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { clientTools } from './clients.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type JsonObject = { [key: string]: Json }

export interface BreakingChange {
  /** Of the operation, or of a schema that is gone. */
  name: string
  /** The property, parameter or header; undefined for a change of a whole body or operation. */
  field: string | undefined
  /** The sentence of oasdiff. */
  text: string
}

/** The changes that oasdiff calls breaking, each once. @param before the document of clients that exist */
export async function breakingChanges(before: object, now: object): Promise<BreakingChange[]> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-document-'))
  try {
    const [base, revision] = [join(folder, 'before.json'), join(folder, 'now.json')]
    await writeFile(base, JSON.stringify(plain(before as JsonObject)))
    await writeFile(revision, JSON.stringify(plain(now as JsonObject)))
    const levels = join(folder, 'levels.txt')
    // By these, generated clients name their methods and classes.
    await writeFile(levels, 'api-operation-id-removed err\napi-schema-removed err\n')
    const words = [
      'breaking',
      '--flatten-allof',
      '--severity-levels',
      levels,
      '--format',
      'json',
      base,
      revision,
    ]
    const { stdout } = await promisify(execFile)('oasdiff', words, { env: clientTools, maxBuffer: 2 ** 26 })
    const found: { id: string; text: string; operationId?: string; operation?: string; path?: string }[] =
      JSON.parse(stdout)
    // The first says what the others follow from.
    const replaced = new Set(found.filter(({ id }) => /-type-changed$/.test(id)).map(bodyOf))
    return found
      .filter((change) => !/-property-removed$/.test(change.id) || !replaced.has(bodyOf(change)))
      .map(({ operationId, operation, path, text }) => ({
        name: operationId ?? /the schema `(\w+)`/.exec(text)?.[1] ?? `${operation} ${path}`,
        field: fieldIn(text),
        text,
      }))
  } finally {
    await rm(folder, { recursive: true })
  }
}

function bodyOf({ operation, path, text }: { operation?: string; path?: string; text: string }): string {
  const [, mediaType = ''] = /media type: ([^)]+)/.exec(text) ?? []
  return [operation, path, mediaType].join(' ')
}

/** `items/postUrl` is the property `postUrl` of each item. */
function fieldIn(text: string): string | undefined {
  const [, before, after] =
    /`([^`]+)` (?:request|response)(?:'s)? property|(?:property|parameter|header) `([^`]+)`/.exec(text) ?? []
  return (before ?? after)?.split('/').findLast((name) => name !== 'items' && !/^\d+$/.test(name))
}

/**
 * The document in words that oasdiff compares by their meaning: `null` is a type of the schema, not a choice beside it, a
 * constant is a list of one word, and notifications are answers, since it is the service that sends them.
 */
function plain(document: JsonObject): JsonObject {
  const { webhooks = {}, ...others } = document
  const { schemas } = others['components'] as { schemas: JsonObject }
  const written = (node: Json): Json => {
    if (Array.isArray(node)) return node.map(written)
    if (typeof node !== 'object' || node === null) return node
    const { anyOf, const: word, ...own } = node as JsonObject & { anyOf?: JsonObject[] }
    const [known, none, ...more] = anyOf ?? []
    if (known && none?.['type'] === 'null' && more.length === 0) {
      const name = String(known['$ref']).replace('#/components/schemas/', '')
      const schema = written(schemas[name] ?? known) as JsonObject
      const type = [schema['type'] ?? [], 'null'].flat()
      return { ...schema, ...(schema['enum'] ? { enum: [schema['enum'], null].flat() } : {}), type }
    }
    return {
      ...Object.fromEntries(Object.entries(own).map(([key, value]) => [key, written(value)])),
      ...(anyOf ? { anyOf: anyOf.map(written) } : {}),
      ...(word === undefined ? {} : { enum: [word] }),
    }
  }
  const sent = Object.entries(written(webhooks) as Record<string, { post: JsonObject }>).map(
    ([name, { post }]) => [`/${name}`, { get: asAnswer(post) }],
  )
  const { paths, ...rest } = written(others) as JsonObject & { paths: JsonObject }
  return { ...rest, paths: { ...paths, ...Object.fromEntries(sent) } }
}

function asAnswer({ operationId, requestBody, parameters }: JsonObject): JsonObject {
  const headers = (parameters ?? []) as { name: string; schema: Json; required?: Json }[]
  const answer = {
    description: 'What is sent',
    content: (requestBody as JsonObject)['content']!,
    headers: Object.fromEntries(
      headers.map(({ name, schema, required = false }) => [name, { schema, required }]),
    ),
  }
  return { ...(operationId ? { operationId } : {}), responses: { 200: answer } }
}

/**
 * The changes that no point of the changelog names. A point names one if it has the operation and the field, each in
 * backquotes.
 * @param released the version whose clients exist: what stands above its heading has come since
 */
export function unaccounted(
  changes: BreakingChange[],
  changelog: string,
  released: string,
): BreakingChange[] {
  const [since = '', ...older] = changelog.split(`\n## [${released}]`)
  if (older.length !== 1) throw new Error(`The changelog has no section of ${released}`)
  const points = since.split(/\n(?= *- )/)
  const names = (point: string, word: string) => point.includes(`\`${word}\``)
  return changes.filter(
    ({ name, field }) =>
      !points.some((point) => names(point, name) && (field === undefined || names(point, field))),
  )
}
