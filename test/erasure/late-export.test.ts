/** A request saw a folder just before it was hidden, and inserted an export just after that. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
let dataDir: string
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-late-export-'))
})
afterAll(() => rm(dataDir, { recursive: true, force: true }))

test('the file of an export that ends late is deleted too, and the receipt names the export', async () => {
  const { schemaId, firmId, folderId } = folders.first
  const exportId = `export_${'0'.repeat(32)}`
  await staff.sql('update grandlivre.folders set erased_at = now() where id = $1', [folderId])
  await staff.sql(
    `insert into grandlivre.erasures (kind, id, of_schema, of_firm) values ('folder', $1, $2, $3)`,
    [folderId, schemaId, firmId],
  )
  await staff.sql(
    `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id)
     values ($1, $2, $3, '1.0.0', 'CSV', $4, 'late')`,
    [schemaId, exportId, folderId, '0'.repeat(64)],
  )
  const files = join(dataDir, 'files', 'exports', schemaId, exportId)
  await mkdir(files, { recursive: true })
  await writeFile(join(files, `1-${'0'.repeat(16)}.csv`), 'content of books')
  const { code, out } = await cli(
    { ownerUrl: database.ownerUrl, env: { DATA_DIR: dataDir } },
    ...['folder', 'delete', folderId, '--yes'],
  )
  expect([code, JSON.parse(out)]).toMatchObject([0, { gone: { exports: 1 }, exportIds: [exportId] }])
  const left = await readdir(join(dataDir, 'files'), { recursive: true, withFileTypes: true })
  expect(left.filter((each) => each.isFile())).toEqual([])
})
