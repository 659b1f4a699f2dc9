/** The folder that an import of a MAD or TRA file fills. */
import { describe, expect, test } from 'vitest'
import { forEachTest } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import { readOpenMad, readOpenTra } from '../../support/imports/open-files.ts'
import { ledgerContent, rowCounts } from '../../support/ledgers/ledger-content.ts'

const openMad = JSON.stringify(readOpenMad())

const stage = forEachTest(setImportStage)

interface Options {
  folderId?: string
  name?: string
  replace?: boolean
}

const imports = {
  mad: (options: Options = {}) => stage.importMad(openMad, { renumber: true, ...options }),
  tra: (options: Options = {}) => stage.importTra(readOpenTra(), options),
}

/** Adds folder 77 of the same firm. */
const addEmptyFolder = (folderId: string) =>
  stage.owner.query(
    `insert into grandlivre.folders (schema_id, id, firm_id, name) select schema_id, 77, firm_id, 'Vide'
     from grandlivre.folders where id = $1`,
    [folderId],
  )

async function events(): Promise<Record<string, number>> {
  const { rows } = await stage.owner.query(
    `select name || ' ' || operation as event, count(*)::integer as count from grandlivre.events group by 1`,
  )
  return Object.fromEntries(rows.map(({ event, count }) => [event, count]))
}

describe.each(['mad', 'tra'] as const)('import %s', (kind) => {
  const load = imports[kind]

  test('creates a new folder each time, in its own tenant, with the name from the file or the options', async () => {
    const [one, other] = [await load(), await load({ name: 'Copie' })]
    expect(new Set([one.schemaId, other.schemaId]).size).toBe(2)
    expect([one.name, other.name]).toEqual(['Brûlerie Noël', 'Copie'])
    expect(await ledgerContent(stage.owner, other.folderId)).toEqual(
      await ledgerContent(stage.owner, one.folderId),
    )
  })

  test('publishes the events of a new folder', async () => {
    const imported = await load()
    const found = await events()
    expect(found).toMatchObject({
      'accountingFolder CREATE': 1,
      'exercice CREATE': 2,
      'accountingLineEntry CREATE': imported.entries,
    })
    expect(found['accountingEntryLettering CREATE']).toBeGreaterThan(0)
  })

  test('fills a folder that has no ledger, and keeps the data of that folder', async () => {
    const { folderId, schemaId } = await load()
    await addEmptyFolder(folderId)
    const filled = await load({ folderId: '77' })
    expect(filled).toMatchObject({ schemaId, folderId: '77', name: 'Vide', created: false })
    expect(await ledgerContent(stage.owner, '77')).toEqual(await ledgerContent(stage.owner, folderId))
  })

  test('requires --replace for a folder that has nothing but journals', async () => {
    const { folderId } = await load()
    await addEmptyFolder(folderId)
    await stage.owner.query(
      `insert into grandlivre.journals (schema_id, folder_id, id, code, name, type)
       select schema_id, 77, 78, code, name, type from grandlivre.journals where folder_id = $1 limit 1`,
      [folderId],
    )
    await expect(load({ folderId: '77' })).rejects.toThrow(
      'Folder 77 (Vide) already holds a ledger: 0 entries, 0 accounts. Import with --replace to replace all of it',
    )
    await load({ folderId: '77', replace: true })
    expect(await ledgerContent(stage.owner, '77')).toEqual(await ledgerContent(stage.owner, folderId))
  })

  test('replaces a ledger only with --replace, and then replaces all of it', async () => {
    const { folderId, entries } = await load()
    const content = await ledgerContent(stage.owner, folderId)
    await stage.owner.query(
      `insert into grandlivre.accounts (schema_id, folder_id, id, number, name)
       select schema_id, id, 5, 'XYZ', 'Other' from grandlivre.folders where id = $1`,
      [folderId],
    )
    const before = await rowCounts(stage.owner)
    await stage.expectRefused(
      () => load({ folderId }),
      new RegExp(
        `^Folder ${folderId} \\(Brûlerie Noël\\) already holds a ledger: \\d+ entries, \\d+ accounts\\. `,
      ),
    )
    const replaced = await load({ folderId, replace: true })
    expect(replaced).toMatchObject({ folderId, created: false })
    expect(await ledgerContent(stage.owner, folderId)).toEqual(content)
    expect((await rowCounts(stage.owner))['accounts']).toBe(before['accounts']! - 1)
    // A TRA file has no ids, so all rows are new. Rows that the MAD file also has stay.
    const times = kind === 'mad' ? 1 : 2
    const found = await events()
    expect(found).toMatchObject({
      'exercice CREATE': 2 * times,
      'accountingLineEntry CREATE': times * entries,
    })
    expect(found['exercice DELETE']).toBe(kind === 'mad' ? undefined : 2)
    if (kind === 'mad') expect(found['accountingEntryLettering DELETE']).toBeUndefined()
    else expect(found['accountingEntryLettering DELETE']).toBeGreaterThan(0)
  })

  test('never changes a closed exercice', async () => {
    const { folderId } = await load()
    await stage.owner.query(`update grandlivre.exercices set closed_at = now() where folder_id = $1`, [
      folderId,
    ])
    await expect(load({ folderId, replace: true })).rejects.toThrow(
      /has closed the exercice 2023-01-01 to 2023-12-31: a closed exercice cannot be changed/,
    )
  })

  test('refuses the folder of another company and a folder that does not exist', async () => {
    const { folderId } = await load()
    await stage.owner.query(`update grandlivre.folders set siret = '987654321' where id = $1`, [folderId])
    await expect(load({ folderId, replace: true })).rejects.toThrow(
      `The ledger belongs to the company 12345678900011, but folder ${folderId} (Brûlerie Noël) to 987654321. ` +
        'Give another --folder, or omit --folder for a new one',
    )
    await expect(load({ folderId: '999999' })).rejects.toThrow('There is no folder 999999')
  })
})

test('a MAD file imported into its own folder keeps its ids, and only restored entries get events', async () => {
  const { folderId } = await stage.importMad(openMad)
  const { rows: gone } = await stage.owner.query(
    `delete from grandlivre.entries where id in (select min(id) from grandlivre.entries) returning id::text`,
  )
  const before = await events()
  await stage.importMad(openMad, { folderId, replace: true })
  const after = await events()
  expect(after['exercice CREATE']).toBe(before['exercice CREATE'])
  expect(after['exercice DELETE']).toBeUndefined()
  expect(after['accountingLineEntry CREATE']).toBe(before['accountingLineEntry CREATE']! + 1)
  const { rows } = await stage.owner.query(
    `select data ->> 'id' as id from grandlivre.events where name = 'accountingLineEntry' order by events.id desc limit 1`,
  )
  expect(rows).toEqual(gone)
})
