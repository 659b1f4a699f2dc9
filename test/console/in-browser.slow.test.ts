/** What staff see and do in the console, in Chromium. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { revokeConsoleKey } from '../../src/auth/console-keys.sql.ts'
import { limits } from '../../src/config.ts'
import { publish } from '../../src/events/publish.ts'
import { insertSubscription } from '../../src/webhooks/subscriptions.sql.ts'
import { isChromiumInstalled, openChromium } from '../support/browser/chromium.ts'
import { type ConsoleStage, setConsoleStage } from '../support/console/console-stage.ts'
import { movementsUrl, slowReader } from '../support/download.ts'
import { statusUrl, trigger } from '../support/full-export.ts'
import { addLargeExercice, largeExercice } from '../support/ledgers/large-exercice.ts'
import { credentials } from '../support/ledgers/tenants.ts'
import { request } from '../support/service.ts'
import { documentEvent } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const hostile = `"><script>document.title = 'run'</script><img src=x onerror="document.title='run'"> \u202e${'w'.repeat(300)}`

let stage: ConsoleStage
let browser: Browser
let page: Page

/** Messages and errors of pages, and their requests to other hosts. */
const complaints: string[] = []

async function openPage(options: BrowserContextOptions = {}): Promise<Page> {
  const opened = await (await browser.newContext(options)).newPage()
  opened.setDefaultTimeout(15_000)
  opened.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`))
  opened.on('pageerror', (error) => complaints.push(String(error)))
  opened.on('request', (asked) => {
    if (new URL(asked.url()).origin !== stage.origin) complaints.push(`a request to ${asked.url()}`)
  })
  return opened
}

async function signIn(on: Page, key = stage.key): Promise<void> {
  await on.goto(`${stage.origin}/console`)
  await on.getByLabel('Key').fill(key)
  await on.keyboard.press('Enter')
  await on.getByRole('navigation').waitFor()
}

/** Presses Tab until the element has the focus, as without a mouse. */
async function tabTo(on: Page, selector: string): Promise<void> {
  const target = on.locator(selector)
  for (let presses = 0; presses < 40; presses += 1) {
    if (await target.evaluate((element) => element === element.ownerDocument.activeElement)) return
    await on.keyboard.press('Tab')
  }
  throw new Error(`Tab does not lead to ${selector}`)
}

const background = (on: Page) => on.evaluate('getComputedStyle(document.body).backgroundColor')
const widthOf = (on: Page) => on.evaluate('document.documentElement.scrollWidth')

/** The rows that the audit has of an act. */
async function recorded(act: string): Promise<{ staff: string; details: object }[]> {
  const rows = await stage.staff.sql('select staff, details from audit_rows where act = $1 order by number', [
    act,
  ])
  return rows.map(({ staff, details }) => ({ staff, details: JSON.parse(details) }))
}

describe.skipIf(!isChromiumInstalled)('the console in a browser', () => {
  beforeAll(async () => {
    ;[stage, browser] = await Promise.all([setConsoleStage(), openChromium()])
    // A stream of this exercice does not end while its client does not read.
    await addLargeExercice(stage.staff.client, 8_000)
    page = await openPage()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))
  afterAll(async () => {
    await browser?.close()
    await stage?.close()
  })

  test('shows an error for a wrong key, and opens with the right one', async () => {
    await page.goto(`${stage.origin}/console`)
    await page.getByLabel('Key').fill('glv_console_wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).toBe('This key is not in use.')
    // The browser reports the status of the answer in its console.
    expect(complaints.splice(0)).toEqual([expect.stringContaining('401')])
    await signIn(page)
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Exports')
    expect(await page.getByRole('link', { name: 'Exports', exact: true }).getAttribute('aria-current')).toBe(
      'page',
    )
    expect(await recorded('console refuse')).toMatchObject([{ details: { address: '127.0.0.1' } }])
    expect((await recorded('console sign-in'))[0]!.staff).toMatch(/^console alice as /)
  })

  test('shows the progress of an export in another process, keeps the focus, and cancels the export by keyboard alone', async () => {
    const id = `export_${'1'.repeat(32)}`
    await stage.staff.sql(
      `insert into exports (schema_id, id, folder_id, version, format, identity, request_id, state, attempt, rows, rows_total)
       values (100, $1, 111, '1.0.0', 'JSON', repeat('1', 64), 'test', 'running', 2, 200, 1000)`,
      [id],
    )
    const row = page.locator(`#${id}`)
    await row.waitFor()
    expect(await row.innerText()).toContain('another process')
    await tabTo(page, `#${id} a >> text=Cancel`)
    await stage.staff.sql('update exports set rows = 700 where id = $1', [id])
    const bar = row.getByRole('progressbar')
    await until(async () => (await bar.getAttribute('value')) === '70')
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Cancel')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Cancel the export' }).waitFor()
    await page.keyboard.type('the <folder> & "books" move')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    const ended = page.locator(`#ended-${id}`)
    await ended.waitFor()
    expect(await ended.innerText()).toContain('They say: the <folder> & "books" move.')
    expect(await recorded('export cancel')).toMatchObject([
      { staff: expect.stringMatching(/^console alice/), details: { reason: 'the <folder> & "books" move' } },
    ])
  })

  test('names the thread that runs an attempt of this process; the attempt ends when it is cancelled', async () => {
    // The attempt waits for the table, in its thread.
    await stage.staff.sql('begin; lock table movements in access exclusive mode')
    const { body } = await trigger(stage.service.url, stage.company)
    const row = page.locator(`#${body.id}`)
    await until(async () => /rows\/s\t\d+\t1\t/.test(await row.innerText()))
    await row.getByRole('link', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Cancel the export' }).click()
    await page.locator(`#ended-${body.id}`).waitFor()
    await stage.staff.sql('rollback')
    const status = await request(statusUrl(stage.service.url, body.id), stage.company)
    expect(status.body.status).toBe('FAILED')
  })

  test('shows a stream with its partner, and cuts it off', async () => {
    const url = movementsUrl(stage.service.url, { idExercice: largeExercice })
    const reader = await slowReader(url, stage.company)
    const row = page.locator('tr[id^=stream_]')
    await row.waitFor()
    // Its first bytes may be sent after the row is there.
    await until(async () => /movements json\s+111\s+PARTNER\s+[\d.]+ MB/.test(await row.innerText()))
    await row.getByRole('link', { name: 'Cut' }).click()
    await page.getByLabel('Reason').fill('too slow')
    await page.getByRole('button', { name: 'Cut the stream' }).click()
    await expect(reader.read(Number.POSITIVE_INFINITY)).rejects.toThrow('aborted')
    await page.getByText('No export is streaming from this process.').waitFor()
    expect(await recorded('stream cut')).toMatchObject([
      { details: { stream: 'movements', reason: 'too slow' } },
    ])
  })

  test('shows the resources that the process uses, and charts, on a phone and in dark mode', async () => {
    await page.goto(`${stage.origin}/console/process`)
    expect(await page.getByText('Ready for requests.').count()).toBe(1)
    expect(await page.getByRole('img').count()).toBe(6)
    expect(await background(page)).toBe('rgb(251, 251, 250)')
    await page.emulateMedia({ colorScheme: 'dark' })
    await until(async () => (await background(page)) === 'rgb(22, 25, 27)')
    await page.setViewportSize({ width: 390, height: 800 })
  })

  test('works without its script: the reader reloads the page', async () => {
    const plain = await openPage({ javaScriptEnabled: false })
    await signIn(plain)
    await plain.reload()
    expect(await plain.getByRole('heading', { level: 1 }).innerText()).toBe('Exports')
    await plain.getByRole('button', { name: 'Sign out' }).click()
    await plain.getByLabel('Key').waitFor()
    await plain.context().close()
  })

  test('refuses a form of another origin on this machine', async () => {
    const evil = createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html')
      response.end(
        `<form method=post action="${stage.origin}/console/sign-out"><button>Win a prize</button></form>`,
      )
    }).listen(0, '127.0.0.1')
    await once(evil, 'listening')
    await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`)
    await page.getByRole('button').click()
    await page.getByText('This form was not sent from a page of the console.').waitFor()
    await page.goto(`${stage.origin}/console`)
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Exports')
    evil.close()
    // The request to the other origin, and the refusal of its form.
    expect(complaints.splice(0)).toEqual([
      expect.stringContaining('a request to http'),
      expect.stringContaining('403'),
    ])
  })

  test('says so when too many pages are open for live updates', async () => {
    await page.goto(`${stage.origin}/console/folders`)
    const leaving = new AbortController()
    const headers = { Cookie: await stage.signIn(), Accept: 'text/event-stream' }
    // Twice the limit, because pages of earlier tests may leave meanwhile.
    const others = Array.from({ length: 2 * limits.consoleViewersMax }, () =>
      stage.ask('/console', { headers, signal: leaving.signal }),
    )
    await Promise.all(others)
    await page.goto(`${stage.origin}/console`)
    await page.getByText('Not kept up to date: too many pages are open.').waitFor()
    leaving.abort()
  })

  test('registers a partner, issues a token and revokes it, and never shows either secret again', async () => {
    const secretOf = () => page.locator('output.secret').innerText()
    const statusOf = async (token: string, secret: string) =>
      (await request(`${stage.service.url}/api/v1/key/info`, credentials(token, secret))).status
    await page.goto(`${stage.origin}/console/partners`)
    await page.getByLabel('Code').last().fill('BROWSER')
    await page.getByLabel('Name', { exact: true }).fill(hostile)
    await page.keyboard.press('Enter')
    await page.getByText('Third party BROWSER (partner)').waitFor()
    const secret = await secretOf()
    await page.getByRole('link', { name: 'Back' }).click()
    await page.getByLabel('Id of the folder or firm').fill('111')
    await page.keyboard.press('Enter')
    const token = await secretOf()
    expect(page.url()).not.toContain(token)
    expect(await statusOf(token, secret)).toBe(200)
    await page.getByRole('link', { name: 'Back' }).click()
    expect(await page.content()).not.toContain(token)
    // The browser has kept no copy of the answer, and shows an error of its own, which takes a moment to appear.
    await expect(page.goBack()).rejects.toThrow('ERR_CACHE_MISS')
    const former = () => page.content().catch(() => undefined)
    await until(async () => (await former()) !== undefined)
    expect(await former()).not.toContain(token)
    await page.goto(`${stage.origin}/console/partners/BROWSER`)
    await page.getByRole('link', { name: /^Revoke token/ }).press('Enter')
    await page.getByRole('button', { name: /^Revoke token/ }).press('Enter')
    await page.getByText('is revoked: it is refused from now on').waitFor()
    expect(await statusOf(token, secret)).toBe(401)
  })

  test('has no page that is wider than a phone; texts of others neither run as code nor become links', async () => {
    await stage.staff.sql('update folders set name = $1, reference = $1 where id = 111', [hostile])
    const { id } = await insertSubscription(stage.staff.client, {
      ...{ schemaId: '100', level: 'staff', firmId: null, folderIds: [], onEvents: ['document'] },
      thirdPartyId: stage.thirdPartyId,
      postUrl: 'https://example.com/',
    })
    await stage.staff.sql('begin')
    await publish(stage.staff.client, '100', [documentEvent(hostile, '111')])
    await stage.staff.sql('commit')
    const partners = ['/partners', '/partners/BROWSER', '/partners/BROWSER/disconnect', '/partners/NOBODY']
    const others = ['/folders', '/folders/111', '/subscriptions', `/subscriptions/${id}`, '/events']
    for (const path of ['/process', '', `/exports/export_${'1'.repeat(32)}/cancel`, ...partners, ...others]) {
      await page.goto(`${stage.origin}/console${path}`)
      expect([path, await widthOf(page), await page.title()]).toEqual([
        path,
        390,
        expect.not.stringMatching(/^run$/),
      ])
    }
    // The browser reports the page of the partner that does not exist.
    expect(complaints.splice(0)).toEqual([expect.stringContaining('404')])
  })

  test('shows the sign-in page once the key is revoked', async () => {
    await page.goto(`${stage.origin}/console`)
    await revokeConsoleKey(stage.staff.client, 'alice')
    await page.getByLabel('Key').waitFor()
    // The browser reports that its next event stream is refused.
    expect(complaints.splice(0).filter((text) => !text.includes('401'))).toEqual([])
  })
})
