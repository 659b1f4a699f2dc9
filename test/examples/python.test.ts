/** The example in Python: after each run its file is the ledger, byte for byte. */

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { runProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { type SampleStage, setSampleStage } from '../support/stages/sample-stage.ts'

describe.skipIf(!isInstalled.python)('examples/python/ledger.py', () => {
  let stage: SampleStage
  let folder: string
  let file: string

  beforeAll(async () => {
    stage = await setSampleStage(6_000)
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-python-'))
    file = join(folder, 'year.ndjson')
  })

  afterAll(async () => {
    await stage?.close()
    if (folder) await rm(folder, { recursive: true })
  })

  const run = (idExercice = stage.idExercice) =>
    runProgram(['python3', 'examples/python/ledger.py', idExercice, file], stage.credentials, {
      env: { PYTHONPATH: packagesOf('python') },
    })

  async function expectCopyAfterRun(): Promise<void> {
    expect(await run()).toEqual({ code: 0, out: expect.stringMatching(/^\d+ movements, equal/), error: '' })
    const url = movementsUrl(stage.url, { idExercice: stage.idExercice })
    const { text, headers } = await download(url, { ...stage.company, Accept: 'application/x-ndjson' })
    expect(await readFile(file, 'utf8')).toBe(text)
    expect(await readFile(`${file}.cursor`, 'utf8')).toBe(headers['x-ledger-cursor'])
    expect((await readdir(folder)).toSorted()).toEqual(['year.ndjson', 'year.ndjson.cursor'])
  }

  test('pulls the year, then what has changed, and repairs a damaged copy', async () => {
    await expectCopyAfterRun()
    await stage.correctEntries()
    await stage.change(`delete from entries where id = (select max(id) from entries
      where exercice_id = ${stage.idExercice} and validated_at is not null)`)
    await expectCopyAfterRun()
    const copy = await readFile(file, 'utf8')
    await writeFile(file, copy.replace('"description":"', '"description":"é').replace(/\n.*\n$/, '\n'))
    await expectCopyAfterRun()
    expect(await run('1')).toMatchObject({
      code: 1,
      error: expect.stringContaining('ERR-EXERCICE-NOT-FOUND'),
    })
    expect(await readFile(file, 'utf8')).toBe(copy)
  })

  test('follows no redirect, since its secret would go with it', async () => {
    const asked: string[] = []
    const server = createServer(({ headers, url = '' }, response) => {
      asked.push(url)
      response.writeHead(302, { Location: `http://localhost:${headers.host!.split(':')[1]}/elsewhere` }).end()
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const copy = join(folder, 'redirected.ndjson')
    try {
      const words = ['python3', 'examples/python/ledger.py', '1', copy] as [string, ...string[]]
      const env = { PYTHONPATH: packagesOf('python') }
      const { code, error } = await runProgram(words, { ...stage.credentials, baseUrl }, { env })
      expect({ code, error }).toEqual({ code: 1, error: expect.stringMatching(/was answered with 302\n$/) })
      expect(asked).toEqual([expect.stringContaining('/api/v1/mad/movements')])
    } finally {
      server.close()
    }
  })

  test('pulls in full if the changes are forgotten', async () => {
    await run()
    await stage.correctEntries()
    await stage.change(
      `update ledger_changes set logged_at = logged_at - interval '2 days'; select forget_ledger_changes(now(), 100000)`,
    )
    await expectCopyAfterRun()
  })
})
