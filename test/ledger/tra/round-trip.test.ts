/** A TRA file that is imported and exported again is the same, apart from the ids of entries. */
import { beforeAll, expect, test } from 'vitest'
import { fieldOf, layouts } from '../../../src/formats/tra/layouts.ts'
import { traBytes } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { exportedLedgers, exportLedgers } from '../../support/imports/exported-ledgers.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'

const now = Date.UTC(2025, 6, 1, 12)
const target = forTests(setImportStage)
let files: Map<string, Buffer>

beforeAll(async () => {
  files = await exportLedgers((service, folder) => traBytes(service, folder, { now }))
})

const { at, length } = fieldOf(layouts.ENTRY, 'REFEXTERNE')

/** Lines with the id of the entry left blank. */
function withoutIds(file: Buffer): string[] {
  return file
    .toString('latin1')
    .split('\r\n')
    .map((line) =>
      line.startsWith('***')
        ? line
        : line.slice(0, at - 1) + ' '.repeat(length) + line.slice(at - 1 + length),
    )
}

test.each(exportedLedgers)('%s is exported as it was imported', async (name) => {
  const file = files.get(name)!
  const imported = await target.importTra(file)
  expect(imported.unread).toEqual(new Map())
  const again = await traBytes(target.service, imported, { now })
  expect(withoutIds(again)).toEqual(withoutIds(file))
})
