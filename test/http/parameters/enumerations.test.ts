/** Enumerated values of parameters are read in any letter case: one answer, one ETag, one export. */
import { beforeAll, expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import { type Answer, request } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)
let subscriptionId: number

beforeAll(async () => {
  const made = await fetch(`${stage.service.url}/api/v1/webhook`, {
    method: 'POST',
    headers: { ...stage.company, 'Content-Type': 'application/json' },
    body: JSON.stringify({ postUrl: null, onEvents: ['document'] }),
  })
  subscriptionId = ((await made.json()) as { id: number }).id
})

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  schema: { enum?: string[] }
}

const year = 'idExercice=12'
const period = 'startDate=2024-09-01&endDate=2024-09-30'

/** The further query of a request with each enumerated parameter of the document. New parameters are added here. */
const others: Record<string, (value: string) => string> = {
  '/api/v1/key/info mode': () => '',
  '/api/v1/mad/movements dateFilter': () => period,
  '/api/v1/mad/movements source': () => year,
  '/api/v1/mad/movements lettering': () => year,
  '/api/v1/mad/movements/blocks dateFilter': () => period,
  '/api/v1/mad/movements/blocks source': () => year,
  '/api/v1/mad/movements/blocks lettering': () => year,
  '/api/v1/mad/entries dateFilter': () => period,
  '/api/v1/mad/entries source': () => year,
  '/api/v1/mad/entries columns': () => year,
  '/api/v1/mad/all format': (format) => (format === 'FEC' ? year : ''),
  '/api/v1/mad/all compression': () => 'format=TRA',
  '/api/v1/mad/all encoding': () => `format=FEC&${year}`,
  '/api/v1/mad/all columns': () => `format=FEC&${year}`,
  '/api/v1/webhook/event/{name} name': () => '',
  '/api/v1/webhook/event/{name}/{accountingFolderId} name': () => '',
  '/api/v1/webhook/{id}/deliveries state': () => '',
  '/api/v1/webhook/{id}/deliveries newest': () => '',
}

const mixed = (word: string) =>
  [...word].map((letter, at) => (at % 2 ? letter.toUpperCase() : letter.toLowerCase())).join('')

/** The parts of an answer that are equal for equal requests. */
const shown = ({ status, headers, body }: Answer) => [
  status,
  headers.get('etag'),
  body.id ?? JSON.stringify(body.error?.code ?? body),
]

test('the document lists the words that each parameter accepts, which may be sent in any letter case', async () => {
  const { body: document } = await request(`${stage.service.url}/api/v1/openapi.json`)
  const operations = Object.entries<Record<string, { parameters?: Parameter[] }>>(document.paths)
  const enumerated = operations.flatMap(([path, methods]) =>
    Object.values(methods)
      .flatMap(({ parameters = [] }) => parameters)
      .filter(({ name, schema }) => schema.enum && name !== 'version')
      .map((parameter) => ({ path, ...parameter })),
  )
  expect(enumerated.map(({ path, name }) => `${path} ${name}`).sort()).toEqual(Object.keys(others).sort())
  for (const { path, name, in: place, schema } of enumerated)
    for (const word of new Set([schema.enum![0]!, schema.enum!.at(-1)!])) {
      const ask = async (value: string) => {
        const filled = path
          .replace(`{${place === 'path' ? name : ''}}`, value)
          .replace('{id}', String(subscriptionId))
          .replace('{accountingFolderId}', '111')
        const version = path.includes('/mad/') ? 'version=1.0.0' : ''
        const own = place === 'query' ? `${name}=${value}` : ''
        const query = [version, others[`${path} ${name}`]!(word), own].filter(Boolean).join('&')
        return shown(await request(`${stage.service.url}${filled}?${query}`, stage.company))
      }
      const canonical = await ask(word)
      expect(canonical[0], `${path} ${name}=${word}`).toBe(200)
      const other = mixed(word)
      expect(await ask(other), `${path} ${name}=${other}`).toEqual(canonical)
    }
})
