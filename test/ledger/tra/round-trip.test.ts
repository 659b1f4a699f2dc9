/** A TRA file, imported and exported again, is the same file but for the ids of entries. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { fieldOf, layouts } from '../../../src/formats/tra/layouts/layouts.ts'
import { seed } from '../../../src/sample/seed.ts'
import { traBytes } from '../../support/fixtures/tra-bytes.ts'
import { type ImportStage, setImportStage } from '../../support/imports/import-stage.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { fillHostileLedger } from '../../support/ledgers/hostile-ledger.ts'
import { fillLedger } from '../../support/ledgers/ledger.ts'
import { createTenants, folders } from '../../support/ledgers/tenants.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

const ledgers = ['a ledger with everything', 'a hostile ledger', 'a seed', 'an empty folder'] as const
/** The exports of each ledger, by its name. */
const files = new Map<string, Buffer>()
const now = Date.UTC(2025, 6, 1, 12)
let target: ImportStage

beforeAll(async () => {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query(`select id from grandlivre.third_parties where code = 'PARTNER'`)
  const { first, otherFirm, sameFirm } = folders
  await fillLedger(staff.client, { ...first, label: 'first', thirdPartyId: rows[0].id })
  await addToFolder(staff.client, first)
  await fillHostileLedger(staff.client, otherFirm)
  const seeded = await seed(database.ownerUrl, { movements: 3_000, year: 2024 })
  const service = createPool(database.serviceUrl, { max: 2, applicationName: 'test' })
  for (const [i, folder] of [first, otherFirm, seeded, sameFirm].entries())
    files.set(ledgers[i]!, await traBytes(service, folder, {}, now))
  await service.end()
  await staff.end()
  await database.drop()
  target = await setImportStage()
})

afterAll(() => target?.close())

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

describe.each(ledgers)('%s', (name) => {
  test('comes out as it went in', async () => {
    const file = files.get(name)!
    const imported = await target.importTra(file)
    expect(imported.unread).toEqual(new Map())
    const again = await traBytes(target.service, imported, {}, now)
    expect(withoutIds(again)).toEqual(withoutIds(file))
  })
})
