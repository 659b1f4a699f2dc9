/** What `grandlivre pull` says when something is wrong, and with which exit code it ends. */

import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ExportStage, setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import { until } from '../../../../../test/support/until.ts'
import { version } from '../../../src/version.ts'
import { accessOf, grandlivre, startGrandlivre } from '../../support/cli/command-line.ts'
import { type FaultyProxy, startFaultyProxy } from '../../support/client/faulty-proxy.ts'

let stage: ExportStage
let env: Record<string, string>
let proxy: FaultyProxy
let folder: string
let out: string
beforeAll(async () => {
  stage = await setExportStage()
  proxy = await startFaultyProxy(stage.service.url)
  env = accessOf(stage.service.url, stage.company)
})
afterAll(async () => {
  await proxy.close()
  await stage.close()
})
beforeEach(() => {
  proxy.fault = () => undefined
  folder = mkdtempSync(join(tmpdir(), 'grandlivre-pull-'))
  out = join(folder, 'out.ndjson')
  return () => rmSync(folder, { recursive: true })
})

const pull = (more: string[], access = env) => grandlivre(access, ['pull', '--out', out, ...more])

test('a year that several exercices start or end in is wrong usage, and they are listed', async () => {
  await stage.staff.client.query(
    `insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date)
     values (100, 111, 9001, '2030-07-01', '2031-06-30'), (100, 111, 9002, '2031-07-01', '2032-06-30')`,
  )
  expect(await pull(['--exercice', '2031'])).toMatchObject({
    code: 2,
    error: expect.stringMatching(
      /^--exercice 2031 may mean any of these; give the id of one:\n {2}9001 {2}2030-07-01 to 2031-06-30 .*\n {2}9002 /,
    ),
  })
  expect((await pull(['--exercice', '2032', '--json'])).code).toBe(0)
  const none = await pull(['--exercice', '1990', '--force'])
  expect(none).toMatchObject({
    code: 4,
    error: expect.stringMatching(/^The folder has no exercice 1990\nIt has:\n/),
  })
  expect(none.error).toContain('  9002  2031-07-01 to 2032-06-30')
})

test('a period that was mistyped leaves nothing that stops the mended command', async () => {
  const { error } = await pull(['--from', '2026-01-01', '--to', '2025-01-01'])
  expect(error).toContain('(ERR-VALIDATION)')
  expect(readdirSync(folder)).toEqual([])
  // As a kill before the first answer leaves them.
  writeFileSync(`${out}.part`, '')
  const about = 'An unfinished pull by grandlivre. The same command goes on with it.'
  const source = { baseUrl: proxy.url, society: '1', selection: { exercice: '1' } }
  const state = { about, ...source, etag: '', after: null, rows: 0, contentBytes: 0, fileBytes: 0 }
  writeFileSync(`${out}.part.json`, JSON.stringify({ ...state, pid: process.pid }))
  expect(await pull(['--from', '2025-01-01', '--to', '2025-03-31'])).toMatchObject({ code: 0 })
  expect(readdirSync(folder)).toEqual(['out.ndjson'])
})

test('after a full disk the same command goes on when there is room', async () => {
  const words = ['pull', '--exercice', '11', '--out', out]
  // No file may be longer than 8 KiB: the first write ends there, as on a disk that is full.
  const limited = { ...env, NODE_DISABLE_COMPILE_CACHE: '1' }
  const { code, error } = await startGrandlivre(limited, words, 'ulimit -c 0 -f 8').ended
  expect(code).toBe(7)
  expect(error).toContain(`There is no room for ${out}.part: EFBIG`)
  expect(error).toContain('\nMake room and run the same command: it goes on.')
  expect(existsSync(out)).toBe(false)
  expect((await pull(['--exercice', '11'])).code).toBe(0)
  expect(readdirSync(folder)).toEqual(['out.ndjson'])
})

test('Ctrl-C ends a pull with exit code 130 and says how to go on', async () => {
  proxy.fault = (path) =>
    path.includes('/mad/movements?') ? { kind: 'stall', afterBytes: 20_000 } : undefined
  const access = { ...env, GRANDLIVRE_URL: proxy.url }
  const run = startGrandlivre(access, ['pull', '--exercice', '11', '--out', out])
  await until(() => existsSync(`${out}.part.json`) && proxy.open() > 0)
  run.child.kill('SIGINT')
  const { code, error } = await run.ended
  expect([code, error]).toEqual([
    130,
    expect.stringContaining(`The same command goes on with ${out}.part.\n`),
  ])
  await until(() => proxy.open() === 0)
})

describe('a full export', () => {
  test('without a folder for temporary files ends with what to do', async () => {
    const missing = { ...env, TMPDIR: join(folder, 'none'), NODE_DISABLE_COMPILE_CACHE: '1' }
    const run = startGrandlivre(missing, ['pull', '--all', '--format', 'csv', '--out', '-'])
    const { code, error } = await run.ended
    expect([code, error]).toEqual([7, expect.stringContaining(`${missing.TMPDIR}, cannot be used: ENOENT`)])
    expect(error).toContain('\nSet TMPDIR to a folder that is there')
  })

  test('is made, downloaded and verified, compressed as the name of the file says', async () => {
    const path = join(folder, 'folder.csv.gz')
    const words = ['pull', '--all', '--format', 'csv', '--out', path]
    const { code, out: printed } = await grandlivre(env, [...words, '--json'])
    expect(code).toBe(0)
    const result = JSON.parse(printed)
    const content = gunzipSync(await readFile(path))
    expect(result).toMatchObject({
      file: path,
      contentBytes: content.length,
      isContentVerified: true,
      society: '111',
    })
    expect(readdirSync(folder)).toEqual(['folder.csv.gz'])
    const again = await grandlivre(env, [...words, '--force'])
    expect(again.error).toContain('The service had made this export within the last hour')
    expect(again.out).toContain(`SHA-256  ${result.sha256}\nWhole:   `)
  })

  test('does not replace a pull of movements that is unfinished under its name', async () => {
    proxy.fault = (path) =>
      path.includes('/mad/movements?') ? { kind: 'stall', afterBytes: 20_000 } : undefined
    const access = { ...env, GRANDLIVRE_URL: proxy.url }
    const interruption = new AbortController()
    const words = ['pull', '--exercice', '11', '--out', out]
    const run = grandlivre(access, words, { signal: interruption.signal })
    await until(() => existsSync(`${out}.part.json`) && proxy.open() > 0)
    interruption.abort(new Error('Interrupted'))
    expect((await run).code).toBe(130)
    const { code, error } = await pull(['--all', '--format', 'csv'])
    expect([code, error]).toEqual([
      7,
      expect.stringContaining(`${out}.part is an unfinished pull of movements\n`),
    ])
    expect((await pull(['--all', '--format', 'csv', '--force'])).code).toBe(0)
    expect(readdirSync(folder)).toEqual(['out.ndjson'])
  })
})

test('the overview lists the commands, and each has a help of at most 80 columns', async () => {
  const overview = await grandlivre({}, ['--help'])
  expect(overview.code).toBe(0)
  const names = [...overview.out.matchAll(/^ {2}([a-z]+( [a-z]+)?) {2}/gm)].map(([, name]) => name!)
  expect(names).toEqual(expect.arrayContaining(['login', 'profiles', 'doctor', 'pull']))
  for (const name of names) {
    const { code, out: help, error } = await grandlivre({}, [...name.split(' '), '--help'])
    expect([code, error]).toEqual([0, ''])
    expect(help).toContain(`Usage: grandlivre ${name}`)
    expect(help.split('\n').filter((line) => line.length > 80)).toEqual([])
  }
  expect(await grandlivre({}, ['--version'])).toEqual({ code: 0, out: `${version}\n`, error: '' })
  expect((await grandlivre({}, [])).code).toBe(2)
})
