/** `grandlivre pull --out -`: the bytes on standard output, and the exit code. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { environment } from '../../../../../test/support/process.ts'
import { until } from '../../../../../test/support/until.ts'
import { grandlivre, startGrandlivre } from '../../support/cli/command-line.ts'
import { setYearStage } from '../../support/cli/year-stage.ts'
import { type Fault, spoil, untouched } from '../../support/client/faulty-proxy.ts'

const program = resolve(import.meta.dirname, '../../../src/grandlivre.ts')
const stage = forTests(setYearStage)
untouched(() => stage.proxy)
const stream = /\/mad\/movements\?/

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')
const movements = (...more: string[]) => ['pull', '--exercice', stage.exerciceId, '--out', '-', ...more]

/** Runs a pull in another process. @param shell the line for bash, in which `"$@"` is the command */
async function pulled(words: string[], shell = '"$@"') {
  const temporary = join(stage.out, 'tmp')
  mkdirSync(temporary, { recursive: true })
  const child = spawn('bash', ['-c', shell, 'bash', process.execPath, program, ...words], {
    cwd: stage.out,
    env: { ...environment, ...stage.proxied, TMPDIR: temporary, NODE_DISABLE_COMPILE_CACHE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  const [out, error, [code]] = await Promise.all([buffer(child.stdout), text(child.stderr), ended])
  expect([existsSync(join(stage.out, '-')), readdirSync(temporary)]).toEqual([false, []])
  return { code, out, error, lines: error.trimEnd().split('\n') }
}

describe('movements', () => {
  test('are written exactly as the service sent them, and the summary goes to standard error', async () => {
    const source = await stage.source()
    const { code, out, lines } = await pulled(movements('--json'))
    expect(code).toBe(0)
    expect(sha256(out)).toBe(source.sha256)
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ ...source, file: '-', provedBy: 'blocks' })
    // --quiet prints the result, too: nothing else names the bytes that came.
    const quiet = await pulled(movements('--json', '--quiet'))
    expect([quiet.code, JSON.parse(quiet.error)]).toMatchObject([0, { ...source, file: '-' }])
  })

  test('are complete and proven even if the connection is cut', async () => {
    spoil(stage.proxy, [{ kind: 'cut', afterBytes: 1_000_000 }], stream)
    const { code, out, error } = await grandlivre(stage.proxied, movements())
    expect([code, sha256(out)]).toEqual([0, (await stage.source()).sha256])
    expect(error).toContain('Whole:   its lines were compared with the blocks of the ledger')
  })

  test('with one wrong bit after a cut are not proven, even if the row count is right: exit code 1', async () => {
    const dropped = ['x-content-sha256', 'x-row-count']
    const cut: Fault = { kind: 'cut', afterBytes: 1_000_000 }
    spoil(stage.proxy, [cut, { kind: 'trailers', dropped, at: 300_000 }], stream)
    const { code, error } = await grandlivre(stage.proxied, movements())
    expect([code, error]).toEqual([1, expect.stringContaining('(NOT-PROVEN)\nDiscard what came')])
  })

  test('cannot be continued after a cut if the ledger has changed meanwhile: exit code 1', async () => {
    stage.proxy.fault = async (path) => {
      if (!stream.test(path)) return undefined
      if (path.includes('after=')) await stage.change(3)
      return { kind: 'cut', afterBytes: 1_000_000 }
    }
    const { code, error } = await grandlivre(stage.proxied, movements())
    expect([code, error]).toEqual([1, expect.stringContaining('(LEDGER-CHANGED)\nDiscard what came')])
  })

  test('end with exit code 7 and one sentence if their reader closes the pipe', async () => {
    const { code, out, error } = await pulled(movements('--quiet'), '"$@" | head -n 1; exit $PIPESTATUS')
    expect(out.toString().split('\n')).toHaveLength(2)
    expect([code, error]).toEqual([
      7,
      expect.stringMatching(/^Standard output takes no more: .*EPIPE\nDiscard .*\n$/),
    ])
  })

  test('end with exit code 7 and one JSON object if the disk is full', async () => {
    const { code, error } = await pulled(movements('--quiet', '--json'), '"$@" > /dev/full')
    expect([code, JSON.parse(error)]).toMatchObject([
      7,
      { code: 'LOCAL', message: expect.stringContaining('ENOSPC') },
    ])
  })

  test('end with exit code 130 when they are interrupted', async () => {
    spoil(stage.proxy, [{ kind: 'stall', afterBytes: 1_000_000 }], stream)
    const run = startGrandlivre(stage.proxied, movements('--quiet'))
    await until(() => run.soFar.out !== '')
    run.child.kill('SIGINT')
    const { code, error } = await run.ended
    expect([code, error]).toEqual([130, 'Interrupted.\n'])
  })

  test('end with exit code 130 at the first signal, even while their reader has stopped reading', async () => {
    const run = startGrandlivre(stage.proxied, movements('--quiet'))
    const { stdout } = run.child
    await until(() => run.soFar.out !== '')
    stdout!.pause()
    // In this time the buffers of the pipe fill.
    await delay(1_000)
    const stopped = once(run.child, 'exit')
    run.child.kill('SIGTERM')
    expect(await stopped).toEqual([130, null])
    stdout!.resume()
    expect((await run.ended).error).toBe('Interrupted.\n')
  })
})

describe('a full export', () => {
  const all = ['pull', '--all', '--format', 'csv', '--out', '-']

  test('has the same bytes as the downloaded file', async () => {
    const file = join(stage.out, 'folder.csv')
    expect((await grandlivre(stage.env, all.with(-1, file))).code).toBe(0)
    const { code, out, lines } = await pulled([...all, '--json'])
    expect([code, sha256(out)]).toEqual([0, sha256(readFileSync(file))])
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ file: '-', bytes: out.length, isContentVerified: true })
  })

  test('is downloaded and verified, with the compression that the file name implies', async () => {
    const file = join(stage.out, 'folder.csv.gz')
    const { code, out } = await grandlivre(stage.env, [...all.with(-1, file), '--json'])
    const result = JSON.parse(out)
    const contentBytes = gunzipSync(readFileSync(file)).length
    const facts = { file, contentBytes, isContentVerified: true, society: stage.folderId }
    expect([code, result]).toMatchObject([0, facts])
    const again = await grandlivre(stage.env, [...all.with(-1, file), '--force'])
    expect(again.error).toContain('The service had made this export within the last hour')
    expect(again.out).toContain(`SHA-256  ${result.sha256}\nWhole:   `)
  })

  test('ends with an error that says what to do if there is no folder for temporary files', async () => {
    const missing = { ...stage.env, TMPDIR: join(stage.out, 'none'), NODE_DISABLE_COMPILE_CACHE: '1' }
    const { code, error } = await startGrandlivre(missing, all).ended
    expect([code, error]).toEqual([7, expect.stringContaining(`${missing.TMPDIR}, cannot be used: ENOENT`)])
    expect(error).toContain('\nSet TMPDIR to a folder that is there')
  })

  test('leaves nothing on standard output if the file does not match its status', async () => {
    stage.proxy.fault = (path) => {
      if (!path.includes('/mad/all?')) return undefined
      return {
        kind: 'rewrite',
        body: (whole) =>
          Buffer.from(String(whole).replaceAll(/"(fileSha256|sha256)":"[^"]+/g, `"$1":"${'0'.repeat(64)}`)),
      }
    }
    const { code, out, error } = await grandlivre(stage.proxied, all)
    expect([code, out]).toEqual([1, ''])
    expect(error).toContain('(FILE-DIFFERS)')
  })
})
