/** Slow clients change neither other callers' bytes nor the consistency of their own export. */
import { beforeAll, expect, test } from 'vitest'
import { defaultExportsPerThread } from '../../../src/config.ts'
import { download, movementsUrl, slowReader } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice, largeExercice, runningQueries } from '../../support/ledgers/large-exercice.ts'
import { lockWaits } from '../../support/ledgers/lock-waits.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { plainBody, readPlainMovements } from '../../support/plain/plain-movement.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

/** Movements of about 23 MB, more than all buffers on the way hold. */
const movements = 20_000

const stage = forTests(setExportStage)
let url: string

beforeAll(async () => {
  await addLargeExercice(stage.staff.client, movements)
  url = movementsUrl(stage.service.url, { idExercice: largeExercice })
})

const megabyte = 1024 * 1024

test('many slow clients of one thread each get exactly their own bytes', async () => {
  const readers = await Promise.all(
    Array.from({ length: defaultExportsPerThread }, () => slowReader(url, stage.company)),
  )
  for (let round = 0; round < 12; round++)
    await Promise.all(readers.map((reader, i) => reader.read(((round * 7 + i * 3) % 11) * 100_000)))
  const other = await download(movementsUrl(stage.service.url, { idExercice: '11' }), {
    ...stage.company,
    'If-None-Match': '*',
  })
  expect(other.status).toBe(304)
  await Promise.all(readers.map((reader) => reader.read(Number.POSITIVE_INFINITY)))
  const digests = readers.map((reader) => reader.digest())
  for (const [i, reader] of readers.entries())
    expect(reader.message.trailers['x-content-sha256']).toBe(digests[i])
  expect(new Set(digests).size).toBe(1)
})

test('changes made while an export runs do not appear in it', async () => {
  const { client } = stage.staff
  const reader = await slowReader(url, stage.company)
  const etag = reader.message.headers.etag!
  await reader.read(megabyte)
  // Changes rows beyond all buffers on the way, in every table that the export reads.
  await client.query(`delete from grandlivre.entries where folder_id = 111 and id = 1001999`)
  await client.query(
    `update grandlivre.movements set description = 'later' where folder_id = 111 and id = 1019980`,
  )
  await client.query(
    `update grandlivre.entries set validated_at = null where folder_id = 111 and id = 1001997`,
  )
  await client.query(`update grandlivre.accounts set name = 'later' where folder_id = 111 and id = 101`)
  await client.query(
    `insert into grandlivre.movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description,
       invoice_number, debit, credit) values (100, 111, 99, 1001998, 2000000, 101, 'later', '', 0, 0)`,
  )
  await reader.read(Number.POSITIVE_INFINITY)
  expect(reader.message.trailers).toEqual({
    'x-row-count': String(movements),
    'x-content-sha256': reader.digest(),
  })
  const next = await download(url, stage.company)
  expect(next.headers.etag).not.toBe(etag)
  expect(next.trailers['x-row-count']).toBe(String(movements - 10 - 10 + 1))
  expect(next.text).toContain('"later"')
  const expected = await readPlainMovements(
    client,
    folders.first,
    'e.exercice_id = 99 and e.validated_at is not null',
  )
  expect(next.text === plainBody(expected, 'json'), 'equals the tens of megabytes of the oracle').toBe(true)
  await until(async () => (await runningQueries(client)).length === 0)
})

test.each(['accounts', 'movements', 'entries'])(
  'changes committed after an export began, but before it reads %s, do not appear in it',
  async (table) => {
    const { client } = stage.staff
    const where = 'e.exercice_id = 12 and e.validated_at is not null'
    const before = await readPlainMovements(client, folders.first, where)
    const small = movementsUrl(stage.service.url, { idExercice: '12' })
    await client.query(`begin; lock table grandlivre.${table} in access exclusive mode`)
    await client.query(`update grandlivre.accounts set name = $1 where folder_id = 111`, [table])
    await client.query(
      `update grandlivre.entries set comment = $1 where folder_id = 111 and exercice_id = 12`,
      [table],
    )
    await client.query(
      `update grandlivre.movements set description = $1 where folder_id = 111 and exercice_id = 12`,
      [table],
    )
    await client.query(`delete from grandlivre.entries where folder_id = 111 and id = $1`, [
      before[0]!.entry.producerId,
    ])
    const answer = download(small, stage.company)
    await until(async () => (await lockWaits(client, table)) > 0)
    await client.query('commit')
    const { text } = await answer
    expect(text).toBe(plainBody(before, 'json'))
    const after = await readPlainMovements(client, folders.first, where)
    expect((await download(small, stage.company)).text).toBe(plainBody(after, 'json'))
    expect(after.length).toBeLessThan(before.length)
  },
)
