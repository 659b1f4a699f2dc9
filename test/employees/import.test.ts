/** Imports of MAD files that were made for a token without the group `employees` (docs/spec/imports.md#what-a-mad-file-replaces). */
import { describe, expect, test } from 'vitest'
import { forEachTest } from '../support/for-tests.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { readOpenMad } from '../support/imports/open-files.ts'

const open = readOpenMad()
/** The text of the file, after `change` of its accounts. */
function file(
  change: (accounts: { number: string; name: string; employee?: object | null }[]) => unknown = () => {},
) {
  const copy = structuredClone(open)
  change(copy.data.accounts)
  return JSON.stringify(copy)
}
const hidden = file((accounts) => {
  for (const account of accounts) if (account.employee) account.employee = null
})

const stage = forEachTest(setImportStage)

const employees = async () =>
  (await stage.owner.query('select * from grandlivre.employees order by account_id')).rows

test('a new folder has employees without personal data, and the import counts them', async () => {
  expect(await stage.importMad(hidden)).toMatchObject({
    hiddenEmployees: 1,
    accounts: open.data.accounts.length,
  })
  expect(await employees()).toEqual([])
})

describe.each([false, true])('into the folder that it came from, with renumber %s', (renumber) => {
  test('the folder keeps what it knows of its employees, and no row is written', async () => {
    const { folderId } = await stage.importMad(file(), { renumber })
    const before = await employees()
    expect(before).toMatchObject([
      { first_name: 'Zoé', email: 'zoe.dupre@example.com', profession: 'Torréfactrice' },
    ])
    const { hiddenEmployees, replacement } = await stage.importMad(hidden, {
      folderId,
      replace: true,
      renumber,
    })
    expect(hiddenEmployees).toBe(1)
    const nothing = { entries: 0, movements: 0 }
    expect(replacement).toEqual({ deleted: nothing, updated: nothing, inserted: nothing, books: 0 })
    expect(await employees()).toEqual(before)
  })

  test('changes of the account in the file are written, and the employee is kept', async () => {
    const { folderId } = await stage.importMad(file(), { renumber })
    const before = await employees()
    const renamed = JSON.parse(hidden)
    for (const account of renamed.data.accounts) if (account.employee === null) account.name = 'Renommée'
    const text = JSON.stringify(renamed).replaceAll('"name":"Dupré Zoé"', '"name":"Renommée"')
    const { replacement } = await stage.importMad(text, { folderId, replace: true, renumber })
    expect(replacement!.books).toBe(1)
    expect(await employees()).toEqual(before)
  })

  test('a file with data of employees still changes and empties them', async () => {
    const { folderId } = await stage.importMad(file(), { renumber })
    const emptied = file((accounts) => {
      for (const { employee } of accounts)
        if (employee) Object.assign(employee, { email: null, profession: 'Autre' })
    })
    const { hiddenEmployees, replacement } = await stage.importMad(emptied, {
      folderId,
      replace: true,
      renumber,
    })
    expect([hiddenEmployees, replacement!.books]).toEqual([0, 1])
    expect(await employees()).toMatchObject([{ email: null, profession: 'Autre' }])
  })

  test('an employee is deleted if the file lacks its account', async () => {
    const { folderId } = await stage.importMad(file(), { renumber })
    const without = JSON.parse(hidden)
    const { producerId } = without.data.accounts.find(
      ({ employee }: { employee?: null }) => employee === null,
    )
    const uses = (of: { movements: { account: { producerId: string } }[] }) =>
      of.movements.some(({ account }) => account.producerId === producerId)
    without.data.accounts = without.data.accounts.filter(
      (account: { producerId: string }) => account.producerId !== producerId,
    )
    without.data.entries = without.data.entries.filter((entry: never) => !uses(entry))
    await stage.importMad(JSON.stringify(without), { folderId, replace: true, renumber })
    expect(await employees()).toEqual([])
  })
})
