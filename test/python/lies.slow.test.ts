/**
 * The package for Python behind a proxy that lies about ledgers: it gives out no ledger that differs from the service's, and
 * each lie ends with a sentence, or is overcome.
 */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ledgerTables } from '../../packages/contract/src/ledger-tables.ts'
import {
  type FaultyProxy,
  startFaultyProxy,
} from '../../packages/partner/test/support/client/faulty-proxy.ts'
import {
  cell,
  changed,
  endless,
  firstLines,
  forged,
  forgeries,
  isJson,
  jsonLies,
  kindOf,
  kinds,
  type Lie,
  otherForms,
  placesOf,
  ways,
  withOneBitChanged,
} from '../../packages/partner/test/support/client/ledger-lies.ts'
import { linesOf } from '../../packages/partner/test/support/client/memory-copy.ts'
import { firmAccess } from '../support/guides/run-program.ts'
import { isInstalled } from '../support/guides/tools.ts'
import { addLargeExercice, largeExercice } from '../support/ledgers/large-exercice.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'
import { type PythonError, type PythonSession, startSession } from './session.ts'

describe.skipIf(!isInstalled.package)('the package for Python', () => {
  let stage: ExportStage
  let proxy: FaultyProxy
  let session: PythonSession
  /** The lines of the honest answer, and the SHA-256 of each ledger's rows. */
  let lines: Buffer[]
  let truth: Record<string, string>

  beforeAll(async () => {
    const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }
    stage = await setExportStage({ rateLimit })
    await addLargeExercice(stage.staff.client, 1_500)
    proxy = await startFaultyProxy(stage.service.url)
    session = startSession({ ...firmAccess(stage), baseUrl: proxy.url })
    await session.run('firm = ledger()')
    lie((all) => {
      lines = all
      return all
    })
    const { ledgers } = await changes()
    truth = hashesOf(lines)
    expect(ledgers).toEqual(truth)
    expect(Object.keys(truth)).toEqual([folders.first.folderId, folders.sameFirm.folderId])
  })

  afterAll(async () => {
    await session?.close()
    await proxy?.close()
    await stage?.close()
  })

  function lie(spoil: Lie): void {
    proxy.fault = (asked) =>
      asked.startsWith('/api/v1/mad/ledgers/changes')
        ? {
            kind: 'rewrite',
            body: (whole) => {
              const made = spoil(linesOf(whole))
              return Array.isArray(made) ? Buffer.concat(made) : made
            },
          }
        : undefined
  }

  async function changes(): Promise<{ ledgers: Record<string, string>; error: PythonError | undefined }> {
    const { result, error } = await session.run(`
result = {}
for change in firm.changes():
    result[change.society] = digest(change.tables)`)
    return { ledgers: result, error }
  }

  /** @returns the error, if the lie was not overcome */
  async function believe(spoil: Lie): Promise<PythonError | undefined> {
    lie(spoil)
    const { ledgers, error } = await changes()
    for (const [society, hash] of Object.entries(ledgers)) expect(hash).toBe(truth[society])
    if (error)
      expect(error.message).toMatch(
        /^(Ledger \d+:|The ledgers( stopped coming)?:|\d ledgers were refused:) ./,
      )
    else expect(Object.keys(ledgers)).toHaveLength(2)
    return error
  }

  for (const [way, spoil] of ways)
    test.each(kinds)(`refuses lines ${way}: %s`, async (kind) => {
      for (const at of placesOf(lines, kind, 6)) {
        const spoiled = spoil(lines, at)
        if (Buffer.concat(spoiled).equals(Buffer.concat(lines))) continue
        const error = await believe(() => spoiled)
        // Both ledgers are proven before the last line.
        if (kind === 'whole' && Buffer.concat(lines).includes(Buffer.concat(spoiled))) {
          expect(error).toBeUndefined()
          continue
        }
        expect([way, kind, at, error?.code]).toEqual([
          way,
          kind,
          at,
          expect.stringMatching(/^(NOT-PROVEN|CONNECTION-FAILED|UNEXPECTED-ANSWER)$/),
        ])
      }
    })

  test('detects one flipped bit, at a hundred places', async () => {
    for (const { at, kind, spoiled } of withOneBitChanged(lines)) {
      const error = await believe(() => spoiled)
      // A cursor names a state, and nothing proves it before it is used.
      if (!error) expect([at, kind]).toEqual([at, 'ledger'])
    }
  })

  test.each(jsonLies)('refuses JSON that says %s (%s)', async (_, kind, members) => {
    const error = await believe(changed(kind, members))
    expect(error?.code).toBe(kind === 'table' ? 'UNEXPECTED-ANSWER' : 'NOT-PROVEN')
    expect(error!.requestId).not.toBeNull()
  })

  test.each(firstLines)('refuses a replaced first line: %s', async (_, first) => {
    const error = await believe((all) => [Buffer.from(first, 'latin1'), ...all.slice(1)])
    expect(error?.code).toBe('NOT-PROVEN')
  })

  test.each(forgeries)('refuses forgeries with matching proofs: %s', async (_, make) => {
    expect((await believe(forged(make)))?.code).toBe('NOT-PROVEN')
  })

  const { columns } = ledgerTables.movements
  test.each(Object.entries(otherForms))('refuses %s that COPY never writes', async (type, values) => {
    const ofType = columns.filter((column) => column.type === type)
    for (const [nth, value] of values.entries()) {
      const column = ofType[nth % ofType.length]!
      const error = await believe(forged(cell(columns.indexOf(column), value)))
      expect([value, error?.code]).toEqual([value, 'NOT-PROVEN'])
    }
  })

  test('accepts the same forgery without a fault', async () => {
    expect(await believe(forged((all) => all))).toBeUndefined()
  })

  test('refuses digests of movements that leave entries out', async () => {
    proxy.fault = async (path) => {
      if (!path.startsWith('/api/v1/mad/movements/blocks')) return undefined
      const { host: _, connection: _ended, ...headers } = proxy.asked.at(-1)!.headers
      const answer = await fetch(stage.service.url + path, { headers: headers as Record<string, string> })
      const blocks = ((await answer.json()) as { sha256: string }[]).slice(1)
      const digest = createHash('sha256')
      for (const { sha256 } of blocks) digest.update(sha256, 'hex')
      const proven = { ...Object.fromEntries(answer.headers), 'x-ledger-digest': digest.digest('hex') }
      const {
        'content-length': _length,
        'content-encoding': _encoding,
        ...sent
      } = proven as Record<string, string>
      return { kind: 'answer', status: 200, headers: sent, body: JSON.stringify(blocks) }
    }
    const { error } = await session.run(
      `list(ledger(grandlivre.Ledger, "${folders.first.folderId}").movements(idExercice="${largeExercice}"))`,
    )
    expect(error).toMatchObject({ code: 'NOT-PROVEN', message: 'The digests of movements leave entries out' })
  })

  test.each(endless)('refuses more than memory can hold: %s', async (_, piece) => {
    let sent = 0
    const error = await believe((all) =>
      (function* () {
        yield all[0]!
        for (let nth = 0; nth < 500; nth += 1) {
          sent += 1
          yield piece(nth)
        }
      })(),
    )
    expect(error?.code).toBe('NOT-PROVEN')
    expect(sent).toBeLessThan(60)
  })
})

/** Of the rows of each ledger in an answer. */
function hashesOf(lines: Buffer[]): Record<string, string> {
  const hashes: Record<string, string> = {}
  let hash = createHash('sha256')
  for (const line of lines) {
    if (!isJson(line)) hash.update(line)
    else if (kindOf(line) === 'ledger') hash = createHash('sha256')
    else if (kindOf(line) === 'end') hashes[JSON.parse(String(line)).end] = hash.digest('hex')
  }
  return hashes
}
