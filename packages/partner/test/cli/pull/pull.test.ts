/** `grandlivre pull`: whatever happens on the way, the file is whole or absent. */
import {
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { until } from '../../../../../test/support/until.ts'
import { type PulledMovements, pullMovements } from '../../../src/cli/pull/pull-movements.ts'
import { Grandlivre } from '../../../src/client/grandlivre.ts'
import { grandlivre, startGrandlivre, testTerminal } from '../../support/cli/command-line.ts'
import { factsOfFile, setYearStage } from '../../support/cli/year-stage.ts'
import { type Fault, spoil, untouched } from '../../support/client/faulty-proxy.ts'

const stage = forTests(setYearStage)
untouched(() => stage.proxy)

let nth = 0
let out: string
beforeEach(() => {
  nth += 1
  out = join(stage.out, `${nth}.ndjson`)
})

const words = (...more: string[]) => ['pull', '--exercice', stage.exerciceId, '--out', out, ...more]
const filesOf = (path: string) =>
  readdirSync(stage.out).filter((name) => join(stage.out, name).startsWith(path))
const stateOf = async (path: string) =>
  JSON.parse(await readFile(`${path}.part.json`, 'utf8').catch(() => '{}'))
const stream = /\/mad\/movements\?/
const isStream = (path: string) => stream.test(path)

/** Runs a pull until its file has a piece, then interrupts it. */
async function interruptPull(path = out): Promise<string> {
  const interruption = new AbortController()
  stage.proxy.fault = (asked) => (isStream(asked) ? { kind: 'stall', afterBytes: 1_900_000 } : undefined)
  const command = ['pull', '--exercice', stage.exerciceId, '--out', path]
  const run = grandlivre(stage.proxied, command, { signal: interruption.signal })
  await until(async () => (await stateOf(path)).rows > 0)
  interruption.abort(new Error('Interrupted'))
  const { code, error } = await run
  stage.proxy.fault = () => undefined
  expect(code).toBe(130)
  return error
}

describe.each(['ndjson', 'ndjson.gz', 'ndjson.zst'])('a file that ends in .%s', (ending) => {
  test('has the bytes of the service, and no other file is left', async () => {
    const path = join(stage.out, `whole.${ending}`)
    const source = await stage.source()
    const { code, out: printed } = await grandlivre(stage.env, words('--json').with(4, path))
    expect(code).toBe(0)
    const result: PulledMovements & { file: string } = JSON.parse(printed)
    const fileBytes = statSync(path).size
    expect(result).toMatchObject({ ...source, file: path, fileBytes, provedBy: 'trailers', connections: 1 })
    expect(await factsOfFile(path)).toEqual(source)
    expect(filesOf(path)).toEqual([`whole.${ending}`])
  })

  test('is continued after an interruption and then compared with the ledger', async () => {
    const path = join(stage.out, `continued.${ending}`)
    const message = await interruptPull(path)
    expect(message).toContain(`Interrupted.\nThe same command goes on with ${path}.part.`)
    expect(filesOf(path)).toEqual([`continued.${ending}.part`, `continued.${ending}.part.json`])
    const { rows } = await stateOf(path)
    stage.proxy.asked = []
    const { error, out: printed } = await grandlivre(stage.proxied, words('--json').with(4, path))
    expect(error).toContain(`Going on after ${rows.toLocaleString('en')} movements of an earlier run`)
    const source = await stage.source()
    expect(JSON.parse(printed)).toMatchObject({ ...source, provedBy: 'blocks' })
    expect(await factsOfFile(path)).toEqual(source)
    expect(filesOf(path)).toEqual([`continued.${ending}`])
    const [asked] = stage.proxy.asked.filter((request) => isStream(request.path))
    expect(asked?.path).toContain('&after=')
    expect(asked?.headers['if-match']).toBeDefined()
  })
})

describe('an answer that is corrupted', () => {
  const pullThrough = async (faults: Fault[]) => {
    const { proxied, proxy, exerciceId: exercice, folderId: society } = stage
    const { GRANDLIVRE_URL: baseUrl, GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret } = proxied as never
    spoil(proxy, faults, stream)
    const ledger = new Grandlivre({ baseUrl, token, secret, stallMs: 300, pacing: { random: () => 0 } })
    const selection = { exercice }
    return pullMovements({
      ...{ out, selection, source: { baseUrl, society, selection }, force: false, encoding: 'identity' },
      ...{ ledger, terminal: testTerminal({ out: '', error: '' }), signal: new AbortController().signal },
    })
  }

  const lossy: [string, Fault[]][] = [
    [
      'a cut and a stall',
      [
        { kind: 'cut', afterBytes: 1_000_000 },
        { kind: 'stall', afterBytes: 700_001 },
      ],
    ],
    ['lost trailers', [{ kind: 'noTrailers' }]],
  ]
  test.each(lossy)('by %s makes pull compare the file with the ledger', async (_, faults) => {
    const connections = faults.length === 1 ? 1 : faults.length + 1
    const source = await stage.source()
    expect(await pullThrough(faults)).toMatchObject({ ...source, provedBy: 'blocks', connections })
    expect(await factsOfFile(out)).toEqual(source)
    expect(filesOf(out)).toHaveLength(1)
  })

  test('by one bit, with a row count but no SHA-256, is pulled again and proven by blocks', async () => {
    spoil(stage.proxy, [{ kind: 'trailers', dropped: ['x-content-sha256'], at: 300_000 }], stream)
    const { code, out: printed, error } = await grandlivre(stage.proxied, words())
    expect([code, error]).toEqual([0, expect.stringContaining('cannot be proven: beginning again')])
    expect(await factsOfFile(out)).toEqual(await stage.source())
    expect(printed).toContain('Whole:   its lines were compared with the blocks of the ledger')
    expect(printed).not.toContain('row count and SHA-256')
  })

  test('by one bit is pulled again, and after five corrupted attempts there is no file', async () => {
    const source = await stage.source()
    expect(await pullThrough([{ kind: 'flip', at: 300_000 }])).toMatchObject(source)
    expect(await factsOfFile(out)).toEqual(source)
    rmSync(out)
    // More than five: a slow answer counts as lost and is sent again.
    const flips: Fault[] = Array.from({ length: 20 }, () => ({ kind: 'flip', at: 300_000 }))
    await expect(pullThrough(flips)).rejects.toThrow('could not be proven in 5 attempts')
    expect(existsSync(out)).toBe(false)
    // The next run continues with nothing of it.
    spoil(stage.proxy, [])
    expect((await grandlivre(stage.proxied, words())).error).not.toContain('Going on after')
    expect(await factsOfFile(out)).toEqual(source)
  })
})

describe('a ledger that changes', () => {
  test('between two runs makes the second run begin again and say so', async () => {
    await interruptPull()
    await stage.change(3)
    const { code, error } = await grandlivre(stage.env, words())
    // Another address is another source, so only the environment of the first run can continue the file.
    expect([code, error]).toEqual([7, expect.stringContaining('is an unfinished pull of')])
    const second = await grandlivre(stage.proxied, words())
    expect(second.error).toContain('The ledger changed between two parts of the transfer: beginning again')
    expect(await factsOfFile(out)).toEqual(await stage.source())
  })

  test('after the last byte, before the file is compared, is pulled again', async () => {
    await interruptPull()
    let changes = 0
    stage.proxy.fault = async (path) => {
      const isLast = stage.proxy.asked.filter((request) => request.path.includes('/blocks')).length === 2
      if (path.includes('/blocks') && isLast && changes++ === 0) await stage.change(1)
      return undefined
    }
    stage.proxy.asked = []
    const { code, error } = await grandlivre(stage.proxied, words())
    expect(error).toContain('The ledger changed before the file was compared with it: beginning again')
    expect([code, changes]).toEqual([0, 1])
    expect(await factsOfFile(out)).toEqual(await stage.source())
  })
})

describe('an unfinished file', () => {
  test('that was damaged between two runs is detected and pulled again', async () => {
    await interruptPull()
    const file = openSync(`${out}.part`, 'r+')
    writeSync(file, 'x', 100_000)
    const { code, error } = await grandlivre(stage.proxied, words())
    expect([code, error]).toEqual([0, expect.stringContaining('differ from the ledger: beginning again')])
    expect(await factsOfFile(out)).toEqual(await stage.source())
  })

  test('that has more or fewer movements than its state says is pulled again', async () => {
    for (const difference of [1, -1]) {
      await interruptPull()
      const state = await stateOf(out)
      writeFileSync(`${out}.part.json`, JSON.stringify({ ...state, rows: state.rows + difference }))
      const { code, error } = await grandlivre(stage.proxied, words())
      expect([code, error]).toEqual([0, expect.stringMatching(/in all parts, and .*: beginning again/)])
      expect(await factsOfFile(out)).toEqual(await stage.source())
      rmSync(out)
    }
  })

  test('that another pull has replaced does not become the final file', async () => {
    stage.proxy.fault = async (path) => {
      if (isStream(path)) {
        rmSync(`${out}.part`)
        writeFileSync(`${out}.part`, 'of another one')
      }
      return undefined
    }
    const { code, error } = await grandlivre(stage.proxied, words())
    expect([code, error]).toEqual([
      7,
      expect.stringContaining('.part was moved, or replaced by another pull'),
    ])
    expect(existsSync(out)).toBe(false)
  })

  test('is pulled again if it has lost its end, and cut if it is longer than its state says', async () => {
    await interruptPull()
    // Longer than what the pull will still write.
    writeFileSync(`${out}.part`, 'x'.repeat(3_000_000), { flag: 'a' })
    const { error } = await grandlivre(stage.proxied, words())
    expect(error).toContain('Going on after')
    expect(error).not.toContain('beginning again')
    expect(await factsOfFile(out)).toEqual(await stage.source())
    out = join(stage.out, 'shorter.ndjson')
    await interruptPull()
    truncateSync(`${out}.part`, 1000)
    expect((await grandlivre(stage.proxied, words())).error).not.toContain('Going on after')
    expect(await factsOfFile(out)).toEqual(await stage.source())
  })

  const others: [string, () => string[], RegExp][] = [
    [
      'another selection',
      () => words('--draft'),
      /\.part is an unfinished pull of (exercice \d+ of the folder \d+) at.* this one is of draft true, \1/s,
    ],
    [
      'a full export',
      () => ['pull', '--all', '--format', 'csv', '--out', out],
      /\.part is an unfinished pull of movements\n/,
    ],
  ]
  test.each(others)('is reported and not replaced by %s; --force discards it', async (_, command, says) => {
    await interruptPull()
    const { code, error } = await grandlivre(stage.proxied, command())
    expect([code, error]).toEqual([7, expect.stringMatching(says)])
    expect((await grandlivre(stage.proxied, [...command(), '--force'])).code).toBe(0)
    expect(filesOf(out)).toHaveLength(1)
  })

  test('that no pull has written is left alone', async () => {
    writeFileSync(`${out}.part`, 'mine')
    const refused = await grandlivre(stage.env, words())
    expect([refused.code, refused.error]).toEqual([7, expect.stringContaining('is not an unfinished pull')])
    writeFileSync(`${out}.part.json`, '{}')
    const again = await grandlivre(stage.env, words())
    expect(again.error).toContain(`${out}.part.json is not the state of an unfinished pull`)
    expect(readFileSync(`${out}.part`, 'utf8')).toBe('mine')
  })

  test('that a running process is writing is left alone', async () => {
    await interruptPull()
    const state = { ...(await stateOf(out)), pid: process.ppid }
    writeFileSync(`${out}.part.json`, JSON.stringify(state))
    const { code, error } = await grandlivre(stage.proxied, words('--force'))
    expect([code, error]).toEqual([
      7,
      expect.stringContaining(`Another pull, process ${process.ppid}, writes`),
    ])
  })
})

test('a mistyped period leaves no file that would stop the corrected command', async () => {
  const pull = (from: string, to: string) =>
    grandlivre(stage.proxied, ['pull', '--from', from, '--to', to, '--out', out])
  expect((await pull('2026-01-01', '2025-01-01')).error).toContain('(ERR-VALIDATION)')
  expect(filesOf(out)).toEqual([])
  // The files that a pull leaves if it is killed before the first answer.
  writeFileSync(`${out}.part`, '')
  const about = 'An unfinished pull by grandlivre. The same command goes on with it.'
  const source = { baseUrl: stage.proxy.url, society: '1', selection: { exercice: '1' } }
  const state = { about, ...source, etag: '', after: null, rows: 0, contentBytes: 0, fileBytes: 0 }
  writeFileSync(`${out}.part.json`, JSON.stringify({ ...state, pid: process.pid }))
  expect(await pull('2025-01-01', '2025-03-31')).toMatchObject({ code: 0 })
  expect(filesOf(out)).toHaveLength(1)
})

test('after a full disk the same command continues once there is room', async () => {
  // No file may be longer than 8 KiB: the first write ends there, as on a disk that is full.
  const limited = { ...stage.env, NODE_DISABLE_COMPILE_CACHE: '1' }
  const { code, error } = await startGrandlivre(limited, words(), 'ulimit -c 0 -f 8').ended
  expect([code, error]).toEqual([7, expect.stringContaining(`There is no room for ${out}.part: EFBIG`)])
  expect(error).toContain('\nMake room and run the same command: it goes on.')
  expect(existsSync(out)).toBe(false)
  expect((await grandlivre(stage.env, words())).code).toBe(0)
  expect(filesOf(out)).toHaveLength(1)
})

test('an existing file is refused; with --force it stays until the new one is proven', async () => {
  writeFileSync(out, 'old')
  const refused = await grandlivre(stage.env, words())
  expect(refused).toMatchObject({ code: 7, out: '' })
  expect(refused.error).toContain(`${out} exists\nChoose another --out, or give --force to replace it.`)
  stage.proxy.fault = (path) => (isStream(path) ? { kind: 'flip', at: 10 } : undefined)
  expect((await grandlivre(stage.proxied, words('--force'))).code).toBe(1)
  expect(readFileSync(out, 'utf8')).toBe('old')
  stage.proxy.fault = () => undefined
  expect((await grandlivre(stage.proxied, words('--force'))).code).toBe(0)
  expect(await factsOfFile(out)).toEqual(await stage.source())
})

test('a leftover state file of a pull that was killed after its last step does no harm', async () => {
  await interruptPull()
  rmSync(`${out}.part`)
  const { code } = await grandlivre(stage.env, words('--draft'))
  expect([code, filesOf(out)]).toEqual([0, [`${nth}.ndjson`]])
})

test('an empty selection gives an empty file, which can be decompressed', async () => {
  for (const ending of ['ndjson', 'ndjson.gz', 'ndjson.zst']) {
    const path = join(stage.out, `empty.${ending}`)
    const command = ['pull', '--from', '1999-01-01', '--to', '1999-12-31', '--out', path, '--json']
    expect(JSON.parse((await grandlivre(stage.env, command)).out)).toMatchObject({ rows: 0, bytes: 0 })
    expect((await factsOfFile(path)).rows).toBe(0)
  }
})
