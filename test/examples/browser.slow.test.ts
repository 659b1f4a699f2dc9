/** The page that shows balances while a year arrives, in a real browser. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isChromiumInstalled, openChromium } from '../support/browser/chromium.ts'
import { download, movementsUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { type Program, startProgram } from '../support/guides/run-program.ts'
import { setSampleStage } from '../support/stages/sample-stage.ts'
import { until } from '../support/until.ts'

describe.skipIf(!isChromiumInstalled)('examples/browser', () => {
  const stage = forTests(() => setSampleStage(6_000))
  let server: Program
  let browser: Browser
  let url: string

  beforeAll(async () => {
    const words = ['node', 'examples/browser/server.ts', stage.idExercice] as [string, ...string[]]
    server = startProgram(words, stage.credentials, { env: { PORT: '0' } })
    await until(() => server.output.out.includes('\n') || server.child.exitCode !== null)
    url = server.output.out.trim()
    browser = await openChromium()
  })

  afterAll(async () => {
    await browser?.close()
    server?.child.kill()
    await server?.ended
  })

  /** Opens the page, and waits until it says how it ended. */
  async function open(prepare: (page: Page) => Promise<unknown> = async () => {}) {
    const page = await browser.newPage()
    const seen: { url: string; text: string }[] = []
    const errors: string[] = []
    page.on('console', (message) => {
      // Browsers request an icon on their own.
      const isIcon = message.location().url.endsWith('/favicon.ico')
      if (message.type() === 'error' && !isIcon) errors.push(message.text())
    })
    page.on('pageerror', (error) => errors.push(error.message))
    page.on('response', async (response) => {
      seen.push({ url: response.url(), text: await response.text().catch(() => '') })
    })
    await prepare(page)
    await page.goto(url)
    await page.getByText(/equal to the ledger|^Not whole/).waitFor()
    const state = await page.textContent('#state')
    const rows = await page.$$eval('#balances tr', (lines) =>
      lines.map((line) =>
        [...(line as unknown as { cells: { textContent: string }[] }).cells].map((cell) => cell.textContent),
      ),
    )
    await page.close()
    return { state, rows, seen, errors }
  }

  async function balances() {
    const { json } = await download(movementsUrl(stage.url, { idExercice: stage.idExercice }), stage.company)
    const accounts = new Map<string, { name: string; debit: number; credit: number }>()
    for (const { account, value } of json) {
      const sums = accounts.get(account.number) ?? { name: account.name, debit: 0, credit: 0 }
      sums.debit += Math.round(value.debit * 100)
      sums.credit += Math.round(value.credit * 100)
      accounts.set(account.number, sums)
    }
    const money = (cents: number) => (cents / 100).toFixed(2)
    return [...accounts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([number, { name, debit, credit }]) => [
        number,
        name,
        money(debit),
        money(credit),
        money(debit - credit),
      ])
  }

  const isWhole = /^\d+ movements, equal to the ledger in [2-9] blocks$/

  test('shows verified balances of the year, and contains no secret', async () => {
    const { state, rows, seen, errors } = await open()
    expect(state).toMatch(isWhole)
    expect(rows).toEqual(await balances())
    expect(errors).toEqual([])
    expect(seen.filter((answer) => !answer.url.startsWith(url))).toEqual([])
    const { companyToken, thirdPartySecret } = stage.credentials
    for (const secret of [companyToken, thirdPartySecret])
      expect(seen.filter(({ text }) => text.includes(secret))).toEqual([])
  })

  test('begins again if the ledger changes before the movements arrive', async () => {
    let asked = 0
    const { state, rows } = await open((page) =>
      page.route('**/blocks', async (route) => {
        const response = await route.fetch()
        asked += 1
        if (asked === 1) await stage.correctEntries()
        await route.fulfill({ response })
      }),
    )
    expect([asked, state]).toEqual([2, expect.stringMatching(isWhole)])
    expect(rows).toEqual(await balances())
  })

  test.each([
    ['a changed line', (text: string) => text.replace('"description":"', '"description":"é')],
    ['a missing line', (text: string) => text.slice(text.indexOf('\n') + 1)],
    ['a missing end', (text: string) => text.replace(/\n.*\n$/, '\n')],
  ])('detects %s', async (_, damage) => {
    const { state } = await open((page) =>
      page.route('**/movements', async (route) => {
        const response = await route.fetch()
        await route.fulfill({ response, body: damage(await response.text()) })
      }),
    )
    expect(state).toMatch(/^Not whole: Entries \d+ to \d+ are not those of the ledger$/)
  })
})
