/** The report of the package's API, and the changelog, which names what changed in it. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  apiReport,
  declarationsIn,
  files,
  type ReleasedApi,
  readManifest,
  unnamedChanges,
} from '../../package/api-report.ts'
import { checkout } from '../support/package/copy.ts'
import { tools } from '../support/package/runtimes.ts'

const textOf = (path: string) => readFile(path, 'utf8')
const released = async (): Promise<ReleasedApi> => JSON.parse(await textOf(files.released))

/** @returns the section Unreleased, and the newest released version */
async function changelog(): Promise<{ unreleased: string; newest: string }> {
  const [, unreleased, newest] = /^## \[Unreleased\]\n([\s\S]*?)^## \[(.*?)\]/m.exec(
    await textOf(join(checkout, 'CHANGELOG.md')),
  )!
  return { unreleased: unreleased!, newest: newest! }
}

test.skipIf(!existsSync(tools.apiExtractor))(
  'the API report matches the sources; if not: npm run docs -- package',
  async () => {
    expect(await apiReport()).toBe(await textOf(files.report))
  },
)

test('the changelog names in backticks every change of the API since the last release', async () => {
  const { exports } = await readManifest()
  const entryPoints = Object.entries(exports)
    .filter(([, path]) => path.endsWith('.ts'))
    .map(([name]) => name.replace('.', 'grandlivre'))
  const { unreleased } = await changelog()
  const unnamed = unnamedChanges(await released(), {
    report: await textOf(files.report),
    entryPoints,
    unreleased,
  })
  expect(
    unnamed,
    'Describe under Unreleased what this means for partners, with these names in backticks',
  ).toEqual([])
})

test('the stored API is that of the newest release; if not: npm run docs -- package --released', async () => {
  expect((await released()).version).toBe((await changelog()).newest)
})

describe('the changelog has to name', () => {
  const reportOf = (...declarations: string[]) =>
    `\`\`\`ts\n\n${declarations.map((each) => `// @public\n${each}\n`).join('\n')}\n\`\`\`\n`
  const before = reportOf(
    'class Ledger {\n    close(): void;\n}',
    'type Wait_2 = number;',
    'declare namespace sync {\n    export {\n        Options as SyncOptions\n    }\n}',
    'interface Options {\n    again: boolean;\n}',
    'function read(text: string): void;',
    'function read(text: string, from: number): void;',
  )
  const unnamed = (report: string, unreleased: string) =>
    unnamedChanges(
      { version: '1.0.0', declarations: declarationsIn(before) },
      { report, entryPoints: ['grandlivre', 'grandlivre/sync'], unreleased },
    )

  test('nothing if nothing changed', () => {
    expect(unnamed(before, '')).toEqual([])
  })

  test('an added, changed or removed declaration by its public name', () => {
    expect(unnamed(before.replace('close(): void', 'close(): Promise<void>'), '')).toEqual(['Ledger'])
    expect(unnamed(before.replace('type Wait_2 = number;', ''), '')).toEqual(['Wait'])
    expect(unnamed(before.replace('again', 'all'), '')).toEqual(['SyncOptions'])
    expect(unnamed(before.replace('from: number', 'from?: number'), '')).toEqual(['read'])
    const added = before.replace('// @public\n', '// @public\ntype Kind = string;\n\n// @public\n')
    expect(unnamed(added, '')).toEqual(['Kind'])
  })

  test('a declaration in backticks, alone or before a member', () => {
    const changed = before.replace('close(): void', 'close(): Promise<void>')
    for (const line of ['`Ledger` closes later', 'wait for `Ledger.close()`'])
      expect(unnamed(changed, line)).toEqual([])
    for (const line of ['Ledger closes later', '`Ledgers` close', '`close()` of a ledger'])
      expect(unnamed(changed, line)).toEqual(['Ledger'])
  })

  test('only the entry points of a new package', () => {
    const none = { version: '1.0.0', declarations: {} }
    const entryPoints = ['grandlivre', 'grandlivre/sync']
    const named = (unreleased: string) => unnamedChanges(none, { report: before, entryPoints, unreleased })
    expect(named('`grandlivre`')).toEqual(['grandlivre/sync'])
    expect(named('`grandlivre/sync`')).toEqual(['grandlivre'])
  })
})
