import { expect, test } from 'vitest'
import { createOwnerPool, createPool } from '../../../src/db/pool.ts'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { traBytes } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { haveRealLedgers, realLedgers } from '../../support/ledgers/real-ledgers.ts'
import { plainTra } from '../../support/plain/plain-tra.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

const database = forTests(createTestDatabase)
const owner = forTests(() => createOwnerPool(database.ownerUrl, { max: 2, applicationName: 'test' }))
const exports = forTests(() => createPool(database.serviceUrl, { max: 2, applicationName: 'test' }))

test.skipIf(!haveRealLedgers).each(realLedgers)(
  'a ledger of $lines lines becomes a file without problems, equal to that of a second, simple writer',
  async ({ file, lines, total }) => {
    const { schemaId, folderId } = await importFec(owner, { file })
    const bytes = await traBytes(exports, { schemaId, folderId })
    const found = await checkTra(ReadableStream.from([bytes]))
    expect(found.problems).toEqual([])
    expect([found.movements, found.debit, found.credit]).toEqual([lines, total, total])
    const plain = await plainTra(owner, { schemaId, folderId }, {})
    const ofEntries = bytes.toString('latin1').match(/^(?!\*{3}).+(?=\r\n)/gm)
    expect(ofEntries).toEqual(plain.entries)
  },
)
