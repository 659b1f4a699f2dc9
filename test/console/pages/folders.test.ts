/** What staff see of folders in the console. */
import { expect, test } from 'vitest'
import type { Opened } from '../../../src/auth/tokens.sql.ts'
import { setConsoleStage, signInStaff } from '../../support/console/console-stage.ts'
import { forTests } from '../../support/for-tests.ts'
import { ended, trigger } from '../../support/full-export.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setConsoleStage)
const staff = forTests(() => signInStaff(stage))

test('a folder is shown with its fiscal years, the partners that read it, and the evidence of its last full export', async () => {
  const { body } = await trigger(stage.service.url, stage.company)
  const job = await ended(stage.service.url, stage.company, body.id)
  const { text } = await staff.open('/folders/111')
  const counted = await stage.staff.sql(
    `select x.id, count(distinct entry_id)::int as entries, count(m.id)::int as movements
     from exercices x left join movements m on m.folder_id = x.folder_id and m.exercice_id = x.id
     where x.folder_id = 111 group by x.id`,
  )
  for (const { id, entries, movements } of counted)
    expect(text).toMatch(
      new RegExp(
        `scope="row">${id}</th>[\\s\\S]*?class="number">${entries}</td>\\s*<td class="number">${movements}<`,
      ),
    )
  expect(text).toContain('&quot;L&#39;Œuf&quot;')
  expect(text).toContain(job.sha256)
  expect(text).toContain(job.totals!.debit.toFixed(2))
  expect(text).toContain('<a href="/console/partners/PARTNER">PARTNER</a>')
})

test('a folder lists the tokens that open it, without revoked ones', async () => {
  const opening = (folder: Opened) => stage.staff.token('PARTNER', 'api', folder)
  const [inUse, revoked] = [await opening(folders.sameFirm), await opening(folders.sameFirm)]
  await opening(folders.otherTenant)
  await stage.staff.sql('update tokens set revoked_at = now() where id = $1', [revoked.id])
  const { text } = await staff.open(`/folders/${folders.sameFirm.folderId}`)
  const readers = text.slice(text.indexOf('<h2>Who may read it</h2>'), text.indexOf('<h2>Audit'))
  const levels = [...readers.matchAll(/scope="row">(\d+)[\s\S]*?>(api|firm)</g)].map(([, id, level]) => [
    id,
    level,
  ])
  expect(levels).toEqual([
    [inUse.id, 'api'],
    [expect.any(String), 'firm'],
  ])
})

test('a folder lists who read it, with the evidence of its last stream', async () => {
  const { url } = stage.service
  const address = `${url}/api/v1/mad/movements?version=1.0.0&idExercice=12`
  await (await fetch(address, { headers: stage.company })).arrayBuffer()
  const readRow = async () => {
    const rows = await stage.staff.sql(
      `select sha256, cursor, rows from audit_rows where folder_id = 111 and act = 'GET /api/v1/mad/movements'`,
    )
    return rows[0]
  }
  await until(async () => (await readRow()) !== undefined)
  const { sha256, cursor, rows } = await readRow()
  const { text } = await staff.open('/folders/111')
  const stream = text.slice(text.indexOf('<h2>Last stream</h2>'))
  for (const evidence of [
    sha256,
    cursor,
    `<dd>${rows}</dd>`,
    '<a href="/console/partners/PARTNER">PARTNER</a>',
  ])
    expect(stream).toContain(evidence)
  expect(text).toMatch(/Triggered by <a href="\/console\/partners\/PARTNER">/)
})

test('the time of the last change comes from the log of changes; after a change that is not logged, only a lower bound is shown', async () => {
  await stage.staff.sql(`update entries set comment = 'changed' where folder_id = 112 and id = (
    select min(id) from entries where folder_id = 112)`)
  expect((await staff.open('/folders/112')).text).toMatch(/Last change<\/dt>\s*<dd><time/)
  await stage.staff.sql(`update folders set name = 'Renamed' where id = 112`)
  expect((await staff.open('/folders/112')).text).toMatch(/Last change<\/dt>\s*<dd>after <time/)
})

test('a year of more than 10,000 entries shows no exact counts until a stream has counted its movements', async () => {
  await stage.staff.sql(
    `insert into exercices (schema_id, folder_id, id, start_date, end_date)
     values (100, 112, 990, '2030-01-01', '2030-12-31')`,
  )
  await stage.staff.sql(
    `insert into entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at,
       validated_at, source, currency)
     select schema_id, folder_id, 5000000 + i, 990, journal_id, '2030-02-01', '2030-02-01', now(), '2030-02-01', source,
       currency
     from (select * from entries where folder_id = 112 order by id limit 1) as e, generate_series(1, 10500) as i`,
  )
  await stage.staff.sql(
    `insert into movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description,
       invoice_number, debit, credit)
     select schema_id, folder_id, 990, 5000000 + i, 6000000 + i * 2 + side, account_id, '', '', 100 * side, 100 - 100 * side
     from (select * from movements where folder_id = 112 order by id limit 1) as m,
       generate_series(1, 10500) as i, generate_series(0, 1) as side`,
  )
  const countsOf = async () => {
    const { text } = await staff.open('/folders/112')
    const row = /scope="row">990<\/th>([\s\S]*?)<\/tr>/.exec(text)![1]!
    return [...row.matchAll(/class="number">([^<]*)</g)].map(([, count]) => count)
  }
  expect(await countsOf()).toEqual(['more than 10,000', 'more than 10,000'])
  const address = `${stage.service.url}/api/v1/mad/movements?version=1.0.0&idExercice=990`
  const headers = { ...stage.firm, 'society-id': '112', Accept: 'application/x-ndjson' }
  await (await fetch(address, { headers })).arrayBuffer()
  await until(async () => (await countsOf())[1] === '21,000')
  expect(await countsOf()).toEqual(['about 10,500', '21,000'])
  await stage.staff.sql(`update entries set comment = 'later' where folder_id = 112 and id = 5000001`)
  expect((await countsOf())[1]).toMatch(/^21,000 at version [\d,]+$/)
})

test('folders are found by id, and by part of their name or reference', async () => {
  const found = async (search: string) => {
    const { text } = await staff.open(`/folders?search=${encodeURIComponent(search)}`)
    return [...text.matchAll(/scope="row"><a href="\/console\/folders\/(\d+)"/g)].map(([, id]) => id)
  }
  expect(await found('')).toEqual(['111', '112', '121', '211'])
  expect(await found('211')).toEqual(['211'])
  expect(await found("l'ŒUF")).toEqual(['111'])
  expect(await found('folder 12')).toEqual(['121'])
  expect(await found('%')).toEqual([])
})

test('folders of every tenant are listed page by page', async () => {
  await stage.staff.sql(`insert into folders (schema_id, id, firm_id, name)
    select 200, 800000 + i, 210, 'Listed ' || i from generate_series(1, 60) as i`)
  const first = await staff.open('/folders?search=listed')
  expect(first.text).toContain('800050')
  expect(first.text).not.toContain('800051')
  expect((await staff.next(first)).text).toContain('800060')
})

test('hostile names of folders and firms are shown as text', async () => {
  const hostile = `<img src=x onerror=alert(1)> "a" 'b' \u202e \u0007 ${'w'.repeat(5000)}`
  await stage.staff.sql('update folders set name = $1, reference = $1 where id = 121', [hostile])
  await stage.staff.sql('update firms set name = $1 where id = 120', [hostile])
  for (const path of ['/folders', '/folders/121']) {
    const { text } = await staff.open(path)
    expect(text, path).not.toMatch(/<img|\u202e/)
    expect(text, path).toContain('&lt;img src=x onerror=alert(1)&gt;')
    expect(text, path).not.toContain('w'.repeat(1000))
  }
})

test('forms create a firm and a folder, and move the folder after a confirmation', async () => {
  const firm = await staff.submit('/firms', '/firms', { name: 'Made <here>', siret: '', beside: '110' })
  expect(firm.status).toBe(200)
  const [, firmId] = /<h1>Firm (\d+): <bdi>Made &lt;here&gt;<\/bdi><\/h1>/.exec(firm.text)!
  const path = `/firms/${firmId}`
  const folder = await staff.submit(path, `${path}/folders`, {
    name: 'A folder',
    reference: '',
    siret: '732829320',
  })
  const [, folderId] = /<h1>Folder (\d+): <bdi>A folder<\/bdi><\/h1>/.exec(folder.text)!
  expect(folder.text).toContain('732829320')
  expect((await staff.open('/firms')).text).toContain(`<a href="/console/firms/${firmId}">`)
  expect((await staff.open(path)).text).toContain(`<a href="/console/folders/${folderId}">`)
  const move = `/folders/${folderId}/move`
  const moved = await staff.submit(move, move, { firm: '110' })
  expect(moved.text).toContain(`Folder ${folderId} is of firm 110 now.`)
  const wrong = await staff.submit(move, move, { firm: '210' })
  expect([wrong.status, wrong.text]).toEqual([409, expect.stringContaining('Firm 210 is in another tenant')])
  expect((await staff.open('/firms/999')).status).toBe(404)
})
