/** Copies by the package for Python, and movements: what it gives is what the service has, through cuts and failovers. */
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Fault } from '../../packages/partner/test/support/client/faulty-proxy.ts'
import { readLedgers } from '../support/changes/ledger-stream.ts'
import { download, movementsUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { stepsOf } from '../support/guides/blocks.ts'
import { firmAccess, runProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { addLargeExercice, largeExercice } from '../support/ledgers/large-exercice.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { type FaultOf, pythonPackage, rewritten, setPythonStage } from './session.ts'

const { first, sameFirm } = folders

describe.skipIf(!isInstalled.package)('the package for Python', () => {
  const python = forTests(setPythonStage)

  beforeAll(async () => {
    await addLargeExercice(python.stage.staff.client, 3_000)
    await change(`update movements set description = E'tab\\t line\\n back\\\\slash \\\\N é' where id % 7 = 0;
      update entries set created_at = created_at + interval '0.25 seconds' where id % 3 = 0`)
    await python.session.run(`
import decimal, pyarrow, pandas
def follow(books, known, **options):
    for change in ledger(**options).changes(known):
        books[change.society] = change.onto(books.get(change.society))
        known[change.society] = json.loads(json.dumps(change.known))
    return {society: digest(book) for society, book in books.items()}
books, known = {}, {}`)
  })

  afterEach(() => {
    python.proxy.fault = () => undefined
    python.proxy.asked = []
  })

  const change = (sql: string) => python.stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
  const correct = (comment: string) =>
    change(`update entries set comment = '${comment}' where folder_id = ${sameFirm.folderId} and id % 5 = 0`)
  /** The SHA-256 of the rows of each ledger, as the service has them now. */
  async function truth(): Promise<Record<string, string>> {
    const url = `${python.stage.service.url}/api/v1/mad/ledgers/changes?version=1.0.0`
    const headers = { ...python.stage.firm, 'Content-Type': 'application/json' }
    const { ledgers } = readLedgers(await (await fetch(url, { method: 'POST', headers, body: '{}' })).text())
    return Object.fromEntries(
      ledgers.map(({ society, tables }) => {
        const rows = Object.values(tables).flat()
        return [
          society,
          createHash('sha256')
            .update(`${rows.join('\n')}\n`)
            .digest('hex'),
        ]
      }),
    )
  }

  /** Brings the copy up to date. @returns the requests for changes */
  async function follow(): Promise<{ society: string; since?: string; entries?: unknown[] }[][]> {
    python.proxy.asked = []
    const { result, error } = await python.session.run('result = follow(books, known)')
    expect(error).toBeUndefined()
    expect(result).toEqual(await truth())
    return python.asked('mad/ledgers/changes').map(({ body }) => JSON.parse(body()).ledgers)
  }

  test('a copy equals the ledgers at first, after changes, and after its cursors were refused', async () => {
    const society = [first.folderId, sameFirm.folderId]
    expect(await follow()).toEqual([society.map((id) => ({ society: id }))])
    expect(await follow()).toEqual([])
    expect(python.asked('').map(({ path }) => path)).toEqual(['/api/v1/mad/ledgers?version=1.0.0'])
    await correct('corrected')
    await change(`delete from entries where folder_id = ${sameFirm.folderId} and id = (select max(id) from entries
      where folder_id = ${sameFirm.folderId})`)
    expect(await follow()).toMatchObject([[{ society: sameFirm.folderId, since: expect.any(String) }]])
    await python.session.run('for proof in ledger().verify(books): known[proof.society] = proof.known')
    await change('select begin_epoch(true)')
    await correct('in another epoch')
    const [refused, again, ...others] = await follow()
    expect([refused!.length, again!.length, others]).toEqual([2, 2, []])
    const everything = [['0', '9007199254740991']]
    // Nothing of the first has changed; the other is one block.
    expect(again!.map(({ entries }) => entries)).toEqual([undefined, everything])
    await change('select begin_epoch(true)')
    // The digests were not brought up to date, so nothing says what differs.
    expect((await follow())[1]!.map(({ entries }) => entries)).toEqual([everything, everything])
  })

  test('after verify, `changes` reads only what the proof found different, and nothing if all is equal', async () => {
    await follow()
    await python.session.run('known = {proof.society: proof.known for proof in ledger().verify(books)}')
    expect(await follow()).toEqual([])
    await python.session.run(`
movements = books["${sameFirm.folderId}"]["movements"]
wrong = {society: dict(book) for society, book in books.items()}
wrong["${sameFirm.folderId}"]["movements"] = movements.slice(0, movements.num_rows - 1)
proof = next(proof for proof in ledger().verify(wrong) if not proof.is_equal)
books, known = wrong, {**known, proof.society: proof.known}`)
    expect(await follow()).toMatchObject([[{ society: sameFirm.folderId }]])
  })

  test('a delta since a cursor is not accepted as a copy', async () => {
    await follow()
    await correct('since a cursor')
    const { error } = await python.session.run('[change.onto(None) for change in ledger().changes(known)]')
    expect(error).toMatchObject({
      code: 'INVALID-OPTION',
      message: expect.stringMatching(`^tables: ledger ${sameFirm.folderId} came since `),
    })
  })

  test('the program of the guide keeps a complete copy when employees are added, and drops a folder that left', async () => {
    const guide = await readFile(join(pythonPackage, '../docs/guides/python.md'), 'utf8')
    const [program] = stepsOf(guide).flatMap((step) =>
      step.kind === 'file' && step.name === 'nightly.py' ? step.text : [],
    )
    const cwd = await mkdtemp(join(tmpdir(), 'grandlivre-nightly-'))
    const env = { PYTHONPATH: [join(pythonPackage, 'src'), packagesOf('package')].join(':') }
    const night = async () => {
      const ran = await runProgram(['python3', '-c', program!], firmAccess(python.stage), { cwd, env })
      expect(ran).toMatchObject({ code: 0, error: '' })
      return ran.out.trim().split('\n').toSorted()
    }
    /** Files of the copy, all of which are there. */
    const filesOf = async (society: string): Promise<string[]> => {
      const { files } = JSON.parse(await readFile(join(cwd, `books/${society}.json`), 'utf8'))
      const names = Object.values(files as Record<string, string>)
      expect(await readdir(join(cwd, 'books'))).toEqual(
        expect.arrayContaining(names.map((name) => name.replace('books/', ''))),
      )
      return names
    }
    try {
      await change(`update tokens set groups = '{movements,exports,webhooks,resources}' where level = 'firm'`)
      const both = [first.folderId, sameFirm.folderId].map((id) => `${id} changed`)
      expect(await night()).toEqual(both)
      const before = await filesOf(first.folderId)
      expect(before).toHaveLength(10)
      await change(`update tokens set groups = null where level = 'firm'`)
      expect(await night()).toEqual(both)
      const after = await filesOf(first.folderId)
      expect(before.filter((name) => after.includes(name))).toEqual([])
      await change(`update folders set firm_id = ${folders.otherFirm.firmId} where id = ${sameFirm.folderId}`)
      expect(await night()).toEqual([`${sameFirm.folderId} left`])
      const left = [`${first.folderId}.json`, ...(await filesOf(first.folderId)).map((name) => name.slice(6))]
      expect((await readdir(join(cwd, 'books'))).toSorted()).toEqual(left.toSorted())
    } finally {
      await change(`update folders set firm_id = ${sameFirm.firmId} where id = ${sameFirm.folderId}`)
      await rm(cwd, { recursive: true })
    }
  })

  test('verify finds rows changed in a copy, even after it was stored in files, and `changes` repairs them', async () => {
    await follow()
    const { result } = await python.session.run(`
def verdicts(books): return {proof.society: [list(proof.tables), bool(proof.entries), proof.is_equal] for proof in ledger().verify(books)}
def through_pandas(table): return pyarrow.Table.from_pandas(table.to_pandas())
result = [verdicts(books), verdicts({society: {name: through_pandas(table) for name, table in book.items()} for society, book in books.items()})]
for name, column, value in (("movements", "description", "x"), ("movements", "debit", decimal.Decimal("0.01")), ("accounts", "account_name", "x")):
    wrong = {society: dict(book) for society, book in books.items()}
    table = wrong["112"][name]
    values = [*table[column].to_pylist()[:-1], value]
    field = table.schema.field(column)
    at = table.schema.get_field_index(column)
    wrong["112"][name] = table.set_column(at, field, pyarrow.array(values).cast(field.type))
    result.append(verdicts(wrong))
    proofs = {proof.society: proof.known for proof in ledger().verify(wrong)}
    result.append([follow(wrong, proofs) == {society: digest(book) for society, book in books.items()}, "entries" in proofs["112"]])
lost = {"112": {**books["112"], "movements": books["112"]["movements"].slice(1)}}
result.append(verdicts(lost))
joined = grandlivre.joined(books, "movements")
result.append([joined.column_names[0], joined.num_rows == sum(book["movements"].num_rows for book in books.values())])`)
    const right = [[], false, true]
    const wrong = (...tables: string[]) => ({
      [first.folderId]: right,
      [sameFirm.folderId]: [tables, tables.length === 0, false],
    })
    const both = { [first.folderId]: right, [sameFirm.folderId]: right }
    const mended = [true, false]
    expect(result).toEqual([
      both,
      both,
      wrong(),
      mended,
      wrong(),
      mended,
      wrong('accounts'),
      mended,
      { [sameFirm.folderId]: [[], true, false] },
      ['society_id', true],
    ])
  })

  test('rows can also be read as tuples and dicts with Python values', async () => {
    const { result } = await python.session.run(`
change = next(ledger().changes())
row, values = next(change.dicts("movements")), next(change.rows("movements"))
result = [list(row.values()) == list(values), {name: type(value).__name__ for name, value in row.items()}]
result.append([each["description"] for each in change.dicts("movements") if "tab" in (each["description"] or "")][0])`)
    expect(result[0]).toBe(true)
    expect(result[1]).toMatchObject({
      entry_id: 'int',
      entry_date: 'date',
      created_at: 'datetime',
      draft: 'bool',
      debit: 'Decimal',
      account_name: 'str',
    })
    expect(result[2]).toBe('tab\t line\n back\\slash \\N é')
  })

  test('`changes` requests the incomplete ledgers again after a stream broke off', async () => {
    for (const [encoding, fault] of [
      ['identity', { kind: 'cut', afterBytes: 1_500_000 }],
      ['gzip', { kind: 'end', afterBytes: 5_000 }],
    ] as const) {
      python.spoil('mad/ledgers/changes', (nth) => (nth < 3 ? fault : undefined))
      python.proxy.asked = []
      const { result, error } = await python.session.run(
        `result = follow({}, {}, encoding="${encoding}", attempts=4)`,
      )
      expect([error, result]).toEqual([undefined, await truth()])
      expect(python.asked('mad/ledgers/changes')).toHaveLength(3)
    }
    const begunSecond = (whole: Buffer) =>
      whole.subarray(0, whole.indexOf(`{"ledger":"${sameFirm.folderId}"`) + 500)
    python.spoil('mad/ledgers/changes', (nth) =>
      nth === 1 ? { kind: 'rewrite', body: begunSecond } : undefined,
    )
    python.proxy.asked = []
    expect((await python.session.run('result = follow({}, {})')).result).toEqual(await truth())
    const bodies = python.asked('mad/ledgers/changes').map(({ body }) => JSON.parse(body()).ledgers)
    expect(bodies[1]).toEqual([{ society: sameFirm.folderId }])
    for (const fault of [
      { kind: 'cut', afterBytes: 1_000 },
      { kind: 'rewrite', body: () => Buffer.alloc(0) },
    ] as const) {
      python.spoil('mad/ledgers/changes', () => fault)
      const { error } = await python.session.run('follow({}, {})')
      expect(error).toMatchObject({
        code: 'CONNECTION-FAILED',
        message: expect.stringContaining('The ledgers stopped coming'),
      })
    }
  })

  describe('movements', () => {
    const read = (more = '') =>
      python.session.run(`
movements = list(ledger(grandlivre.Ledger, "${first.folderId}", attempts=4).movements(idExercice="${largeExercice}"${more}))
result = [[each["producerId"], each["entry"]["producerId"], str(each["value"]["debit"])] for each in movements]`)

    async function expectMovements(more = '', query = {}): Promise<void> {
      const { result, error } = await read(more)
      const url = movementsUrl(python.stage.service.url, { idExercice: largeExercice, ...query })
      const { json } = await download(url, { ...python.stage.firm, 'society-id': first.folderId })
      expect(error).toBeUndefined()
      expect(result).toEqual(
        json.map((each: { producerId: string; entry: { producerId: string }; value: { debit: number } }) => [
          each.producerId,
          each.entry.producerId,
          String(each.value.debit),
        ]),
      )
    }

    test('match the selection, even over several connections', async () => {
      await expectMovements()
      await expectMovements(', classAccount=["60", "61"]', { classAccount: '60,61' })
      for (const kind of ['cut', 'end'] as const) {
        python.proxy.asked = []
        python.spoil('mad/movements?', (nth) => (nth === 1 ? { kind, afterBytes: 2_000_000 } : undefined))
        await expectMovements()
        expect(python.asked('mad/movements?')).toHaveLength(2)
      }
    })

    const [lines, digests] = ['mad/movements?', 'mad/movements/blocks']
    test.each<[string, string, Fault, string?]>([
      ['one flipped bit of a line', lines, { kind: 'flip', at: 1_500_000 }],
      [
        'an end before the last line, again and again',
        lines,
        { kind: 'end', afterBytes: 0 },
        'CONNECTION-FAILED',
      ],
      [
        'a repeated line',
        lines,
        {
          kind: 'rewrite',
          body: (whole) => Buffer.concat([whole.subarray(0, whole.indexOf(10) + 1), whole]),
        },
      ],
      ['lines that are not JSON', lines, rewritten(() => '[\n')],
      ['changed digests', digests, rewritten((whole) => whole.replace(/"sha256":"./, '"sha256":"g'))],
      [
        'digests that leave entries out',
        digests,
        rewritten((whole) => JSON.stringify(JSON.parse(whole).slice(1))),
      ],
      ['digests with a wrong row count', digests, rewritten((whole) => whole.replace('"rows":', '"rows":9'))],
    ])('are refused with %s', async (_, path, fault, code = 'NOT-PROVEN') => {
      python.spoil(path, () => fault)
      expect((await read()).error?.code).toBe(code)
    })

    test('show one state: a change of the ledger before the first row starts the read again, a later one is an error', async () => {
      const touch = () => change(`update entries set comment = clock_timestamp()::text where id = 1000000`)
      const changing: FaultOf = async (nth) => {
        if (nth === 1) await touch()
        return undefined
      }
      python.spoil('mad/movements?', changing)
      await expectMovements()
      expect(python.asked('mad/movements?')).toHaveLength(2)
      python.spoil('mad/movements?', async (nth) => {
        if (nth === 1) return { kind: 'cut', afterBytes: 2_000_000 }
        await touch()
        return undefined
      })
      expect((await read()).error?.code).toBe('LEDGER-CHANGED')
    })
  })
})
