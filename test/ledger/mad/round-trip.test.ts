/** A full export in JSON, imported and exported again, is the same file. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { seed } from '../../../src/sample/seed.ts'
import { type ImportStage, setImportStage } from '../../support/imports/import-stage.ts'
import { madBytes } from '../../support/imports/mad-bytes.ts'
import { withoutIds } from '../../support/imports/without-ids.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { fillHostileLedger } from '../../support/ledgers/hostile-ledger.ts'
import { fillLedger } from '../../support/ledgers/ledger.ts'
import { createTenants, folders } from '../../support/ledgers/tenants.ts'
import { createTestDatabase } from '../../support/servers/database.ts'

/** The exports of each ledger, by its name. */
const files = new Map<string, Buffer>()
let target: ImportStage

const ledgers = ['a ledger with everything', 'a hostile ledger', 'a seed', 'an empty folder'] as const

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
    files.set(ledgers[i]!, await madBytes(service, folder))
  await service.end()
  await staff.end()
  await database.drop()
  target = await setImportStage()
  // Senders are registered here, too.
  const partners = await createTenants(target.database.ownerUrl)
  for (const code of ['PARTNER', 'SEED']) await partners.thirdParty(code)
  await partners.client.query(
    `update grandlivre.third_parties set name = 'Éditeur « Démo » & Cie' where code = 'SEED'`,
  )
  await partners.end()
})

afterAll(() => target?.close())

describe.each(ledgers)('%s', (name) => {
  test('comes out as it went in, but for its ids, when these are made anew', async () => {
    const file = files.get(name)!.toString()
    const imported = await target.importMad(file, { renumber: true })
    expect(imported.unknownMembers).toEqual(new Map())
    expect(imported.unknownSenders).toBe(0)
    const again = (await madBytes(target.service, imported)).toString()
    expect(withoutIds(again)).toBe(withoutIds(file))
    expect(again).not.toBe(name === 'an empty folder' ? '' : file)
  })

  test('comes out byte for byte where its ids are free', async () => {
    const other = await setImportStage()
    const partners = await createTenants(other.database.ownerUrl)
    for (const code of ['PARTNER', 'SEED']) await partners.thirdParty(code)
    await partners.client.query(
      `update grandlivre.third_parties set name = 'Éditeur « Démo » & Cie' where code = 'SEED'`,
    )
    await partners.end()
    const imported = await other.importMad(files.get(name)!)
    expect((await madBytes(other.service, imported)).toString()).toBe(files.get(name)!.toString())
    await other.close()
  })
})
