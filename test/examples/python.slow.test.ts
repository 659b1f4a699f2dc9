/** The example in Python: after each run its files are the ledgers, byte for byte. */

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startFaultyProxy } from '../../packages/partner/test/support/client/faulty-proxy.ts'
import { download, movementsUrl } from '../support/download.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forTests } from '../support/for-tests.ts'
import { firmAccess, runProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { exercices } from '../support/ledgers/ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { setSampleStage } from '../support/stages/sample-stage.ts'

/** Compares the file of a year with the answer of the service. */
async function expectYear(
  { url }: { url: string },
  headers: Record<string, string>,
  folder: string,
  id: string,
): Promise<void> {
  const answer = await download(movementsUrl(url, { idExercice: id }), {
    ...headers,
    Accept: 'application/x-ndjson',
  })
  const file = join(folder, `${id}.ndjson`)
  expect(await readFile(file, 'utf8')).toBe(answer.text)
  expect(await readFile(`${file}.cursor`, 'utf8')).toBe(answer.headers['x-ledger-cursor'])
}

describe.skipIf(!isInstalled.python)('examples/python/ledger.py', () => {
  const stage = forTests(() => setSampleStage(6_000))
  const folder = forTests(() => openFolder('python'))
  const fileOf = () => join(folder.path, stage.credentials.societyId, `${stage.idExercice}.ndjson`)

  const run = (env: Record<string, string> = {}) =>
    runProgram(['python3', 'examples/python/ledger.py', folder.path], stage.credentials, {
      env: { PYTHONPATH: packagesOf('python'), ...env },
    })

  async function expectCopyAfterRun(): Promise<void> {
    const { societyId, exercices } = stage.credentials
    expect(await run()).toEqual({
      code: 0,
      out: expect.stringMatching(/^(\S+ndjson: \d+ movements, equal.*\n){2}$/),
      error: '',
    })
    for (const { id } of exercices) await expectYear(stage, stage.company, join(folder.path, societyId), id)
    const names = exercices.flatMap(({ id }) => [`${id}.ndjson`, `${id}.ndjson.cursor`])
    expect(await readdir(join(folder.path, societyId))).toEqual(expect.arrayContaining(names))
    expect(await readdir(join(folder.path, societyId))).toHaveLength(4)
  }

  test('pulls each year, then the changes, and repairs a damaged copy', async () => {
    await expectCopyAfterRun()
    await stage.correctEntries()
    await stage.change(`delete from entries where id = (select max(id) from entries
      where exercice_id = ${stage.idExercice} and validated_at is not null)`)
    await expectCopyAfterRun()
    const copy = await readFile(fileOf(), 'utf8')
    await writeFile(fileOf(), copy.replace('"description":"', '"description":"é').replace(/\n.*\n$/, '\n'))
    await expectCopyAfterRun()
    expect(await run({ GRANDLIVRE_SOCIETY: '1' })).toMatchObject({
      code: 1,
      error: expect.stringContaining('ERR-FORBIDDEN-ACCESS'),
    })
    expect(await readFile(fileOf(), 'utf8')).toBe(copy)
  })

  test('follows no redirect, which would receive its secret', async () => {
    const asked: string[] = []
    const server = createServer(({ headers, url = '' }, response) => {
      asked.push(url)
      response.writeHead(302, { Location: `http://localhost:${headers.host!.split(':')[1]}/elsewhere` }).end()
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      const words = ['python3', 'examples/python/ledger.py', folder.path] as [string, ...string[]]
      const env = { PYTHONPATH: packagesOf('python') }
      const { code, error } = await runProgram(words, { ...stage.credentials, baseUrl }, { env })
      expect({ code, error }).toEqual({ code: 1, error: expect.stringMatching(/was answered with 302\n$/) })
      expect(asked).toEqual([expect.stringContaining('/api/v1/society')])
    } finally {
      server.close()
    }
  })

  test('reads only the blocks that differ if its cursor is refused, as after a failover', async () => {
    const proxy = await startFaultyProxy(stage.url)
    const words: [string, ...string[]] = ['python3', 'examples/python/ledger.py', folder.path]
    const access = { ...stage.credentials, baseUrl: proxy.url }
    /** @returns for each request for movements, whether it has `since` or `entries` */
    const recover = async () => {
      proxy.asked = []
      await runProgram(words, access, { env: { PYTHONPATH: packagesOf('python') } })
      const asked = proxy.asked.map(({ path }) => new URL(path, proxy.url))
      const [of, names] = [
        asked.filter(({ pathname }) => pathname.endsWith('/movements')),
        ['since', 'entries'],
      ]
      return of.map(({ searchParams }) => names.find((name) => searchParams.has(name)))
    }
    try {
      await run()
      await stage.change('select begin_epoch(true)')
      expect(await recover()).toEqual(['since', 'since'])
      await expectCopyAfterRun()
      await stage.change('select begin_epoch(true)')
      await stage.correctEntries()
      expect(await recover()).toEqual(['since', 'since', 'entries', 'since'])
      await expectCopyAfterRun()
    } finally {
      await proxy.close()
    }
  })

  test('copies all folders of a firm, or the folder that is named', async () => {
    const firm = await setExportStage()
    const books = await mkdtemp(join(tmpdir(), 'grandlivre-python-'))
    const { url } = firm.service
    const copy = (named: Record<string, string>) =>
      runProgram(['python3', 'examples/python/ledger.py', books], firmAccess(firm), {
        env: { PYTHONPATH: packagesOf('python'), ...named },
      })
    const { first, sameFirm } = folders
    try {
      expect(await copy({ GRANDLIVRE_SOCIETY: sameFirm.folderId })).toMatchObject({ code: 0, error: '' })
      expect(await readdir(books)).toEqual([sameFirm.folderId])
      expect(await copy({})).toMatchObject({ code: 0, error: '' })
      expect((await readdir(books)).toSorted()).toEqual([first.folderId, sameFirm.folderId])
      // Both folders have the same ids of years and entries.
      for (const { folderId } of [first, sameFirm])
        for (const { id } of exercices)
          await expectYear({ url }, { ...firm.firm, 'society-id': folderId }, join(books, folderId), id)
    } finally {
      await rm(books, { recursive: true })
      await firm.close()
    }
  })
})
