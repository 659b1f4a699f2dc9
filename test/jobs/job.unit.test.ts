import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/errors.ts'
import { compressionNames, fileFormatNames, UnsupportedByFormat } from '../../src/formats/file-formats.ts'
import { fieldOf, layouts, TraOverflow } from '../../src/formats/tra/layouts.ts'
import { failureOf } from '../../src/jobs/failure.ts'
import { endingOfKey, freshFileKey, readFileKey } from '../../src/jobs/file-key.ts'
import {
  type ExportParameters,
  type FailureCause,
  identityOf,
  jobStates,
  reasonOf,
  reasonWithExpiry,
  statusOf,
} from '../../src/jobs/job.ts'
import { isKey, StoreError } from '../../src/store/store.ts'

test('callers see only three states of a job', () => {
  expect(jobStates.map(statusOf)).toEqual(['INIT', 'INIT', 'DONE', 'FAILED'])
})

const parameters: ExportParameters = {
  schemaId: '100',
  folderId: '111',
  version: '1.0.0',
  format: 'TRA',
  exerciceId: undefined,
  period: undefined,
  journalIds: [],
  compression: undefined,
  withEmployees: true,
}

test('two triggers have different identities if anything differs', () => {
  const others: ExportParameters[] = [
    parameters,
    { ...parameters, schemaId: '200' },
    { ...parameters, folderId: '112' },
    { ...parameters, version: '1.0.1' },
    { ...parameters, format: 'JSON' },
    { ...parameters, exerciceId: '12' },
    { ...parameters, exerciceId: '13' },
    { ...parameters, period: { start: '2024-01-01', end: '2024-12-31' } },
    { ...parameters, period: { start: '2024-01-02', end: '2024-12-31' } },
    { ...parameters, period: { start: '2024-01-01', end: '2024-12-30' } },
    { ...parameters, journalIds: ['1', '2'] },
    { ...parameters, journalIds: ['12'] },
    { ...parameters, journalIds: ['1'] },
    { ...parameters, compression: 'gzip' },
    { ...parameters, compression: 'zstd' },
    { ...parameters, encoding: 'utf-8' },
    { ...parameters, columns: 'extended' },
    { ...parameters, encoding: 'utf-8', columns: 'extended' },
    { ...parameters, compression: 'zstd', columns: 'extended' },
    { ...parameters, withEmployees: false },
    { ...parameters, compression: 'zstd', columns: 'extended', withEmployees: false },
  ]
  const identities = others.map(identityOf)
  expect(new Set(identities).size).toBe(others.length)
  for (const identity of identities) expect(identity).toMatch(/^[0-9a-f]{64}$/)
})

test('a trigger that uses no newer parameter has the same identity as in earlier versions', () => {
  const named = ['100', '111', '1.0.0', 'TRA', null, null, []]
  const identity = createHash('sha256').update(JSON.stringify(named)).digest('hex')
  expect(identityOf(parameters)).toBe(identity)
  expect(identityOf({ ...parameters, encoding: undefined, columns: undefined })).toBe(identity)
})

describe('the reason of a failure', () => {
  // biome-ignore format: a table
  const causes: FailureCause[] = ['database', 'store', 'refused', 'folder', 'unsupported', 'parquet', 'internal', 'died', 'cancelled', 'forgotten']

  test('is a distinct sentence for each cause and includes the request id', () => {
    const reasons = causes.map((cause) => reasonOf(cause, 'request-1'))
    expect(new Set(reasons).size).toBe(causes.length)
    for (const reason of reasons)
      expect(reason).toMatch(/^The [^.;]+[.;] .*[Nn]ew export.*\. Quote request request-1 to the operators/)
  })

  test('says when a new export can be started', () => {
    expect(reasonWithExpiry('The folder is on fire.', '2026-03-01T10:00:01Z')).toBe(
      'The folder is on fire. The same parameters return this failure until 2026-03-01T10:00:01Z, ' +
        'and start a new export after that.',
    )
  })

  test('names the value of the caller that is wrong', () => {
    const overflow = new TraOverflow(layouts.CGN, fieldOf(layouts.CGN, 'CODE'), '1'.repeat(18))
    const { cause, detail } = failureOf(overflow)
    expect(reasonOf(cause, 'r', detail)).toBe(
      'The folder does not fit the format; a new export will fail too until it is corrected. ' +
        'CGN.CODE of a TRA file has 17 columns and cannot hold ' +
        '"111111111111111111". Quote request r to the operators if you need their help.',
    )
    expect(failureOf(new Error('of the database')).detail).toBeUndefined()
  })

  test('quotes the reason that staff gave', () => {
    expect(reasonOf('cancelled', 'r', 'the disk is being replaced')).toContain(
      'new export. They say: the disk is being replaced. Quote request r',
    )
  })

  test('depends on the error, and so does whether the export is retried', () => {
    const coded = (code: string) => Object.assign(new Error('secret of the database'), { code })
    let assertion: unknown
    try {
      assert(false, 'ours')
    } catch (error) {
      assertion = error
    }
    const classified = (error: unknown) => {
      const { cause, retryable } = failureOf(error)
      return `${cause} ${retryable}`
    }
    expect(classified(new StoreError('away', { retryable: true }))).toBe('store true')
    expect(classified(new StoreError('full', { retryable: false }))).toBe('refused false')
    expect(classified(new AppError('ERR-FOLDER-NOT-FOUND'))).toBe('folder false')
    expect(classified(new AppError('ERR-UNAVAILABLE'))).toBe('database true')
    expect(classified(new UnsupportedByFormat('books in dollars'))).toBe('unsupported false')
    for (const code of ['57P01', '08006', '53100', '57014', '40001', 'ECONNRESET'])
      expect(classified(coded(code)), code).toBe('database true')
    for (const code of ['42P01', '22012', '42501'])
      expect(classified(coded(code)), code).toBe('internal false')
    for (const error of [assertion, new TypeError('x'), new AppError('ERR-INTERNAL')])
      expect(classified(error)).toBe('internal false')
    // Errors not known to be permanent are retried, such as a thread that ended.
    expect(classified(new Error('the thread ended'))).toBe('internal true')
    expect(classified('no error at all')).toBe('internal true')
  })
})

test('a file key is never reused, and identifies its export and attempt', () => {
  const claim = { schemaId: '100', exportId: `export_${'a1'.repeat(16)}`, attempt: 2 }
  const fresh = fileFormatNames.flatMap((format) =>
    [undefined, ...compressionNames].map((compression) => freshFileKey(claim, format, compression)),
  )
  const [key] = fresh.filter((each) => each.endsWith('.tra'))
  assert(key)
  expect(freshFileKey(claim, 'TRA', undefined)).not.toBe(key)
  expect(fresh.map(endingOfKey)).toEqual(
    expect.arrayContaining(['json', 'json.gz', 'tra', 'tra.gz', 'tra.zst']),
  )
  for (const each of fresh) {
    expect(isKey(each)).toBe(true)
    expect(readFileKey(each), each).toEqual(claim)
  }
  const others = [`backup/${key}`, `${key}.bz2`, `${key}.gz.gz`, key.replace('.tra', '.exe')]
  for (const other of ['exports/100/x.json', key.replace('export_', 'Export_'), ...others])
    expect(readFileKey(other), other).toBeUndefined()
})
