import { expect, test } from 'vitest'
import { createOwnerPool, createPool } from '../../../src/db/pool.ts'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { traBytes } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { haveRealLedgers, realLedgers } from '../../support/ledgers/real-ledgers.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

const database = forTests(createTestDatabase)
const owner = forTests(() => createOwnerPool(database.ownerUrl, { max: 2, applicationName: 'test' }))
const exports = forTests(() => createPool(database.serviceUrl, { max: 2, applicationName: 'test' }))

test.skipIf(!haveRealLedgers).each(realLedgers)(
  'a ledger of $lines lines keeps its movements, journals and letterings',
  async ({ file, lines, total }) => {
    const { schemaId, folderId } = await importFec(owner, { file })
    const bytes = await traBytes(exports, { schemaId, folderId })
    const found = await checkTra(ReadableStream.from([bytes]))
    expect(found.problems).toEqual([])
    expect([found.movements, found.debit, found.credit]).toEqual([lines, total, total])
    const journals = [...found.journals].map(([code, sums]) => [
      found.journalNames.get(code),
      ...Object.values(sums),
    ])
    expect(journals.toSorted(byName)).toEqual((await journalsOf(folderId)).toSorted(byName))
    const lettering = found.lettering
    expect([lettering.get('TL') ?? 0, lettering.get('PL') ?? 0]).toEqual(await letteringOf(folderId))
    expect((lettering.get('AL') ?? 0) + (lettering.get('RI') ?? 0)).toBeGreaterThan(0)
  },
)

type Journal = [name: string, movements: number, debit: bigint, credit: bigint]

const byName = ([one]: unknown[], [other]: unknown[]) => (String(one) < String(other) ? -1 : 1)

async function journalsOf(folderId: string): Promise<Journal[]> {
  const { rows } = await owner.query(
    `select left(j.name, 35) as name, count(*)::int as movements, sum(m.debit) as debit, sum(m.credit) as credit
     from grandlivre.movements m
     join grandlivre.entries e on (e.schema_id, e.folder_id, e.id) = (m.schema_id, m.folder_id, m.entry_id)
     join grandlivre.journals j on (j.schema_id, j.folder_id, j.id) = (e.schema_id, e.folder_id, e.journal_id)
     where m.folder_id = $1 group by j.id, j.name`,
    [folderId],
  )
  return rows.map(({ name, movements, debit, credit }) => [
    name.trim(),
    movements,
    BigInt(debit),
    BigInt(credit),
  ])
}

async function letteringOf(folderId: string): Promise<number[]> {
  const { rows } = await owner.query(
    `select count(*) filter (where lettering_state = 'complete')::int as complete,
       count(*) filter (where lettering_state = 'partial')::int as partial
     from grandlivre.movements where folder_id = $1`,
    [folderId],
  )
  return [rows[0].complete, rows[0].partial]
}
