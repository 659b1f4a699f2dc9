/** The two programs in the chapter "A copy that stays right" of docs/partners.md, run as they stand there. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { environment } from '../support/process.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'

let stage: ExportStage
let folder: string

beforeAll(async () => {
  stage = await setExportStage()
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-page-'))
  const page = await readFile(resolve(import.meta.dirname, '../../docs/partners.md'), 'utf8')
  const programs = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, program]) => program!)
  expect(programs).toHaveLength(2)
  for (const [place, name] of ['apply.mjs', 'compare.mjs'].entries()) await save(name, programs[place]!)
})

afterAll(async () => {
  await stage?.close()
  if (folder) await rm(folder, { recursive: true })
})

const save = (name: string, text: string) => writeFile(join(folder, name), text)
const year = { idExercice: '12' }
const ofYear = 'schema_id = 100 and folder_id = 111 and exercice_id = 12'
const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)

async function ask(query: Record<string, string>, path = 'movements') {
  const url = movementsUrl(stage.service.url, { ...year, ...query }).replace('/movements', `/${path}`)
  const Accept = path === 'movements' ? 'application/x-ndjson' : 'application/json'
  const { text, headers } = await download(url, { ...stage.company, Accept })
  return { text, cursor: String(headers['x-ledger-cursor']) }
}

/** @returns the lines that it printed */
function run(program: string): string[] {
  const { stdout, stderr, status } = spawnSync(process.execPath, [program], {
    cwd: folder,
    encoding: 'utf8',
    env: environment,
  })
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  return stdout.split('\n').slice(0, -1)
}

test('the copy that they change is the ledger, and they find what differs', async () => {
  const before = await ask({})
  await save('movements.ndjson', before.text)
  await change(`update entries set comment = 'x' where ${ofYear} and id % 4 = 0;
    delete from entries where ${ofYear} and id in (select id from entries where ${ofYear} order by id desc limit 2)`)
  await save('changes.ndjson', (await ask({ since: before.cursor })).text)
  const after = await ask({})
  expect(after.text).not.toBe(before.text)
  expect(run('apply.mjs')).toEqual([after.cursor])
  expect(await readFile(join(folder, 'movements.ndjson'), 'utf8')).toBe(after.text)

  const blocks = await ask({}, 'movements/blocks')
  expect(blocks.cursor).toBe(after.cursor)
  await save('blocks.json', blocks.text)
  expect(run('compare.mjs')).toEqual([])
  await save('movements.ndjson', after.text.replace('\n', ' \n'))
  const [{ from, to }] = JSON.parse(blocks.text)
  expect(run('compare.mjs')).toEqual([`${from}-${to}`])
})
