/** The manifest for Airbyte, read by Airbyte's own program. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { runProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { type SampleStage, setSampleStage } from '../support/stages/sample-stage.ts'

describe.skipIf(!isInstalled.airbyte)('examples/airbyte/manifest.yaml', () => {
  let stage: SampleStage
  let folder: string

  beforeAll(async () => {
    stage = await setSampleStage(2_000)
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-airbyte-'))
  })

  afterAll(async () => {
    await stage?.close()
    if (folder) await rm(folder, { recursive: true })
  })

  async function save(name: string, value: unknown): Promise<string> {
    const path = join(folder, name)
    await writeFile(path, JSON.stringify(value))
    return path
  }

  const streams = ['exercices', 'journals', 'accounts', 'movements', 'drafts']

  /** @returns the records of each stream */
  async function read(config: Record<string, string>): Promise<Record<string, unknown[]>> {
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
        ...['--config', await save('config.json', config)],
        ...['--catalog', await save('catalog.json', { streams: catalog })],
      ],
      stage.credentials,
      { env: { PYTHONPATH: packages, HOME: folder } },
    )
    const messages = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
    expect({ code, failed: messages.filter(({ trace }) => trace?.error) }).toEqual({ code: 0, failed: [] })
    const records = messages.flatMap(({ record }) => record ?? [])
    return Object.groupBy(records, ({ stream }) => stream) as Record<string, unknown[]>
  }

  /** Airbyte leaves out members of a record that are null. */
  const ask = async (path: string, query: Record<string, string>): Promise<object[]> => {
    const url = movementsUrl(stage.url, query).replace('/movements', path)
    const { json } = await download(url, stage.company)
    const filled = (item: object) =>
      Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null))
    return json.map(filled)
  }

  test('it reads every collection and every year, drafts too', async () => {
    const { baseUrl, firmToken, societyId, thirdPartySecret, exercices } = stage.credentials
    const records = await read({
      url: baseUrl,
      token: firmToken,
      secret: thirdPartySecret,
      society: societyId,
    })
    const dataOf = (stream: string) => records[stream]!.map((record) => (record as { data: unknown }).data)
    for (const name of ['exercices', 'journals', 'accounts'])
      expect(dataOf(name)).toEqual(await ask(`/${name}`, {}))
    for (const [name, draft] of [
      ['movements', 'false'],
      ['drafts', 'true'],
    ] as const) {
      const expected = await Promise.all(
        exercices.map(async ({ id }) =>
          (await ask('/movements', { idExercice: id, draft })).map((item) => ({ ...item, exercice: id })),
        ),
      )
      const byId = (a: unknown, b: unknown) =>
        Number((a as { producerId: string }).producerId) - Number((b as { producerId: string }).producerId)
      expect(dataOf(name).toSorted(byId)).toEqual(expected.flat().toSorted(byId))
    }
  })
})
