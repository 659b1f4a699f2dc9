/** The example that keeps a copy right, against the whole service: after each run its copy is the ledger, byte for byte. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { addLargeExercice, largeExercice } from '../support/ledgers/large-exercice.ts'
import { environment } from '../support/process.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'
import { until } from '../support/until.ts'

let stage: ExportStage
let out: string
let file: string
let cursorFile: string

beforeAll(async () => {
  stage = await setExportStage()
  await addLargeExercice(stage.staff.client, 5_000)
  // The newest year of the folder.
  await change(`update exercices set end_date = '2040-12-31' where id = 99;
    update entries set date = '2040-03-01' where ${ofYear};
    update exercices set start_date = '2040-01-01' where id = 99`)
  out = await mkdtemp(join(tmpdir(), 'grandlivre-follow-'))
  file = join(out, `ledger-${largeExercice}.ndjson`)
  cursorFile = join(out, `ledger-${largeExercice}.cursor`)
})

afterEach(() => follower?.kill('SIGKILL'))

afterAll(async () => {
  await stage?.close()
  if (out) await rm(out, { recursive: true, force: true })
})

const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
const ofYear = 'schema_id = 100 and folder_id = 111 and exercice_id = 99'

/** Entries are 1000000 to 1000499, with ten movements each. */
const edit = `update entries set comment = coalesce(comment, '') || 'x' where ${ofYear} and id % 100 = 7;
  delete from entries where ${ofYear} and id = (select min(id) from entries where ${ofYear});
  update movements set entry_id = entry_id + 1 where ${ofYear} and id % 1000 = 555`

function start(words: string[] = [], url = stage.service.url) {
  const argv = ['examples/follow-ledger.ts', '--out', out, ...words]
  const env = {
    ...environment,
    GRANDLIVRE_URL: url,
    GRANDLIVRE_TOKEN: stage.company['Authorization']!.replace('Bearer ', ''),
    GRANDLIVRE_SECRET: stage.company['X-Third-Party-Secret'],
  }
  const child = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { out: '', error: '' }
  child.stdout.on('data', (chunk) => {
    output.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.error += chunk
  })
  return { child, output }
}

let follower: ChildProcess | undefined

async function runOnce(): Promise<{ exitCode: number; out: string; error: string }> {
  const { child, output } = start(['--once'])
  const [exitCode] = await once(child, 'close')
  return { exitCode, ...output }
}

async function ledger() {
  const url = movementsUrl(stage.service.url, { idExercice: largeExercice })
  const { text, headers } = await download(url, { ...stage.company, Accept: 'application/x-ndjson' })
  return { text, cursor: headers['x-ledger-cursor'] }
}

async function blocks() {
  const url = movementsUrl(stage.service.url, { idExercice: largeExercice })
  return (await download(url.replace('/movements', '/movements/blocks'), stage.company)).json
}

const copy = async () => ({ text: await readFile(file, 'utf8'), cursor: await readFile(cursorFile, 'utf8') })

/** @returns what the program printed at the beginning of its lines */
async function expectCopyAfterRun(): Promise<string[]> {
  const ran = await runOnce()
  expect(ran).toMatchObject({ exitCode: 0, error: '' })
  expect(await copy()).toEqual(await ledger())
  expect((await readdir(out)).toSorted()).toEqual([`ledger-99.cursor`, `ledger-99.ndjson`])
  return ran.out.split('\n').flatMap((line) => /^(?!A copy|---|The copy| {2}).+?(?= {2}|$)/.exec(line) ?? [])
}

test('it pulls the year once, and then only what has changed', async () => {
  expect(await expectCopyAfterRun()).toEqual(['pulled in full', 'equal in all 5 blocks'])
  expect(await expectCopyAfterRun()).toEqual(['nothing changed', 'equal in all 5 blocks'])
  await change(edit)
  expect(await expectCopyAfterRun()).toEqual(['what has changed', 'equal in all 5 blocks'])
  // No line shows a bank: the cursor moves alone.
  await change(`update banks set is_default = is_default where schema_id = 100 and folder_id = 111`)
  expect(await expectCopyAfterRun()).toEqual(['nothing changed', 'equal in all 5 blocks'])
  // More than a tenth: all lines again, by the same rule.
  await change(
    `update accounts set name = 'Autre nom' where schema_id = 100 and folder_id = 111 and id = 101`,
  )
  expect(await expectCopyAfterRun()).toEqual(['what has changed', 'equal in all 5 blocks'])
})

test.each([
  ['a changed letter', (text: string) => text.replace('"description":"', '"description":"é')],
  ['a missing line', (text: string) => text.slice(text.indexOf('\n') + 1)],
  ['a broken line', (text: string) => text.replace('"entry"', '')],
  ['a line twice', (text: string) => text + text.slice(0, text.indexOf('\n') + 1)],
  // The last line of the first block: that block has the same lines in the same order.
  [
    'a line in the wrong place',
    (text: string, rows: number) => {
      const [moved] = text.split('\n').slice(rows - 1)
      return `${text.replace(`${moved}\n`, '')}${moved}\n`
    },
  ],
  ['a torn end', (text: string) => text.slice(0, -100)],
  ['no lines at all', () => ''],
])('%s in the copy is found and read again, without the rest', async (what, damage) => {
  await runOnce()
  const [firstBlock] = await blocks()
  await writeFile(file, damage((await copy()).text, firstBlock.rows))
  const [unchanged, difference, ...repaired] = await expectCopyAfterRun()
  expect(unchanged).toBe('nothing changed')
  expect(difference).toBe(`${what === 'no lines at all' ? 5 : 1} of 5 blocks differ from the ledger`)
  expect(repaired).toEqual(['read again', 'equal in all 5 blocks'])
})

test('changes that begin before the state of the copy fit it, too', async () => {
  await runOnce()
  const { cursor } = await copy()
  await change(edit)
  await runOnce()
  await change(edit)
  await writeFile(cursorFile, cursor)
  expect(await expectCopyAfterRun()).toEqual(['what has changed', 'equal in all 5 blocks'])
})

test('it pulls in full if the changes are forgotten, or the copy is not there', async () => {
  await runOnce()
  await change(`${edit}; select forget_ledger_changes(clock_timestamp(), 100000)`)
  const [refusal, ...rest] = await expectCopyAfterRun()
  expect(refusal).toMatch(/^GET .*: 410 ERR-CURSOR-EXPIRED: /)
  expect(rest).toEqual(['pulled in full', 'equal in all 5 blocks'])
  await rm(file)
  expect(await expectCopyAfterRun()).toEqual(['pulled in full', 'equal in all 5 blocks'])
})

test('a cursor of another ledger is refused, and leaves the copy as it is', async () => {
  await runOnce()
  const { text, cursor } = await copy()
  await writeFile(cursorFile, `9${cursor}`)
  const { exitCode, error } = await runOnce()
  expect(exitCode).toBe(1)
  expect(error).toMatch(
    /400 ERR-VALIDATION.*\n {2}since .*\nIf .*ledger-99\.cursor is not of this ledger, remove it/,
  )
  expect(await copy()).toEqual({ text, cursor: `9${cursor}` })
  await writeFile(cursorFile, cursor)
})

test('it follows the ledger through a time in which the service is away', async () => {
  const between = createServer((socket) => {
    const upstream = connect(Number(new URL(stage.service.url).port), '127.0.0.1')
    for (const end of [socket, upstream]) end.on('error', () => {})
    between.once('away', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
    socket.pipe(upstream).pipe(socket)
  })
  await once(between.listen(0, '127.0.0.1'), 'listening')
  const { port } = between.address() as AddressInfo
  const { child, output } = start([], `http://127.0.0.1:${port}`)
  follower = child
  await until(() => output.out.includes('The copy is the ledger') || child.exitCode !== null)
  await Promise.all([once(between.close(), 'close'), between.emit('away')])
  await change(edit)
  await until(() => output.out.includes('; asking again') || child.exitCode !== null)
  await once(between.listen(port, '127.0.0.1'), 'listening')
  const expected = await ledger()
  await until(async () => child.exitCode !== null || (await readFile(cursorFile, 'utf8')) === expected.cursor)
  expect([await copy(), output.error]).toEqual([expected, ''])
  between.close().emit('away')
})

test('it follows the ledger until the fiscal year is gone, and then removes the copy', async () => {
  const { child, output } = start()
  follower = child
  const ended = once(child, 'close')
  await until(() => output.out.includes('The copy is the ledger') || child.exitCode !== null)
  for (let time = 0; time < 3; time += 1) {
    await change(edit)
    const expected = await ledger()
    await until(async () => (await readFile(cursorFile, 'utf8')) === expected.cursor)
    expect(await copy()).toEqual(expected)
  }
  await change(`delete from entries where ${ofYear}; delete from exercices where id = 99`)
  expect(await ended).toEqual([1, null])
  expect(output.error).toBe('The fiscal year is gone from the ledger, so its copy was removed\n')
  expect(await readdir(out)).toEqual([])
})
