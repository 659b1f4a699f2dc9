/**
 * A proxy before the real service that lies about ledgers. No ledger is committed that differs from the service's. Each
 * lie ends in an error with a sentence, or is overcome. Rows without a proof are never handed over.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import { GrandlivreError } from '../../../src/client/grandlivre.ts'
import {
  cell,
  changed,
  endless,
  firstLines,
  forged,
  forgeries,
  isJson,
  jsonLies,
  kinds,
  type Lie,
  otherForms,
  placesOf,
  ways,
  withOneBitChanged,
} from '../../support/client/ledger-lies.ts'
import { setLedgersStage, twoFolders } from '../../support/client/ledgers-stage.ts'
import { linesOf, MemoryCopy } from '../../support/client/memory-copy.ts'

const path = '/api/v1/mad/ledgers/changes'
const wanted = twoFolders.map((society) => ({ society }))

const stage = forTests(() => setLedgersStage(1_500))
let truth: MemoryCopy
/** Every row that the service sends. */
let rows: Set<string>
/** The lines of its answer. */
let lines: Buffer[]

beforeAll(async () => {
  stage.proxy.fault = () => ({
    kind: 'rewrite',
    body: (whole) => {
      lines = linesOf(whole)
      return whole
    },
  })
  truth = new MemoryCopy()
  await truth.follow(stage.ledger, wanted, { encoding: 'identity' })
  rows = new Set(lines.filter((line) => !isJson(line)).map(String))
})

/** Reads answers that all contain this lie. @returns the error; undefined if the lie was overcome */
async function believe(lie: Lie, isProven = false): Promise<GrandlivreError | undefined> {
  stage.proxy.fault = (asked) =>
    asked.startsWith(path) ? { kind: 'rewrite', body: (whole) => bodyOf(lie(linesOf(whole))) } : undefined
  const copy = new MemoryCopy()
  let error: unknown
  try {
    for await (const part of stage.ledger.ledgerChanges(wanted, { encoding: 'identity' })) {
      copy.take(part)
      if (part.kind === 'rows' && !isProven)
        for (const line of linesOf(part.bytes))
          if (!rows.has(String(line))) throw new Error(`A wrong row: ${line}`)
    }
    expect(copy.ledgers.size).toBe(2)
  } catch (thrown) {
    error = thrown
  }
  for (const { society } of wanted)
    if (copy.ledgers.has(society)) expect(copy.text(society) === truth.text(society)).toBe(true)
  if (error === undefined) return undefined
  expect(error).toBeInstanceOf(GrandlivreError)
  return error as GrandlivreError
}

const bodyOf = (made: ReturnType<Lie>) => (Array.isArray(made) ? Buffer.concat(made) : made)

describe('refuses an answer with a changed line', () => {
  for (const [way, spoil] of ways)
    test.each(kinds)(`lines ${way}: %s`, async (kind) => {
      for (const at of placesOf(lines, kind, 6)) {
        const spoiled = spoil(lines, at)
        // Some changes of the first or the last line change nothing.
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
          expect.stringMatching(/^(NOT-PROVEN|CONNECTION-LOST|UNEXPECTED-ANSWER)$/),
        ])
        expect(error!.message).not.toMatch(/undefined|Cannot/)
        expect(error!.message).toMatch(/^(Ledger \d+|The ledgers).*: ./)
      }
    })
})

test('a read ends with the refusal if answers break after the first line and its cursor is refused', async () => {
  let answers = 0
  const refusal = '{"refused":"111","code":"ERR-CURSOR-EXPIRED","message":"no"}\n{"whole":0,"refusals":1}\n'
  stage.proxy.fault = (asked) =>
    asked.startsWith(path)
      ? {
          kind: 'rewrite',
          body: (whole) => {
            answers += 1
            return answers % 2 === 1 ? linesOf(whole)[0]! : Buffer.from(refusal)
          },
        }
      : undefined
  const kinds: string[] = []
  for await (const { kind } of stage.ledger.ledgerChanges([{ society: '111' }], { encoding: 'identity' }))
    kinds.push(kind)
  expect([answers, kinds.at(-2)]).toEqual([6, 'refused'])
})

test('hands over no row with a flipped bit, at a hundred places', async () => {
  for (const { at, kind, spoiled } of withOneBitChanged(lines)) {
    const error = await believe(() => spoiled)
    // A cursor names a state, and nothing proves it before it is used.
    if (!error) expect([at, kind]).toEqual([at, 'ledger'])
  }
})

describe('refuses a line of JSON with', () => {
  test.each(jsonLies)('%s (%s)', async (_, kind, members, message) => {
    const error = await believe(changed(kind, members))
    expect(error).toMatchObject({ message: expect.stringMatching(message) })
    expect(error!.code).toBe(kind === 'table' ? 'UNEXPECTED-ANSWER' : 'NOT-PROVEN')
    expect(error!.requestId).toBeDefined()
  })
})

describe('refuses an answer whose first line is replaced by', () => {
  test.each(firstLines)('%s', async (_, first) => {
    const error = await believe((all) => [Buffer.from(first, 'latin1'), ...all.slice(1)])
    expect(error?.code).toBe('NOT-PROVEN')
  })
})

describe('refuses forged movements with matching proofs', () => {
  test.each(forgeries)('%s', async (_, make, message) => {
    const error = await believe(forged(make), true)
    expect(error).toMatchObject({ code: 'NOT-PROVEN', message: expect.stringMatching(message) })
  })

  const { columns } = ledgerTables.movements
  test.each(Object.entries(otherForms))(
    'refuses a value of the type %s in a form that COPY does not write',
    async (type, values) => {
      const ofType = columns.filter((column) => column.type === type)
      for (const [nth, value] of values.entries()) {
        const column = ofType[nth % ofType.length]!
        const error = await believe(forged(cell(columns.indexOf(column), value)), true)
        const told = `has as ${column.name} what COPY does not write`
        expect([value, error?.message]).toEqual([value, expect.stringContaining(told)])
      }
    },
  )

  test('accepts movements that are forged without a change', async () => {
    expect(
      await believe(
        forged((all) => all),
        true,
      ),
    ).toBeUndefined()
  })
})

describe('refuses an answer larger than memory', () => {
  test.each(endless)('%s', async (_, piece, message) => {
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
    expect(error).toMatchObject({ code: 'NOT-PROVEN', message: expect.stringMatching(message) })
    expect(sent).toBeLessThan(60)
  })
})
