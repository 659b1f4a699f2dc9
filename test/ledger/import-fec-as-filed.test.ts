/** import fec: every field of every line is kept as it was filed, and what is not as in the file is reported. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type FecImported, importFec } from '../../src/ledger/fec/import-fec.ts'
import { expectFixture, fixturePath, readFixture } from '../support/fixtures/fixture-files.ts'
import { columns, fecFile, forms, ledger } from '../support/ledgers/fec-file.ts'
import { fecImports } from '../support/ledgers/fec-imports.ts'
import { haveRealLedgers, realLedgers } from '../support/ledgers/real-ledgers.ts'
import { keptFec, plainFec } from '../support/plain/plain-fec.ts'

const { importFile, importRows, pool } = fecImports()

const dialects = readdirSync(fixturePath('fec'))
  .filter((name) => name.endsWith('.expected.txt'))
  .map((name) => name.replace('.expected.txt', ''))

/** What came of a file: accounts with their identity, entries, attachments, and what the import reports. */
async function outcome(imported: FecImported): Promise<object> {
  const { rows: accounts } = await pool().query(
    `select a.number, a.name, concat_ws(' ', filed_number, auxiliary_number) as filed,
       case when c.account_id is not null then 'company' when w.account_id is not null then 'employee' end as party
     from grandlivre.accounts a
     left join grandlivre.companies c on c.account_id = a.id left join grandlivre.employees w on w.account_id = a.id
     where a.folder_id = $1 order by number`,
    [imported.folderId],
  )
  const { rows: entries } = await pool().query(
    `select min(concat_ws(' ', j.code, e.date, 'number', coalesce(e.number, '-'), 'validated',
         coalesce(e.validated_at::text, '-'), e.currency, trim_scale(e.rate))) as entry,
       array_agg(concat_ws(' ', a.number, m.debit, m.credit, m.lettering_code, m.free_number) order by m.id) as movements
     from grandlivre.entries e join grandlivre.movements m on m.entry_id = e.id
     join grandlivre.journals j on j.id = e.journal_id join grandlivre.accounts a on a.id = m.account_id
     where e.exercice_id = $1 group by e.id order by e.id`,
    [imported.exerciceId],
  )
  const { rows: attached } = await pool().query(
    'select attachments from grandlivre.movements where exercice_id = $1 and attachments is not null order by id',
    [imported.exerciceId],
  )
  const { lines, unbalancedEntries, movedOpeningLines, entriesWithoutValidDate, isScattered } = imported
  return {
    encoding: imported.encoding,
    ...{ lines, unbalancedEntries, movedOpeningLines, entriesWithoutValidDate, isScattered },
    auxiliaryLines: Object.fromEntries([...imported.auxiliaryLines].toSorted()),
    renumberedAccounts: imported.renumberedAccounts,
    filedColumns: imported.filedColumns,
    droppedTimes: Object.fromEntries(imported.droppedTimes),
    accounts: accounts.map(({ number, name, filed, party }) =>
      `${number} ${name} (${filed}) ${party ?? ''}`.trim(),
    ),
    entries: entries.map(({ entry, movements }) => [entry, ...movements]),
    attachments: attached.map((row) => row.attachments),
  }
}

const asText = (rows: string[][]) => rows.map((fields) => `${fields.join('\t')}\r\n`).join('')

test.each(dialects)('the file %s is kept line by line, and becomes what stands beside it', async (name) => {
  const options = { name, start: '2023-01-01', end: '2023-12-31' }
  const imported = await importFec(pool(), { ...options, file: fixturePath(`fec/${name}.txt`) })
  expect(asText(await keptFec(pool(), imported.exerciceId))).toBe(
    readFixture(`fec/${name}.expected.txt`).toString('utf8'),
  )
  const found = JSON.stringify(await outcome(imported), null, 1)
  expectFixture(`fec/${name}.json`, Buffer.from(`${found}\n`))
})

test.skipIf(!haveRealLedgers)('real ledgers are kept in every field of every line', async () => {
  for (const { file, lines } of realLedgers) {
    const imported = await importFec(pool(), { file })
    const kept = await keptFec(pool(), imported.exerciceId)
    expect(kept).toHaveLength(lines + 1)
    expect(kept).toEqual(plainFec(readFileSync(file)))
  }
})

test('every form of a ledger file is kept as the same lines', async () => {
  const plain = plainFec(fecFile(ledger))
  for (const [name, form] of Object.entries(forms)) {
    const imported = await importFile(fecFile(ledger, form), { replace: true })
    const kept = await keptFec(pool(), imported.exerciceId)
    expect(
      kept.map((fields) => fields.slice(0, columns.length)),
      name,
    ).toEqual(plain)
  }
})
