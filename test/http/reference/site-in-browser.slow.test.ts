/** What a reader of /docs/ sees, in Chromium. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isChromiumInstalled, openChromium } from '../../support/browser/chromium.ts'
import { currentSite, serveSite } from '../../support/browser/site.ts'
import { type CallerStage, setCallerStage } from '../../support/stages/caller-stage.ts'

let stage: CallerStage
let browser: Browser
let page: Page

/** Messages in the console of pages, their errors, and their requests to other hosts. */
const complaints: string[] = []

async function open(url: string): Promise<Page> {
  const opened = await browser.newPage()
  opened.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`))
  opened.on('pageerror', (error) => complaints.push(String(error)))
  opened.on('request', (request) => {
    if (!request.url().startsWith('data:') && new URL(request.url()).origin !== new URL(url).origin)
      complaints.push(`a request to ${request.url()}`)
  })
  opened.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} for ${response.url()}`)
  })
  await opened.goto(url)
  return opened
}

/** Presses the key until the search is open: before its scripts have run, a page does not listen to keys. */
async function openSearch(on: Page, key: string): Promise<void> {
  const isOpen = async () => {
    const count = await on.locator('.search-input').count()
    if (count === 0) await on.keyboard.press(key)
    return count
  }
  await expect.poll(isOpen, { timeout: 30_000 }).toBe(1)
}

/** @returns the links of the first five hits, without the base of the site */
async function search(question: string, on = page, base = '/docs/'): Promise<string[]> {
  // Without this, the search would begin with the results of the search before.
  await on.evaluate('sessionStorage.clear()')
  await on.reload()
  await openSearch(on, '/')
  await on.locator('.search-input').fill(question)
  const results = on.locator('.VPLocalSearchBox .result')
  let links: string[] = []
  const read = async () => {
    links = await results.evaluateAll((all) => all.slice(0, 5).map((link) => link.getAttribute('href')!))
    return links.length
  }
  await expect.poll(read, { timeout: 30_000 }).toBeGreaterThan(0)
  await on.keyboard.press('Escape')
  return links.map((link) => link.replace(base, ''))
}

const background = (on: Page) => on.evaluate('getComputedStyle(document.body).backgroundColor')

describe.skipIf(!isChromiumInstalled)('the site in a browser', () => {
  beforeAll(async () => {
    ;[stage, browser] = await Promise.all([setCallerStage(), openChromium(), currentSite()])
    page = await open(`${stage.service.url}/docs/`)
  })

  afterAll(async () => {
    await browser?.close()
    await stage?.close()
  })

  test.each([
    ['ERR-FORBIDDEN-ROUTE', 'errors.html#err-forbidden-route'],
    ['429 too many requests', 'errors.html#429-too-many-requests'],
    ['signature does not match', 'guides/webhooks.html'],
    ['my webhook is not arriving', 'guides/webhooks.html'],
    ['every night', 'guides/year-every-night.html'],
    ['turnover by account', 'guides/sql.html'],
    ['cursor too old', 'guides/staying-in-step.html'],
    ['deleted entries', 'spec/changes.html'],
    ['import a FEC', 'spec/imports.html'],
    ['prometheus alerts', 'operators/metrics.html'],
    ['restore a backup', 'operators/restore.html'],
    ['erase a company', 'operators/erasure.html'],
    ['what changed in version', 'changelog.html'],
    ['release notes', 'changelog.html'],
  ])('a search for "%s" finds %s among the first five', async (question, wanted) => {
    const links = await search(question)
    expect(links.map((link) => (wanted.includes('#') ? link : link.split('#')[0]))).toContain(wanted)
  })

  test('a reader with a keyboard searches, opens a hit and walks to the next page', async () => {
    const keys = await open(`${stage.service.url}/docs/partners.html`)
    await openSearch(keys, 'Control+k')
    await keys.keyboard.type('ERR-FORBIDDEN-ROUTE')
    // Results for the first letters appear before those for the whole code.
    await keys.locator('.VPLocalSearchBox .result.selected[href$="#err-forbidden-route"]').waitFor()
    await keys.keyboard.press('Enter')
    await keys.waitForURL(/errors\.html#err-forbidden-route$/)
    await keys.keyboard.press('Tab')
    expect(await keys.evaluate('document.activeElement.tagName')).not.toBe('BODY')
    // The first link of a page skips its navigation.
    await keys.goto(`${stage.service.url}/docs/partners.html`)
    await keys.keyboard.press('Tab')
    expect(await keys.evaluate('document.activeElement.textContent')).toContain('Skip to content')
    const next = keys.locator('.VPDocFooter .next')
    await next.focus()
    await keys.keyboard.press('Enter')
    await keys.waitForURL(/questions\.html/)
    await keys.locator('main h1', { hasText: 'Questions' }).waitFor()
    await keys.close()
  })

  test('is dark for readers who prefer that or switch to it', async () => {
    expect(await background(page)).toBe('rgb(255, 255, 255)')
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(() => background(page)).toBe('rgb(27, 27, 31)')
    await page.locator('.VPNavBarAppearance button').click()
    await expect.poll(() => background(page)).toBe('rgb(255, 255, 255)')
    await page.reload()
    expect(await background(page)).toBe('rgb(255, 255, 255)')
  })

  test.each([
    '',
    'errors.html',
    'commands.html',
    'guides/sql.html',
    'spec/tra.html',
    'operators/metrics.html',
  ])('fits a phone at /docs/%s', async (path) => {
    const phone = await open(`${stage.service.url}/docs/${path}`)
    await phone.setViewportSize({ width: 390, height: 800 })
    await expect.poll(() => phone.evaluate('document.documentElement.scrollWidth')).toBe(390)
    await phone.locator('.VPLocalNav .menu').click()
    await phone.locator('.VPSidebar.open').getByText('For operators').first().waitFor()
    await phone.close()
  })

  test('links to the reference of the API, and old links to an operation still lead there', async () => {
    const api = await open(`${stage.service.url}/docs/`)
    await api.locator('.VPNavBarMenu').getByRole('link', { name: 'API' }).click()
    await api.locator('#operations-webhooks-post-ping').waitFor()
    await api.goto(`${stage.service.url}/docs#/Ledger/get-mad-movements`)
    await api.locator('#operations-Ledger-get-mad-movements.is-open').waitFor()
    expect(new URL(api.url()).pathname).toBe('/docs/api/')
    expect(await api.getByRole('link', { name: 'Documentation' }).getAttribute('href')).toMatch(/\/docs\/$/)
    await api.close()
  })

  test('can be served by another web server below another path', async () => {
    const out = await mkdtemp(join(tmpdir(), 'grandlivre-site-'))
    const server = await serveSite(out, '/books/')
    try {
      const elsewhere = await open(`${server.url}/books/guides/webhooks.html`)
      expect(await search('ERR-FORBIDDEN-ROUTE', elsewhere, '/books/')).toContain(
        'errors.html#err-forbidden-route',
      )
      await elsewhere.locator('.VPSidebar').getByRole('link', { name: 'A first call' }).click()
      await elsewhere.waitForURL(/\/books\/guides\/first-call\.html/)
      await elsewhere.close()
    } finally {
      server.close()
      await rm(out, { recursive: true })
    }
  })

  test('logs no error, and loads nothing from other hosts', () => {
    expect(complaints).toEqual([])
  })
})
