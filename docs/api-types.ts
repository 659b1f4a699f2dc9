/**
 * Writes packages/partner/src/client/api/routes.ts from the OpenAPI document: the types of the routes and of what they
 * return, and the values of parameters. `npm run docs -- api`. The document becomes one JSON schema, because the
 * library turns schemas into types, not routes. One that does, openapi-typescript, writes 281 KB for these 46, needs
 * TypeScript 5 beside ours, and would leave what a call takes and answers to conditional types.
 */
import { writeFileSync } from 'node:fs'
import { compile, type JSONSchema } from 'json-schema-to-typescript'
import { routes } from '../src/http/app.ts'
import { openApiDocument } from '../src/http/schemas/openapi.ts'

type Schema = JSONSchema & { $ref?: string }

interface Operation {
  summary?: string
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

interface Document {
  components: { schemas: Record<string, Schema> }
  paths: Record<string, Record<string, Operation>>
}

const prefix = '/api/v1'
/** They are read as streams, with their proof: a year in one array does not fit into the memory of every machine. */
const streamed = ['/mad/movements', '/mad/entries']

const head = `/** Written by \`npm run docs -- api\` from the OpenAPI document: edit the routes of the service, not this file. */`

/** The library says of each type where it found it, alone in a comment or at the end of one. */
const remark =
  'This interface was referenced by `Routes`\'s JSON-Schema\n \\* via the `definition` "\\w+"\\.\n'
const remarks = new RegExp(`/\\*\\*\n \\* ${remark} \\*/\n| \\*\n \\* ${remark}`, 'g')

/** The whole file. */
export async function apiTypes(): Promise<string> {
  const document = JSON.parse(JSON.stringify(openApiDocument(routes))) as Document
  const root = {
    title: 'Routes',
    description: `The routes of the service by method and by path after ${prefix}.`,
    ...record(methodsOf(document)),
    $defs: document.components.schemas,
  }
  const schema = JSON.parse(
    JSON.stringify(root).replaceAll('#/components/schemas/', '#/$defs/'),
    (key, value) => {
      if (key === 'description' && typeof value === 'string') return sentence(value)
      return isAnything(value) ? { ...value, tsType: 'unknown' } : value
    },
  )
  const types = await compile(schema, 'Routes', {
    bannerComment: head,
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
    style: { semi: false, singleQuote: true, bracketSpacing: true, printWidth: 110, trailingComma: 'all' },
  })
  return `${types.replaceAll(remarks, '')}\n${queryValues(document)}`
}

/** For command lines, which check and list the values of a parameter. */
function queryValues({ paths }: Document): string {
  const ofRoutes = Object.entries(paths).flatMap(([path, { get }]) => {
    const parameters = get?.parameters?.filter(
      ({ name, in: place }) => place === 'query' && name !== 'version',
    )
    const lines = (parameters ?? []).flatMap(({ name, schema }) =>
      schema.enum ? [`    ${name}: [${schema.enum.map((value) => `'${value}'`).join(', ')}],`] : [],
    )
    return lines.length === 0 ? [] : [`  '${path.slice(prefix.length)}': {`, ...lines, '  },']
  })
  const what = '/** Values of parameters that take one of several, by the path of the GET route. */'
  return [what, 'export const queryValues = {', ...ofRoutes, '} as const', ''].join('\n')
}

/** A schema that says nothing but what it is for. The library would take it for an object. */
function isAnything(value: unknown): value is object {
  const words = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return words.length === 1 && words[0]![0] === 'description' && typeof words[0]![1] === 'string'
}

/** Without the end of a comment, which a text of the document would otherwise be able to write. */
function sentence(text: string): string {
  return text.replaceAll('*/', '* /')
}

function methodsOf({ paths }: Document): Record<string, Schema> {
  const methods: Record<string, Record<string, Schema>> = {}
  for (const [path, operations] of Object.entries(paths)) {
    const short = path.slice(prefix.length)
    if (!path.startsWith(`${prefix}/`) || streamed.includes(short)) continue
    for (const [method, operation] of Object.entries(operations)) {
      methods[method] ??= {}
      methods[method][short] = routeOf(operation)
    }
  }
  return Object.fromEntries(Object.entries(methods).map(([method, routes]) => [method, record(routes)]))
}

/** What a caller gives and gets: parts that a route does not have are left out. */
function routeOf({ summary, parameters = [], requestBody, responses }: Operation): Schema {
  const parametersIn = (place: string) => {
    const found = parameters.filter((parameter) => parameter.in === place)
    // The client adds the version by itself.
    const needed = found.filter(({ name, required }) => required && name !== 'version')
    const named = found.map(({ name, schema, description }) => [name, { ...schema, description }])
    return record(
      Object.fromEntries(named),
      needed.map(({ name }) => name),
    )
  }
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const answer = success?.content?.['application/json']?.schema
  const body = requestBody?.content['application/json']?.schema
  const [path, query] = [parametersIn('path'), parametersIn('query')]
  const parts: Record<string, Schema> = {
    ...(isEmpty(path) ? {} : { path }),
    ...(isEmpty(query) ? {} : { query }),
    ...(body ? { body } : {}),
    answer: answer ?? { type: 'null', description: 'Nothing: the answer has no body' },
  }
  // A query can be left out where each of its parameters can.
  const needed = Object.keys(parts).filter((name) => name !== 'query' || requiredIn(query).length > 0)
  return { ...record(parts, needed), ...(summary ? { description: summary } : {}) }
}

const isEmpty = ({ properties = {} }: Schema) => Object.keys(properties).length === 0
const requiredIn = ({ required }: Schema) => (Array.isArray(required) ? required : [])

/** @param required by default all */
function record(properties: Record<string, Schema>, required = Object.keys(properties)): Schema {
  return { type: 'object', properties, required, additionalProperties: false }
}

if (import.meta.main)
  writeFileSync(new URL('../packages/partner/src/client/api/routes.ts', import.meta.url), await apiTypes())
