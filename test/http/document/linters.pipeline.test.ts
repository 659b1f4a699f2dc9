/** The linters that partners use find nothing in the document, except what their configuration excuses with a reason. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { routes } from '../../../src/http/app.ts'
import { openApiDocument } from '../../../src/http/schemas/openapi.ts'
import { clientTools, missingTools } from '../../support/document/clients.ts'

const configured = (name: string) => join(import.meta.dirname, 'clients', name)

const linters = {
  redocly: ['lint', '--config', configured('redocly.yaml'), '--format', 'json'],
  spectral: ['lint', '--ruleset', configured('spectral.yaml'), '--format', 'json', '--fail-severity', 'hint'],
}

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-document-'))
})

afterAll(() => rm(folder, { recursive: true }))

/** @returns the exit code of the linter, its errors, and the rules that the document breaks */
async function lint(linter: keyof typeof linters, document: object) {
  const file = join(folder, `${linter}.json`)
  await writeFile(file, JSON.stringify(document))
  const child = spawn(linter, [...linters[linter], file], { env: clientTools, cwd: folder })
  const [out, error, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  // Spectral adds a sentence to the JSON if it finds nothing.
  const found = JSON.parse(out.slice(0, Math.max(out.lastIndexOf('}'), out.lastIndexOf(']')) + 1))
  const problems: { ruleId?: string; code?: string }[] = found.problems ?? found
  return { code, error, rules: problems.map((problem) => problem.ruleId ?? problem.code) }
}

describe.each(Object.keys(linters) as (keyof typeof linters)[])('%s', (linter) => {
  const missing = missingTools(linter)

  test.skipIf(missing.length > 0)('finds nothing', async () => {
    const { code, rules } = await lint(linter, openApiDocument(routes))
    expect({ code, rules }).toEqual({ code: 0, rules: [] })
  })

  test.skipIf(missing.length > 0)('would report a nameless operation and a wrong example', async () => {
    const document = JSON.parse(JSON.stringify(openApiDocument(routes)))
    delete document.paths['/readyz'].get.operationId
    document.components.schemas.Block.properties.rows.example = 'many'
    const { code, rules } = await lint(linter, document)
    expect(code).toBe(linter === 'redocly' ? 0 : 1)
    expect(rules.toSorted()).toEqual(
      linter === 'redocly'
        ? ['no-invalid-schema-examples', 'operation-operationId']
        : ['oas3-valid-schema-example', 'operation-operationId'],
    )
  })
})
