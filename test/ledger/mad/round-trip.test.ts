/** A full export in JSON, imported and exported again, is the same file. */
import { beforeAll, describe, expect, test } from 'vitest'
import { madBytes } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { exportedLedgers, exportLedgers, registerSenders } from '../../support/imports/exported-ledgers.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import { withoutIds } from '../../support/imports/without-ids.ts'

const target = forTests(setImportStage)
let files: Map<string, Buffer>

beforeAll(async () => {
  files = await exportLedgers(madBytes)
  await registerSenders(target.database.ownerUrl)
})

describe.each(exportedLedgers)('%s', (name) => {
  test('is exported as it was imported, except for renumbered ids', async () => {
    const file = files.get(name)!.toString()
    const imported = await target.importMad(file, { renumber: true })
    expect(imported.unknownMembers).toEqual(new Map())
    expect(imported.unknownSenders).toBe(0)
    const again = (await madBytes(target.service, imported)).toString()
    expect(withoutIds(again)).toBe(withoutIds(file))
    expect(again).not.toBe(name === 'an empty folder' ? '' : file)
  })

  test('is exported byte for byte if its ids are free', async () => {
    const other = await setImportStage()
    await registerSenders(other.database.ownerUrl)
    const imported = await other.importMad(files.get(name)!)
    expect((await madBytes(other.service, imported)).toString()).toBe(files.get(name)!.toString())
    await other.close()
  })
})
