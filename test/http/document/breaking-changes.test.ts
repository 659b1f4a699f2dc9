/**
 * The changelog must have a point for each change of the document that breaks clients of the last release. The point names
 * the operation and the field in backquotes. `fixtures/api/` has the document of the last release (CONTRIBUTING.md#release).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { routes } from '../../../src/http/app.ts'
import { openApiDocument } from '../../../src/http/schemas/openapi.ts'
import { breakingChanges, unaccounted } from '../../support/document/breaking-changes.ts'
import { missingTools } from '../../support/document/clients.ts'

const root = resolve(import.meta.dirname, '../../..')
const files = readdirSync(resolve(root, 'fixtures/api'))
const released = files[0]!.replace('.json', '')
const read = (path: string) => readFileSync(resolve(root, path), 'utf8')
const before = JSON.parse(read(`fixtures/api/${released}.json`))
// biome-ignore lint/suspicious/noExplicitAny: a JSON document
const now = (): any => JSON.parse(JSON.stringify(openApiDocument(routes)))

const missing = missingTools('oasdiff')

describe.skipIf(missing.length > 0)('what breaks clients of the last release', () => {
  test('is listed in the changelog', async () => {
    expect(files).toHaveLength(1)
    const silent = unaccounted(await breakingChanges(before, now()), read('CHANGELOG.md'), released)
    const told = silent.map(({ name, field, text }) => `${name}, ${field ?? 'as a whole'}: ${text}`)
    expect(told, 'A point of CHANGELOG.md has to name each operation and field in backquotes').toEqual([])
  })

  test('is reported by operation and field', async () => {
    const changed = now()
    delete changed.paths['/api/v1/mad/vats']
    changed.paths['/api/v1/mad/banks'].get.operationId = 'getBanks'
    changed.components.schemas.Rib = changed.components.schemas.BankProperties
    changed.components.schemas.Bank.properties.additionalProducerProperties.$ref = '#/components/schemas/Rib'
    delete changed.components.schemas.BankProperties
    changed.components.schemas.Society.properties.name.type = 'integer'
    changed.components.schemas.SubscriptionFields.required.push('accountingFolderId')
    changed.components.schemas.ConnectorData.properties.code = undefined
    const { parameters } = changed.paths['/api/v1/mad/entry'].get
    parameters.find(({ name }: { name: string }) => name === 'draft').required = true
    const found = await breakingChanges(now(), changed)
    const named = new Set(found.map(({ name, field }) => `${name} ${field}`))
    expect([...named].toSorted()).toEqual([
      'BankProperties undefined',
      'createSubscription accountingFolderId',
      'getEntry draft',
      'listBanks undefined',
      'listEvents code',
      'listSocieties name',
      'listVatCodes undefined',
      'receiveEvents code',
      'replaceSubscription accountingFolderId',
    ])
  })

  test('does not include another notation of the same schema', async () => {
    const { schemas } = now().components
    const other = now()
    other.components.schemas.Bank.properties.account = {
      ...schemas.SimplifiedAccount,
      type: ['object', 'null'],
    }
    expect(await breakingChanges(other, now())).toEqual([])
    expect(await breakingChanges(now(), other)).toEqual([])
  })
})

test('a point of the changelog above the release must name both the operation and the field of a change', () => {
  const change = { name: 'listBanks', field: 'IBAN', text: '' }
  const whole = { ...change, field: undefined }
  const changelog = (above: string, below = '') =>
    `# Changelog\n\n${above}\n\n## [0.1.0] - today\n\n${below}\n`
  const left = (above: string, below?: string) =>
    unaccounted([change, whole], changelog(above, below), '0.1.0').map(({ field }) => field)
  expect(left('- `IBAN` may be null in\n  `listBanks`.')).toEqual([])
  expect(left('- `listBanks` has changed.')).toEqual(['IBAN'])
  expect(left('- `IBAN` may be null.\n- `listBanks` has changed.')).toEqual(['IBAN'])
  expect(left('- For clients:\n  - `IBAN` may be null.\n  - `listBanks` has changed.')).toEqual(['IBAN'])
  expect(left('- IBAN of listBanks')).toEqual(['IBAN', undefined])
  expect(left('', '- `IBAN` may be null in `listBanks`.')).toEqual(['IBAN', undefined])
  expect(() => unaccounted([], '# Changelog', '0.1.0')).toThrow('The changelog has no section of 0.1.0')
})
