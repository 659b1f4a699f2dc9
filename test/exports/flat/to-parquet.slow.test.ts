/** The process that turns CSV into Parquet, when it, its input or its reader ends too early. */
import { expect, test } from 'vitest'
import { toParquet } from '../../../src/exports/render/flat/to-parquet.ts'
import { ParquetFailure } from '../../../src/formats/file-formats.ts'
import { flatColumns } from '../../../src/formats/flat/columns.ts'
import { askParquet, groupOf, isRunning, parquetWriters } from '../../support/fixtures/parquet.ts'
import { until } from '../../support/until.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const header = bytes(`${flatColumns.map(({ name }) => name).join(',')}\r\n`)
const row = (movementId: number, description = 'x', debit = '0.1') =>
  bytes(
    `1,2024-01-31,,2024-01-31,2024-01-31T10:00:00Z,,true,12,31,"J","Journal",ACH,E,EUR,,,,2024-01-31,${movementId},` +
      `101,"601","Achats",,,"${description}",,,"",${debit},0,,none,,,,,,,\r\n`,
  )

/** Yields rows, then runs `then`, which may wait. */
async function* csv(rows: Uint8Array[], then: () => unknown = () => {}) {
  yield header
  yield* rows
  await then()
}

async function all(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks))
}

/**
 * The process that runs now: tests of this file run one after the other, and no other test of this worker writes
 * Parquet.
 */
async function writer(): Promise<number> {
  let found: number[] = []
  await until(async () => {
    found = await parquetWriters(process.pid)
    return found.length === 1
  })
  return found[0]!
}

const gone = (pid: number) => until(async () => !(await isRunning(pid)))

test('every row of the CSV is in the Parquet file', async () => {
  const file = await all(toParquet(csv([row(7), row(8, 'é "" ,')]), () => 2))
  const [rows] = await askParquet(file, 'select movement_id, description, debit, entry_comment from file')
  expect(rows).toEqual([
    ['7', 'x', '0.10', null],
    ['8', 'é " ,', '0.10', null],
  ])
})

test('rows keep their order over several groups, and long rows make smaller groups', async () => {
  const rows = 120_000
  const ordered = (i: number) => row(i, i < 100_000 ? 'x' : `${i}`.padStart(2000, 'abc'))
  const source = csv(Array.from({ length: rows }, (_, i) => ordered(i)))
  const file = await all(toParquet(source, () => rows))
  const [order, groups] = await askParquet(
    file,
    'select bool_and(movement_id = n - 1), max(n) from (select movement_id, row_number() over () as n from file)',
    `select distinct row_group_num_rows from parquet_metadata(getvariable('path'))`,
  )
  expect(order).toEqual([['true', String(rows)]])
  const sizes = groups!.map(([size]) => Number(size))
  expect([Math.max(...sizes) < 60_000, Math.min(...sizes) < 20_000]).toEqual([true, true])
})

/** Handled at once, and compared later. */
const failureOf = (file: Promise<unknown>): Promise<unknown> =>
  file.then(
    () => undefined,
    (error) => error,
  )

test('killing the process ends the file at once, with an error that a retry may fix', async () => {
  const source = csv([row(1)], () => new Promise(() => {}))
  const failure = failureOf(all(toParquet(source, () => 1)))
  const pid = await writer()
  process.kill(pid, 'SIGKILL')
  expect(await failure).toMatchObject({ name: 'ParquetFailure', retryable: true })
  expect(await isRunning(pid)).toBe(false)
})

test.each([
  ['in the middle of a row', [row(1), row(2).subarray(0, 40)]],
  ['between two rows', [row(1)]],
])('killing only the shell of the process has the same result, %s', async (_where, rows) => {
  const source = csv(rows, () => new Promise(() => {}))
  const failure = failureOf(all(toParquet(source, () => 1)))
  const pid = await writer()
  process.kill(await groupOf(pid), 'SIGKILL')
  expect(await failure).toMatchObject({ name: 'ParquetFailure', retryable: true })
  await gone(pid)
})

test('an error of the source becomes the error of the file, and ends the process', async () => {
  const failed = Promise.withResolvers<void>()
  const source = csv([row(1)], () => failed.promise)
  const failure = failureOf(all(toParquet(source, () => 1)))
  const pid = await writer()
  failed.reject(new RangeError('the database is gone'))
  expect(await failure).toEqual(new RangeError('the database is gone'))
  await gone(pid)
})

test('a reader that stops early ends the process, even while the source waits', async () => {
  const group = Array.from({ length: 60_000 }, (_, i) => row(i))
  const source = csv(group, () => new Promise(() => {}))
  let pid = 0
  for await (const _ of toParquet(source, () => group.length)) {
    pid = await writer()
    break
  }
  await gone(pid)
})

test('a stop ends even a process that hangs', async () => {
  const stop = new AbortController()
  const source = csv(Array.from({ length: 60_000 }, (_, i) => row(i)))
  const failure = failureOf(all(toParquet(source, () => 60_000, stop.signal)))
  const pid = await writer()
  process.kill(pid, 'SIGSTOP')
  stop.abort()
  expect(await failure).toBeInstanceOf(ParquetFailure)
  await gone(pid)
})

test('a row that the process cannot read gives an error that a retry cannot fix, without quoting the row', async () => {
  const file = all(toParquet(csv([row(1, 'secret', 'ten')]), () => 1))
  await expect(file).rejects.toBeInstanceOf(ParquetFailure)
  await expect(file).rejects.toMatchObject({
    retryable: false,
    message: expect.stringMatching(/^(?!.*(?:secret|ten)).*CSV Error on Line: 2$/),
  })
})
