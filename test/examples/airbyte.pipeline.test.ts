/** The manifest for Airbyte, read by Airbyte's own program. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forTests } from '../support/for-tests.ts'
import { firmAccess, runProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { exercices } from '../support/ledgers/ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setExportStage } from '../support/stages/export-stage.ts'

describe.skipIf(!isInstalled.airbyte)('examples/airbyte/manifest.yaml', () => {
  const stage = forTests(setExportStage)
  const folder = forTests(() => openFolder('airbyte'))

  async function save(name: string, value: unknown): Promise<string> {
    const path = join(folder.path, name)
    await writeFile(path, JSON.stringify(value))
    return path
  }

  const streams = ['folders', 'exercices', 'journals', 'accounts', 'movements', 'drafts']

  /** @returns the records of each stream */
  async function read(society: string): Promise<Record<string, unknown[]>> {
    const { baseUrl: url, companyToken: token, thirdPartySecret: secret } = firmAccess(stage)
    const config = { url, token, secret, ...(society && { society }) }
    const catalog = streams.map((name) => ({
      stream: { name, json_schema: {}, supported_sync_modes: ['full_refresh'] },
      sync_mode: 'full_refresh',
      destination_sync_mode: 'overwrite',
    }))
    const packages = packagesOf('airbyte')
    const { code, out } = await runProgram(
      [
        'python3',
        join(packages, 'bin/source-declarative-manifest'),
        ...['read', '--manifest-path', 'examples/airbyte/manifest.yaml'],
        ...['--config', await save(`config${society}.json`, config)],
        ...['--catalog', await save(`catalog${society}.json`, { streams: catalog })],
      ],
      firmAccess(stage),
      { env: { PYTHONPATH: packages, HOME: folder.path } },
    )
    const messages = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
    expect({ code, failed: messages.filter(({ trace }) => trace?.error) }).toEqual({ code: 0, failed: [] })
    const records = messages.flatMap(({ record }) => record ?? [])
    return Object.groupBy(records, ({ stream }) => stream) as Record<string, unknown[]>
  }

  const ask = async (society: string, path: string, query: Record<string, string> = {}) => {
    const url = movementsUrl(stage.service.url, query).replace('/movements', path)
    const { json } = await download(url, { ...stage.firm, 'society-id': society })
    return json.map((item: object) => filled({ ...item, society }))
  }
  /** Airbyte leaves out members of a record that are null. */
  const filled = (item: object) =>
    Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null))

  const firmFolders = [folders.first, folders.sameFirm].map(({ folderId }) => folderId)
  test.each([
    ['each folder of the firm', '', firmFolders],
    ['the folder that is named', firmFolders[1]!, [firmFolders[1]!]],
  ])('reads every collection and every year of %s, including drafts', async (_, society, wanted) => {
    const records = await read(society)
    // Both folders have the same ids of years, entries and accounts.
    const sorted = (items: unknown[]) => items.map((item) => JSON.stringify(item)).toSorted()
    const expectRecords = (stream: string, expected: object[][]) => {
      const found = records[stream]!.map((record) => (record as { data: unknown }).data)
      expect(sorted(found)).toEqual(sorted(expected.flat()))
    }
    expect(records['folders']!.map((record) => (record as { data: { id: string } }).data.id)).toEqual(wanted)
    for (const name of ['exercices', 'journals', 'accounts'])
      expectRecords(name, await Promise.all(wanted.map((id) => ask(id, `/${name}`))))
    for (const [name, draft] of [
      ['movements', 'false'],
      ['drafts', 'true'],
    ] as const) {
      const years = wanted.flatMap((id) => exercices.map((year) => ({ id, year: year.id })))
      const expected = years.map(async ({ id, year }) =>
        (await ask(id, '/movements', { idExercice: year, draft })).map((item: object) => ({
          ...item,
          exercice: year,
        })),
      )
      expectRecords(name, await Promise.all(expected))
    }
  })
})
