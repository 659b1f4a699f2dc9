/** Runs every command and program of the guide on generated clients against a service. */
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { clientTools, missingTools } from '../../support/document/clients.ts'
import { forTests } from '../../support/for-tests.ts'
import { isOutput, stepsOf } from '../../support/guides/blocks.ts'
import { startShell } from '../../support/guides/shell.ts'
import { setSampleStage } from '../../support/stages/sample-stage.ts'

const root = resolve(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'docs/guides/generated-clients.md'), 'utf8')
const [introduction = '', ...parts] = page.split(/^## /m)

/** The programs that each part of the guide needs, by its heading. */
const needs: Record<string, string[]> = {
  'TypeScript: openapi-typescript': ['openapi-typescript', 'tsc'],
  'Python: openapi-python-client': ['python3', 'openapi-python-client'],
  'Python: datamodel-code-generator': ['python3', 'datamodel-codegen'],
  'Go: oapi-codegen': ['go', 'oapi-codegen'],
  'Java: openapi-generator': ['java', 'javac', 'mvn'],
}

/** Maven alone took 86 seconds while twenty other programs used the processor. */
const minutes = { timeout: 600_000 }

const stage = forTests(() => setSampleStage(4_000))

const filled = (text: string) =>
  text
    .replace('https://ledger.example.com', stage.url)
    .replace('glv_api_...', stage.credentials.companyToken)
    .replace('glv_secret_...', stage.credentials.thirdPartySecret)

/** Replaces the command of the guide that installs the packages of npm. */
const linkPackages = (folder: string) =>
  symlink(join(root, '.cache/clients/npm/node_modules'), join(folder, 'node_modules'))

test('each part of the guide is run by a test', () => {
  expect(parts.map((part) => part.split('\n', 1)[0])).toEqual(Object.keys(needs))
})

test('the guide names the versions of the generators that the tests run', () => {
  const pinned = (name: string) =>
    readFileSync(join(import.meta.dirname, 'clients', name), 'utf8')
      .split('\n')
      .filter(Boolean)
  const { dependencies } = JSON.parse(pinned('package.json').join('\n'))
  const named = [
    `openapi-typescript@${dependencies['openapi-typescript']}`,
    `typescript@${dependencies.typescript}`,
    ...pinned('requirements.txt'),
    ...pinned('go.txt').filter((tool) => tool.includes('oapi-codegen')),
  ]
  expect(named.length).toBe(5)
  for (const tool of named) expect(page).toContain(tool)
})

for (const part of parts) {
  const [heading = ''] = part.split('\n', 1)
  const missing = missingTools(...(needs[heading] ?? []))
  test.skipIf(missing.length > 0)(heading, minutes, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'grandlivre-client-'))
    await linkPackages(folder)
    await writeFile(join(folder, 'package.json'), '{}')
    const shell = startShell(folder, clientTools)
    let printed = () => ''
    let outputs = 0
    try {
      for (const step of [...stepsOf(introduction), ...stepsOf(part)])
        if (step.kind === 'file') writeFileSync(join(folder, step.name), step.text)
        else if (step.kind === 'run') printed = await shell.run(filled(step.text))
        else if (step.kind === 'output') {
          outputs += 1
          // Maven writes codes of colours even into redirected output.
          const shown = stripVTControlCharacters(printed())
          expect(isOutput(shown, step.text), `${shown}\n--- instead of\n${step.text}`).toBe(true)
        }
      expect(outputs).toBe(1)
    } finally {
      await shell.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
}
