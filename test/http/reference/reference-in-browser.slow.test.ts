/** What a reader of /docs/api/ sees, in Chromium. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { routes } from '../../../src/http/app.ts'
import { isChromiumInstalled, openChromium } from '../../support/browser/chromium.ts'
import { type DemoStage, setDemoStage } from '../../support/stages/demo-stage.ts'

/** A host name that leads to this machine, like one that an attacker chose. */
const otherHost = 'ledger.example.com'

let stage: DemoStage
let browser: Browser
/** The page at the loopback address. */
let page: Page

/** Messages in the console of pages, their errors, and their requests to other hosts. */
const complaints: string[] = []

async function openReference(host: string): Promise<Page> {
  const origin = `http://${host}:${new URL(stage.service.url).port}`
  const opened = await browser.newPage()
  opened.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`))
  opened.on('pageerror', (error) => complaints.push(String(error)))
  opened.on('request', (request) => {
    if (!/^(?:data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin)
      complaints.push(`a request to ${request.url()}`)
  })
  await opened.goto(`${origin}/docs/api/`)
  await opened.locator('#operations-webhooks-post-ping').waitFor()
  return opened
}

/** Opens an operation through the table of contents. */
async function openOperation(on: Page, name: string) {
  await on.locator('#contents').getByRole('link', { name, exact: true }).click()
  const operation = on.locator('.opblock.is-open').last()
  await operation.locator('.execute').waitFor()
  return operation
}

interface Shown {
  status: string
  body: string
}

async function execute(on: Page, name: string, fields: Record<string, string> = {}): Promise<Shown> {
  const operation = await openOperation(on, name)
  for (const [field, value] of Object.entries(fields)) await operation.getByPlaceholder(field).fill(value)
  await operation.locator('.execute').click()
  const answer = operation.locator('.live-responses-table .response')
  const status = await answer.locator('.response-col_status').innerText()
  const body = await answer.locator('.highlight-code code').innerText()
  await operation.locator('.opblock-summary-control').click()
  return { status, body }
}

const background = (on: Page) => on.evaluate('getComputedStyle(document.body).backgroundColor')

describe.skipIf(!isChromiumInstalled)('the reference in a browser', () => {
  beforeAll(async () => {
    ;[stage, browser] = await Promise.all([setDemoStage(500), openChromium([otherHost])])
    page = await openReference('127.0.0.1')
  })

  afterAll(async () => {
    await browser?.close()
    await stage?.close()
  })

  test('shows every route and every message to subscribers, in groups', async () => {
    const drawn = await page.$$eval('.opblock', (operations) =>
      operations.map((operation) => ({
        method: operation.querySelector('.opblock-summary-method')?.textContent?.toLowerCase(),
        path: operation.querySelector('[data-path]')?.getAttribute('data-path'),
      })),
    )
    const sent = ['notification', 'ping'].map((path) => ({ method: 'post', path }))
    const served = routes.map(({ method, path }) => ({ method, path }))
    const sorted = (operations: object[]) => operations.map((operation) => JSON.stringify(operation)).sort()
    expect(sorted(drawn)).toEqual(sorted([...served, ...sent]))
    const withoutPlace =
      '[...document.querySelectorAll("#contents a")].filter(({ hash }) => !document.querySelector(hash)).length'
    expect(await page.locator('#contents a').count()).toBe(drawn.length)
    expect(await page.evaluate(withoutPlace)).toBe(0)
    expect(await page.locator('#reference').innerText()).not.toContain('default\n')
  })

  test('sends requests with the credentials of the demo if opened on the machine of the service', async () => {
    expect(await page.locator('#credentials').innerText()).toContain('of the demo folder')
    const { status, body } = await execute(page, 'GET /mad/movements')
    expect(status).toBe('200')
    const movements = JSON.parse(body)
    expect(movements[0]).toMatchObject({ producerId: expect.any(String), value: expect.any(Object) })
    expect(movements.at(-1)).toBe('This page shows the first 64 KB of the answer.')
  })

  test('sends requests with the credentials that the reader enters', async () => {
    const elsewhere = await openReference(otherHost)
    expect(await elsewhere.locator('#credentials').innerText()).toContain('enter an access token')
    expect((await execute(elsewhere, 'GET /society')).status).toBe('401')
    await elsewhere.locator('.btn.authorize').first().click()
    const { firmToken, thirdPartySecret, societyId } = stage.credentials
    const inputs = elsewhere.locator('.auth-container input')
    await inputs.nth(0).fill(firmToken)
    await inputs.nth(1).fill(thirdPartySecret)
    // A pressed button becomes one to log out, so the second is pressed first.
    const enter = elsewhere.locator('.auth-container button[type=submit]')
    await enter.nth(1).click()
    await enter.nth(0).click()
    await elsewhere.locator('.btn-done').first().click()
    const { status, body } = await execute(elsewhere, 'GET /mad/exercices', { 'society-id': societyId })
    expect([status, JSON.parse(body).length]).toEqual(['200', stage.credentials.exercices.length])
    expect(await elsewhere.evaluate('JSON.stringify([localStorage, sessionStorage])')).not.toContain('glv_')
  })

  test('is dark at once for readers who prefer that, and fits a narrow screen', async () => {
    expect(await background(page)).toBe('rgb(255, 255, 255)')
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(() => background(page)).toBe('rgb(28, 32, 34)')
    await page.setViewportSize({ width: 390, height: 800 })
    await page.locator('#operations-Ledger-get-mad-movements .opblock-summary-control').click()
    await page.locator('.opblock.is-open .execute').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  })

  test('logs no error, and loads nothing from other hosts', () => {
    // A request of the reader got a 401, which the browser reports.
    const own = complaints.filter((complaint) => !complaint.includes('status of 401'))
    expect(own).toEqual([])
  })
})
