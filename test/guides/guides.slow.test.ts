/** Runs every command and every program in the guides for partners, in the order of the page. */
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { askParquet } from '../support/fixtures/parquet.ts'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { isOutput, type Step, stepsOf } from '../support/guides/blocks.ts'
import { type Shell, startShell } from '../support/guides/shell.ts'
import { isInstalled, missingFor, packagesOf } from '../support/guides/tools.ts'
import { environment } from '../support/process.ts'
import { freePort } from '../support/servers/pgbouncer.ts'
import { request } from '../support/service.ts'
import { setSampleStage } from '../support/stages/sample-stage.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
/** The queries of sql.md and the programs of generated-clients.md have tests of their own. */
const guides = (await readdir(join(root, 'docs/guides'))).filter((name) =>
  /(?<!^sql|^generated-clients)\.md$/.test(name),
)
const textOf = (guide: string) => readFileSync(join(root, 'docs/guides', guide), 'utf8')

const stage = forTests(() => setSampleStage(4_000))
let folder: string
let shell: Shell
let blanks: [string, string][]

beforeAll(async () => {
  const { companyToken, firmToken, thirdPartySecret, exercices } = stage.credentials
  const [port, pythonPort] = [await freePort(), await freePort()]
  blanks = [
    ['https://ledger.example.com', stage.url],
    ['glv_api_...', companyToken],
    ['glv_firm_...', firmToken],
    ['glv_secret_...', thirdPartySecret],
    ['https://example.com/ledger', `http://127.0.0.1:${port}/`],
    ['https://example.com/python', `http://127.0.0.1:${pythonPort}/`],
    ['3000', String(port)],
    ['4000', String(pythonPort)],
    ['2026', exercices.at(-1)!.start.slice(0, 4)],
  ]
})

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-guide-'))
  // Links the package from its sources, in place of `npm install`.
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true })
  await symlink(join(root, 'packages/partner'), join(folder, 'node_modules/grandlivre'))
  const bin = join(folder, 'node_modules/.bin')
  // npx itself takes half a second each time.
  for (const [name, line] of [
    ['grandlivre', `exec node ${root}/packages/partner/src/grandlivre.ts "$@"`],
    ['npx', `exec ${bin}/"$@"`],
  ] as const)
    await writeFile(join(bin, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 })
  shell = startShell(folder, {
    ...environment,
    PATH: `${bin}:${environment.PATH}`,
    HOME: folder,
    PYTHONPATH: [resolve(root, '.cache/python'), resolve(root, 'python/src'), packagesOf('package')].join(
      ':',
    ),
  })
})

afterEach(async () => {
  await shell.close()
  await rm(folder, { recursive: true, force: true })
})

const filled = (text: string) =>
  blanks.reduce((filling, [name, value]) => filling.replaceAll(name, value), text)

const ask = async (path: string) => (await request(`${stage.url}/api/v1${path}`, stage.company)).body

/** Events that the pages mention, which the test causes. */
const events: Record<string, () => Promise<unknown>> = {
  'the bookkeeper corrects 100 entries': () => stage.correctEntries(),
  'the bookkeeper corrects 100 entries while something listens': async () => {
    await until(async () => (await ask('/webhook')).length > 0)
    await stage.correctEntries()
  },
  'the database fails over, and nothing is lost': () => stage.change('select begin_epoch(true)'),
  'a line of the copy is damaged': async () => {
    const copy = join(folder, 'movements.ndjson')
    writeFileSync(copy, (await readFile(copy, 'utf8')).replace('"description":"', '"description":"é'))
  },
  'the receiver has had its event': async () => {
    const [{ id }] = await ask('/webhook/event/cloudDocument')
    await until(async () => (await ask(`/webhook/${id}/deliveries?state=delivered`)).length === 1)
  },
}

const isLeftOut = ({ needs }: Step): boolean =>
  needs !== undefined && !isInstalled[needs as keyof typeof isInstalled]

test.each(guides)('%s', async (guide) => {
  const page = textOf(guide)
  const missing = missingFor(page)
  let printed = () => ''
  for (const step of stepsOf(page)) {
    if (missing.length > 0 || isLeftOut(step)) continue
    if (step.kind === 'file') writeFileSync(join(folder, step.name), filled(step.text))
    else if (step.kind === 'run') printed = await shell.run(filled(step.text))
    else if (step.kind === 'meanwhile') {
      expect(Object.keys(events), `${guide}, line ${step.line}`).toContain(step.event)
      await events[step.event]!()
    } else await expectOutput(printed, filled(step.text), `${guide}, line ${step.line}`)
  }
})

test('the balances computed from a Parquet file of several years equal those of the service', async () => {
  const guide = stepsOf(textOf('year-every-night.md'))
  const query = guide.flatMap((step) =>
    step.kind === 'file' && step.name === 'balances.sql' ? step.text : [],
  )
  const { body: job } = await trigger(stage.url, stage.company, { format: 'PARQUET' })
  const { url } = await ended(stage.url, stage.company, job.id)
  const file = Buffer.from(await (await fetch(url!)).arrayBuffer())
  const [balances, openings] = await askParquet(
    file,
    query[0]!.replace("'folder.parquet'", 'file'),
    `select distinct exercice_id from file where journal_type = 'AN'`,
  )
  const { exercices } = stage.credentials
  expect(exercices.length).toBeGreaterThan(1)
  expect(openings!.length).toBeGreaterThan(0)
  for (const { id } of exercices) {
    const own = balances!.filter(([exerciceId]) => exerciceId === id)
    const served: Balance[] = await ask(`/mad/balance?version=1.0.0&idExercice=${id}`)
    expect(own.map(([, ...shown]) => shown)).toEqual(
      served.map(({ account: { producerId, number, name }, debit, credit, balance }) => [
        ...[producerId, number, name],
        ...[debit, credit, balance].map((amount) => amount.toFixed(2)),
      ]),
    )
  }
})

interface Balance {
  account: { producerId: string; number: string; name: string }
  debit: number
  credit: number
  balance: number
}

const patienceMs = 10_000

/** Waits for an output: a program in the background may print it later. */
async function expectOutput(printed: () => string, shown: string, where: string): Promise<void> {
  const start = Date.now()
  await until(() => isOutput(printed(), shown) || Date.now() - start > patienceMs)
  if (!isOutput(printed(), shown)) expect(printed(), where).toBe(shown)
}
