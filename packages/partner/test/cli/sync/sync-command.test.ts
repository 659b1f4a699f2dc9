/** `grandlivre sync` and `verify` as their users meet them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { changeAtRandom, randomFrom } from '../../../../../test/support/changes/random-changes.ts'
import { until } from '../../../../../test/support/until.ts'
import { grandlivre, startGrandlivre } from '../../support/cli/command-line.ts'
import { openTestCopy, type SyncStage, setSyncStage, targetKinds } from '../../support/cli/sync-stage.ts'

let stage: SyncStage
beforeAll(async () => {
  stage = await setSyncStage()
})
afterAll(() => stage.close())

const sync = (...words: string[]) => grandlivre(stage.env, ['sync', ...words])

test('sync copies, copies what changed, and verify says that the copy is the ledger', async () => {
  const to = stage.address('ndjson')
  const first = await sync('--to', to)
  expect(first).toMatchObject({ code: 0 })
  expect(first.out).toMatch(/read in full: 400 entries, 1,000 movements; .*; cursor \S+\n$/)
  expect((await sync('--to', to)).out).toContain('no entry changed')
  await stage.change(`update entries set comment = 'x' where schema_id = 100 and folder_id = 111 and id = 17`)
  const { out } = await sync('--to', to, '--json')
  expect(JSON.parse(out)).toMatchObject({ inFull: false, entries: 1, removed: null })
  const verified = await grandlivre(stage.env, ['verify', '--to', to])
  expect(verified).toMatchObject({ code: 0 })
  expect(verified.out).toContain(`${to} has the movements of the ledger\n1,000 movements`)
  const [line] = readFileSync(to, 'utf8').split('\n')
  expect(JSON.parse(line!)).toMatchObject({ exercice: '12', draft: false, movement: { entry: {} } })
  const kept = JSON.parse(readFileSync(`${to}.state.json`, 'utf8'))
  expect([kept.accounts.length, kept.journals.length, kept.exercices.length]).toEqual([24, 5, 2])
  expect(existsSync(`${to}.lock`)).toBe(false)
})

test('--follow copies each change, and Ctrl-C ends it with exit code 0', async () => {
  const to = stage.address('sqlite')
  const { child, soFar, ended } = startGrandlivre(stage.env, ['sync', '--to', to, '--follow'])
  await until(() => soFar.error.includes('Following the ledger'))
  const random = randomFrom(5)
  for (let steps = 1; steps <= 3; steps += 1) {
    await stage.change(
      `update entries set comment = 'step ${steps}' where schema_id = 100 and folder_id = 111 and id = 24`,
    )
    await until(() => soFar.out.split('\n').length > steps + 1)
  }
  await changeAtRandom(stage.staff.client, stage.ledger, random)
  child.kill('SIGINT')
  expect(await ended).toMatchObject({
    code: 0,
    error: expect.stringContaining('Stopped. The same command goes on'),
  })
  const copy = await openTestCopy(stage, to)
  await copy.bring()
  expect(await stage.differences(copy.target)).toEqual([])
  await copy.target.close()
})

test('--exercice keeps one exercice, and a copy stays what it is', async () => {
  const to = stage.address('sqlite')
  expect(await sync('--to', to, '--exercice', '2024')).toMatchObject({ code: 0 })
  const copy = await openTestCopy(stage, to)
  expect((await copy.target.state('copy'))!.parts.map(({ exercice }) => exercice)).toEqual(['12', '12'])
  await copy.target.close()
  const other = await sync('--to', to)
  expect(other).toMatchObject({ code: 1 })
  expect(other.error).toContain('is a copy of the exercice 12 of the folder 111 at')
})

test('a target that another sync writes is refused, and one that a killed sync left is taken over', async () => {
  const to = stage.address('sqlite')
  const copy = await openTestCopy(stage, to)
  const lock = readFileSync(`${to}.lock`, 'utf8')
  const beside = startGrandlivre(stage.env, ['sync', '--to', to])
  expect(await beside.ended).toMatchObject({
    code: 1,
    error: expect.stringMatching(/^Another sync, process \d+ on \S+, writes .*\nWait for its end\./),
  })
  await copy.target.close()
  writeFileSync(`${to}.lock`, lock.replace(/"pid":\d+/, `"pid":${beside.child.pid}`))
  expect(await sync('--to', to)).toMatchObject({ code: 0 })
  const address = stage.address('postgres')
  const held = await openTestCopy(stage, address)
  expect((await sync('--to', address)).error).toMatch(/^Another sync writes the schema copy_\d+ of/)
  await held.target.close()
})

test('what cannot be a target is refused with what to do', async () => {
  const text = join(stage.out, 'notes.db')
  writeFileSync(text, 'These are notes, and no database at all. '.repeat(50))
  const lines = join(stage.out, 'lines.ndjson')
  writeFileSync(lines, '{}\n')
  const cases: [words: string[], code: number, error: string][] = [
    [[], 2, '--to <target> is missing: where the copy is'],
    [['--to', 'ledger.xlsx'], 2, '--to ledger.xlsx names no kind of target'],
    [['--to', 'mysql://me:secret@host/books'], 2, '--to mysql://host/books names no kind'],
    [['--to', join(stage.out, 'no/ledger.sqlite')], 1, "Create it: mkdir -p '"],
    [['--to', text], 1, 'is no SQLite database'],
    [['--to', lines], 1, 'does not say what it holds'],
    [['--to', 'postgres://nobody@127.0.0.1:9/x'], 1, 'The database does not answer'],
    [['--to', 'postgres://a@127.0.0.1/x?schema=A;b'], 1, 'cannot be the schema of a copy'],
    [['--to', stage.database.ownerUrl.replace('?', '?schema=grandlivre&')], 1, 'holds something else'],
    [['--to', stage.address('ndjson'), '--exercice', '1999'], 1, 'no exercice 1999'],
  ]
  for (const [words, code, error] of cases) {
    const result = await sync(...words)
    expect(result, words.join(' ')).toMatchObject({ code, error: expect.stringContaining(error) })
  }
  const early = await grandlivre(stage.env, ['verify', '--to', stage.address('sqlite')])
  expect(early).toMatchObject({ code: 1, error: expect.stringContaining('There is no copy in') })
  expect(existsSync(stage.address('sqlite'))).toBe(false)
})

// Last: it makes the answers of the folder long.
test('accounts of more than 20 MB are copied', async () => {
  await stage.change(
    `insert into accounts (schema_id, folder_id, id, number, name)
     select 100, 111, 1000000 + n, '471' || n, repeat('x', 1000) from generate_series(1, 20000) n;
     analyze accounts`,
  )
  for (const kind of targetKinds) {
    const { code, error } = await sync('--to', stage.address(kind))
    expect([kind, code, error]).toEqual([kind, 0, expect.any(String)])
  }
})
