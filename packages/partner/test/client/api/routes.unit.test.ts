import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { apiTypes } from '../../../../../docs/api-types.ts'

test('the types of the client match the OpenAPI document', async () => {
  const written = readFileSync(resolve(import.meta.dirname, '../../../src/client/api/routes.ts'), 'utf8')
  expect(await apiTypes(), 'npm run docs -- api writes it').toBe(written)
})
