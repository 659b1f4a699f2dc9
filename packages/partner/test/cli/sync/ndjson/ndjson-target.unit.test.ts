/** What kills and failures leave of a copy in an NDJSON file. */
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { NdjsonTarget } from '../../../../src/cli/sync/ndjson/ndjson-target.ts'

let out: string
let path: string
beforeEach(() => {
  out = mkdtempSync(join(tmpdir(), 'grandlivre-ndjson-'))
  path = join(out, 'ledger.ndjson')
})
afterEach(() => rmSync(out, { recursive: true }))

const part = { exercice: '11', draft: false }
const state = { source: { baseUrl: 'http://x', folder: '1' }, parts: [part], extended: true }
const entry = (id: number, comment: string) =>
  Buffer.from(
    `{"producerId":"${id}","attachments":{},"date":"2025-01-31","dueDate":null,"journal":{},"currency":{},` +
      `"movements":[{"producerId":"8","value":{}}],"additionalProducerProperties":{"comment":"${comment}"}}\n`,
  )

async function readNext(target: NdjsonTarget, id: number, comment: string): Promise<void> {
  await target.change('next', async (change) => {
    await change.append(part, entry(id, comment))
    await change.setState(state)
  })
}

test('a kill between the two renames of a copy that is put in place makes the next run read anew', async () => {
  const target = await NdjsonTarget.open(path)
  await readNext(target, 1, 'a')
  await target.close()
  renameSync(`${path}.next`, `${path}.1.part`)
  const again = await NdjsonTarget.open(path)
  expect(await again.state('next')).toBeUndefined()
  await readNext(again, 1, 'a')
  await again.promote()
  expect(readFileSync(path, 'utf8').split('\n').length).toBe(2)
  await again.close()
})

test('a copy whose lines are lost is none', async () => {
  const target = await NdjsonTarget.open(path)
  await readNext(target, 1, 'a')
  await target.promote()
  await target.close()
  rmSync(path)
  const again = await NdjsonTarget.open(path)
  expect(await again.state('copy')).toBeUndefined()
  expect(existsSync(`${path}.state.json`)).toBe(false)
  await again.close()
})

test('lines of a change that failed are not in the file', async () => {
  const target = await NdjsonTarget.open(path)
  await readNext(target, 1, 'a')
  const failing = target.change('next', async (change) => {
    await change.append(part, entry(2, 'long '.repeat(100)))
    throw new Error('the connection is lost')
  })
  await expect(failing).rejects.toThrow('the connection is lost')
  await readNext(target, 2, 'b')
  await target.promote()
  expect(readFileSync(path, 'utf8').split('\n').length).toBe(3)
  await target.close()
})
