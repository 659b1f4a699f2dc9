/** The clients in Python and Go that copy a firm write what was sent, and nothing if the answer is false. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { readLedgers } from '../support/changes/ledger-stream.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forTests } from '../support/for-tests.ts'
import { firmAccess, runProgram } from '../support/guides/run-program.ts'
import { isInstalled } from '../support/guides/tools.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setExportStage } from '../support/stages/export-stage.ts'

const stage = forTests(setExportStage)
const folder = forTests(() => openFolder('firm'))
/** The whole answer of the service. */
let honest: string

beforeAll(async () => {
  await stage.staff.client.query(
    `update grandlivre.movements set description = E'tab\\t line\\n back\\\\slash \\\\N é' where id % 7 = 0`,
  )
  const url = `${stage.service.url}/api/v1/mad/ledgers/changes?version=1.0.0`
  const headers = { ...stage.firm, 'Content-Type': 'application/json' }
  honest = await (await fetch(url, { method: 'POST', headers, body: '{}' })).text()
})

/** Reads a value in the text format of COPY. */
function unescaped(text: string): string | null {
  const signs: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }
  return text === '\\N' ? null : text.replace(/\\(.)/g, (_, sign) => signs[sign] ?? sign)
}

function expectedCopy() {
  const columnsOf = Object.fromEntries(
    honest
      .split('\n')
      .filter((line) => line.startsWith('{"table"'))
      .map((line) => [JSON.parse(line).table, JSON.parse(line).columns]),
  )
  const { ledgers } = readLedgers(honest)
  expect(ledgers.map(({ society }) => society)).toEqual([folders.first.folderId, folders.sameFirm.folderId])
  const tableOf = ([name, rows]: [string, string[]]) => {
    const columns: string[] = columnsOf[name]
    const values = rows.map((row) => row.split('\t').map(unescaped))
    const key = Math.max(columns.indexOf('movement_id'), 0)
    return [name, { columns, rows: Object.fromEntries(values.map((row) => [row[key], row])) }]
  }
  return Object.fromEntries(
    ledgers.map(({ society, cursor, tables }) => [
      society,
      { cursor, tables: Object.fromEntries(Object.entries(tables).map(tableOf)) },
    ]),
  )
}

type Lie = (lines: string[]) => unknown

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
/** The index of the last row of the first ledger. */
const rowOf = (lines: string[]) => lines.findIndex((line) => line.startsWith('{"end"')) - 2
const change = (from: RegExp, to: string) => (lines: string[]) => {
  const at = lines.findIndex((line) => from.test(line))
  lines[at] = lines[at]!.replace(from, to)
}

/** Each changes the lines of an honest answer. */
const lies: Record<string, Lie> = {
  'a cut between two lines': (lines) => lines.splice(lines.length - 2, 1),
  'a cut in the last line': (lines) => lines.splice(lines.length - 2, 2, '{"whole":2'),
  'a changed byte': (lines) => {
    const at = rowOf(lines)
    lines[at] = lines[at]!.replace(/\t2/, '\t3')
  },
  'a proof that is missing': (lines) => lines.splice(rowOf(lines) + 1, 1),
  'a proof that comes again': (lines) =>
    lines.splice(rowOf(lines) + 2, 0, `{"rows":0,"sha256":"${sha256('')}"}`),
  'a row that comes twice': (lines) => lines.splice(rowOf(lines), 0, lines[rowOf(lines)]!),
  'rows in another order, with their proof': (lines) => {
    const to = rowOf(lines) + 1
    const from = lines.findLastIndex((line, at) => at < to && line.startsWith('{')) + 1
    const rows = lines.slice(from, to).reverse()
    const proof = { rows: rows.length, sha256: sha256(`${rows.join('\n')}\n`) }
    lines.splice(from, rows.length + 1, ...rows, JSON.stringify(proof))
  },
  'a row less, with its proof': (lines) => {
    const to = rowOf(lines)
    const from = lines.findLastIndex((line, at) => at < to && line.startsWith('{')) + 1
    const rows = lines.slice(from, to)
    const proof = { rows: rows.length, sha256: sha256(`${rows.join('\n')}\n`) }
    lines.splice(to, 2, JSON.stringify(proof))
  },
  'a wrong number of rows in a proof': change(/^\{"rows":\d+/, '{"rows":99'),
  'a wrong number of movements': change(/^(\{"end":"\d+","rows":)\d+/, '$199'),
  'a wrong sum': change(/"debit":"(\d+)\./, '"debit":"1$1.'),
  'a wrong SHA-256 of a table': change(/("accounts":")[^"]+/, `$1${'0'.repeat(64)}`),
  'a table that is missing': (lines) =>
    lines.splice(
      lines.findIndex((line) => line.includes('"banks"')),
      2,
    ),
  'an end that is missing': (lines) => lines.splice(rowOf(lines) + 2, 1),
  'a ledger that comes twice': (lines) => {
    const ledger = lines.slice(0, rowOf(lines) + 3)
    lines.splice(0, lines.length, ...ledger, ...ledger, '{"whole":2,"refusals":0}', '')
  },
  'a wrong number of ledgers': change(/"whole":2/, '"whole":3'),
  'more than 1 MiB of rows without a proof': (lines) => {
    const row = lines[rowOf(lines)]!
    lines.splice(rowOf(lines), 0, ...Array.from({ length: Math.ceil(2 ** 20 / row.length) }, () => row))
  },
  'more behind the last line': (lines) => lines.splice(lines.length - 1, 0, lines[0]!),
}

/** Answers all requests with a text, a transfer that breaks off, or a redirect. */
async function serve(answer: string | 'breaks off' | 'redirects', use: (baseUrl: string) => Promise<void>) {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    asked.push(request.url!)
    // Otherwise the connection would be reset, and the client would report that.
    await once(request.resume(), 'end')
    if (answer === 'redirects') return response.writeHead(302, { Location: '/elsewhere' }).end()
    if (answer !== 'breaks off') return response.end(answer)
    response.write(honest.slice(0, honest.length / 2))
    return setImmediate(() => response.socket!.destroySoon())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    expect(asked).toEqual(['/api/v1/mad/ledgers/changes?version=1.0.0'])
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe.each([
  ['examples/python/firm.py', isInstalled.python3],
  ['examples/go/firm.go', isInstalled.go],
])('%s', (source, isThere) => {
  let program: [string, ...string[]] = ['python3', source]
  beforeAll(() => {
    if (!source.endsWith('.go') || !isThere) return
    program = [join(folder.path, 'firm')]
    const { status, stderr } = spawnSync('go', ['build', '-o', program[0], source], { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  const run = (file: string, access = firmAccess(stage)) => runProgram([...program, file], access)

  test.skipIf(!isThere)('writes every folder that was sent', async () => {
    const file = join(folder.path, 'firm.json')
    expect(await run(file)).toEqual({ code: 0, out: expect.stringMatching(/^2 folders/), error: '' })
    const copy = JSON.parse(await readFile(file, 'utf8'))
    expect(copy).toEqual(expectedCopy())
    const descriptions = Object.values<string[]>(copy[111].tables.movements.rows).map((row) => row[24])
    expect(descriptions).toContain('tab\t line\n back\\slash \\N é')
  })

  test.skipIf(!isThere)(
    'names a refused folder, even if its transfer had begun, and writes the others',
    async () => {
      const lines = honest.split('\n')
      const second = lines.findIndex((line) => line.startsWith('{"end"')) + 1
      const refused = '{"refused":"112","code":"ERR-INTERNAL","message":"a row is too long"}'
      for (const begun of [0, 1, 2, 3, 4]) {
        const kept = lines.slice(0, second + begun)
        const file = join(folder.path, `${begun}.json`)
        await serve([...kept, refused, '{"whole":1,"refusals":1}', ''].join('\n'), async (baseUrl) => {
          const { code, error } = await run(file, { ...firmAccess(stage), baseUrl })
          expect({ code, error }).toEqual({ code: 1, error: expect.stringContaining('a row is too long') })
        })
        expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ 111: expectedCopy()[111] })
      }
    },
  )

  async function expectNothingWritten(answer: string, error: RegExp): Promise<void> {
    const file = join(folder.path, 'lie.json')
    await writeFile(file, 'the copy before')
    await serve(answer, async (baseUrl) => {
      const ended = await run(file, { ...firmAccess(stage), baseUrl })
      expect(ended).toEqual({ code: 1, out: '', error: expect.stringMatching(error) })
    })
    expect(await readFile(file, 'utf8')).toBe('the copy before')
    expect(existsSync(`${file}.part`)).toBe(false)
  }

  const sentence = /^(\d{4}\S+ \S+ )?Nothing was written: .+\n+$/
  test.skipIf(!isThere).each(Object.entries(lies))('writes no file for %s', async (_, lie) => {
    const lines = honest.split('\n')
    lie(lines)
    expect(lines.join('\n')).not.toBe(honest)
    await expectNothingWritten(lines.join('\n'), sentence)
  })

  test.skipIf(!isThere)('writes no file if a transfer breaks off', () =>
    expectNothingWritten('breaks off', sentence),
  )

  test.skipIf(!isThere)('follows no redirect, which would receive its secret', () =>
    expectNothingWritten('redirects', /302/),
  )
})
