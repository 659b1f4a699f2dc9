import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { smallEntries, smallParameters } from '../support/imports/small-tra.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'grandlivre-inspect-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

/** Needs no database: there is none at this address. */
function inspect(file: string): ReturnType<typeof cli> {
  return cli('postgres://nobody@127.0.0.1:1/none', 'inspect', 'tra', file)
}

function written(name: string, ...parts: Buffer[]): string {
  const file = join(directory, name)
  writeFileSync(file, Buffer.concat(parts))
  return file
}

test('a valid file gets a summary: header, records, journals, dates', async () => {
  const { code, out, error } = await inspect(written('sound.tra', ...smallParameters(), ...smallEntries()))
  expect([code, error]).toEqual([0, ''])
  for (const line of [
    'TRA 011 DOS ETE made 2024-04-02 09:05 by Grandlivre',
    'Firm: Cabinet Lefèvre',
    'Folder: Société Bérénice',
    'CGN           7',
    'ANALYTIC      2',
    'BQ       Banque          2  1200,00  1200,00     0,00',
    '         in all          5  2400,00  2400,00     0,00',
    '2 entries from 2024-03-15 to 2024-03-15, 2 analytic lines',
    'Lettering: 2 movements complete, 0 partial',
    'No problem found',
  ])
    expect(out.split('\n')).toContain(line)
})

test.each<[string, (bytes: Buffer) => Buffer]>([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
])('a file compressed by %s gets the same summary', async (_, compress) => {
  const lines = [...smallParameters(), ...smallEntries()]
  const plain = await inspect(written('plain.tra', ...lines))
  expect(plain.code).toBe(0)
  expect(await inspect(written('compressed', compress(Buffer.concat(lines))))).toEqual(plain)
})

test('problems are printed with line and column, and the exit code is 1', async () => {
  const file = written('unbalanced.tra', ...smallParameters(), ...smallEntries().slice(0, -1))
  const { code, out } = await inspect(file)
  expect(code).toBe(1)
  expect(out).toMatch(/^1 problem:\n {2}line 41, column 152, ENTRY\.NUMEROPIECE "2": the debits .* 1200,00$/m)
  expect(out).toContain('BQ       Banque          1  1200,00     0,00  1200,00')
})

test('terminal escapes in a file are printed as text, not executed', async () => {
  const [header, folder, ...others] = smallParameters()
  const hostile = Buffer.from(folder!.toString('latin1').replace('Soci\xe9t\xe9', 'A\x1b[2J\x9bB'), 'latin1')
  const { code, out } = await inspect(written('hostile.tra', header!, hostile, ...others, ...smallEntries()))
  expect(code).toBe(1)
  expect(out).toContain('Folder: A\\x1b[2J')
  expect(out).not.toContain('\x1b')
  expect(out).toContain('line 2, column 8 "0x1b"')
})

test('a file that is not TRA is reported as one problem', async () => {
  const { code, out } = await inspect(written('export.json', Buffer.from('{"metadata":{}}')))
  expect(code).toBe(1)
  expect(out).toBe(
    '1 problem:\n  line 1, column 1 "{"metadata":{}}": this is not a TRA file, which begins with ***\n',
  )
})

test('a missing file and a folder are reported', async () => {
  const file = join(directory, 'none.tra')
  expect(await inspect(file)).toEqual({ code: 1, out: '', error: `There is no file ${file}\n` })
  expect(await inspect(directory)).toMatchObject({ code: 1, error: `There is no file ${directory}\n` })
})
