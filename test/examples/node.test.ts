/** The example that follows a ledger with the client. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { download, movementsUrl } from '../support/download.ts'
import { startProgram } from '../support/guides/run-program.ts'
import { type SampleStage, setSampleStage } from '../support/stages/sample-stage.ts'
import { until } from '../support/until.ts'

let stage: SampleStage

beforeAll(async () => {
  stage = await setSampleStage(2_000)
})

afterAll(() => stage?.close())

/** The line that it prints for the ledger as it is now. */
async function expected(): Promise<string> {
  const { json } = await download(movementsUrl(stage.url, { idExercice: stage.idExercice }), stage.company)
  const cents: Record<string, number> = {}
  for (const { account, value } of json)
    cents[account.number[0]] =
      (cents[account.number[0]] ?? 0) + Math.round(value.debit * 100) - Math.round(value.credit * 100)
  const classes = Object.entries(cents).map(([first, sum]) => `${first}: ${(sum / 100).toFixed(2)}`)
  return `${json.length} movements; ${classes.toSorted().join(', ')}`
}

test('it shows the balances of a year, and again after each change', async () => {
  const program = ['node', 'examples/node/follow.ts', stage.idExercice] as [string, ...string[]]
  const { child, output, ended } = startProgram(program, stage.credentials)
  try {
    const line = async (count: number) => {
      await until(() => output.out.split('\n').length > count || child.exitCode !== null)
      expect(output.error).toBe('')
      return output.out.split('\n')[count - 1]
    }
    expect(await line(1)).toBe(await expected())
    await stage.change(`delete from entries where id in (select id from entries
      where exercice_id = ${stage.idExercice} and validated_at is not null order by id desc limit 3)`)
    expect(await line(2)).toBe(await expected())
    expect(output.out.split('\n')[1]).not.toBe(output.out.split('\n')[0])
    // The program waits for the next change; the one before is forgotten by the time that it asks again.
    await stage.change(`update entries set comment = 'x' where exercice_id = ${stage.idExercice};
      update ledger_changes set logged_at = logged_at - interval '2 days'; select forget_ledger_changes(now(), 100000)`)
    expect(await line(3)).toBe(await expected())
  } finally {
    child.kill()
    await ended
  }
})
