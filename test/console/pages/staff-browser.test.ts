/** What staff do with partners and subscriptions, in Chromium: with the keyboard, and on a phone. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import { publish } from '../../../src/events/publish.ts'
import { insertSubscription } from '../../../src/webhooks/subscriptions.sql.ts'
import { isChromiumInstalled, openChromium } from '../../support/browser/chromium.ts'
import { type ConsoleStage, setConsoleStage } from '../../support/console/console-stage.ts'
import { credentials } from '../../support/ledgers/tenants.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { request } from '../../support/service.ts'
import { documentEvent } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const hostile = `"><script>document.title = 'run'</script><img src=x onerror="document.title='run'"> \u202e${'w'.repeat(300)}`

let stage: ConsoleStage
let browser: Browser
let receiver: Receiver
/** What a page complains about, and addresses elsewhere that it asks. */
const complaints: string[] = []

describe.runIf(isChromiumInstalled)('in a browser', () => {
  beforeAll(async () => {
    ;[stage, browser] = await Promise.all([setConsoleStage({ webhookAllowInsecure: true }), openChromium()])
    receiver = await startReceiver(stage.company['X-Third-Party-Secret']!)
  })
  afterAll(async () => {
    await browser?.close()
    await stage?.close()
    await receiver?.close()
  })

  async function signedIn(path: string, width = 1280): Promise<Page> {
    const context = await browser.newContext({ viewport: { width, height: 844 } })
    const page = await context.newPage()
    page.on('console', (message) => {
      // A refusal is a page with its status, which the browser reports.
      if (message.type() === 'error' && !/status of 4\d\d/.test(message.text()))
        complaints.push(message.text())
    })
    page.on('request', (asked) => {
      if (!asked.url().startsWith(stage.origin)) complaints.push(asked.url())
    })
    await page.goto(`${stage.origin}/console${path}`)
    await page.getByLabel('Key').fill(stage.key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1 }).waitFor()
    return page
  }

  const secretOf = (page: Page) => page.locator('output.secret').innerText()
  const infoOf = async (token: string, secret: string) =>
    (await request(`${stage.service.url}/api/v1/key/info`, credentials(token, secret))).status

  test('staff register a partner, issue a token and revoke it, and neither secret is ever shown again', async () => {
    const page = await signedIn('/partners')
    await page.getByLabel('Code').last().fill('BROWSER')
    await page.getByLabel('Name', { exact: true }).fill(hostile)
    await page.keyboard.press('Enter')
    await page.getByText('Third party BROWSER (partner)').waitFor()
    const secret = await secretOf(page)
    await page.getByRole('link', { name: 'Back' }).click()
    await page.getByLabel('Id of the folder or firm').fill('111')
    await page.keyboard.press('Enter')
    const token = await secretOf(page)
    expect(page.url()).not.toContain(token)
    expect(await infoOf(token, secret)).toBe(200)
    await page.getByRole('link', { name: 'Back' }).click()
    expect(await page.content()).not.toContain(token)
    // The browser has kept no copy of the answer, and shows an error of its own, which takes a moment to appear.
    await expect(page.goBack()).rejects.toThrow('ERR_CACHE_MISS')
    let former: string | undefined
    await until(async () => {
      former = await page.content().catch(() => undefined)
      return former !== undefined
    })
    expect(former).not.toContain(token)
    await page.goto(`${stage.origin}/console/partners/BROWSER`)
    await page.getByRole('link', { name: /^Revoke token/ }).press('Enter')
    await page.getByRole('button', { name: /^Revoke token/ }).press('Enter')
    await page.getByText('is revoked: it is refused from now on').waitFor()
    expect(await infoOf(token, secret)).toBe(401)
    expect(await page.title()).not.toBe('run')
    await page.context().close()
  })

  test('staff send a failed delivery again, and it reaches its receiver', async () => {
    const { id } = await insertSubscription(stage.staff.client, {
      ...{ schemaId: '100', level: 'staff', firmId: null, folderIds: [], onEvents: ['document'] },
      thirdPartyId: stage.thirdPartyId,
      postUrl: `${receiver.url}/browser`,
    })
    receiver.behave('/browser', (response) => void response.writeHead(500).end(hostile))
    const owner = createOwnerPool(stage.database.ownerUrl, { max: 1, applicationName: 'grandlivre test' })
    await inTransaction(owner, (client) => publish(client, '100', [documentEvent(hostile, '111')]))
    // As if the table of retries were used up.
    await until(async () => {
      const { rowCount } = await owner.query(
        `update deliveries d set state = 'failed', next_attempt_at = null, finished_at = now()
         where subscription_id = $1 and state = 'pending'
           and exists (select from delivery_attempts a where a.delivery_id = d.id)`,
        [id],
      )
      return rowCount === 1
    })
    await owner.end()
    const page = await signedIn(`/subscriptions/${id}`)
    await page.getByRole('region').getByRole('link').click()
    expect(await page.getByRole('cell', { name: '500' }).count()).toBe(1)
    await page.goBack()
    receiver.behave('/browser', (response) => void response.writeHead(204).end())
    await page.getByRole('link', { name: 'Send failed deliveries again' }).press('Enter')
    await page.getByRole('button', { name: /^Send the failed deliveries/ }).press('Enter')
    await page.getByText('1 failed delivery is sent again.').waitFor()
    await until(() => receiver.accepted('/browser').length === 1)
    expect(receiver.forged).toEqual([])
    await page.context().close()
  })

  test('no page is wider than a phone, and no text of others runs or leads elsewhere', async () => {
    const { client } = stage.staff
    await client.query('update grandlivre.folders set name = $1, reference = $1 where id = 111', [hostile])
    const { rows } = await client.query('select id from grandlivre.subscriptions')
    const page = await signedIn('/folders', 390)
    const paths = [
      '/folders',
      '/folders/111',
      '/partners',
      '/partners/BROWSER',
      '/partners/BROWSER/disconnect',
    ]
    const others = ['/subscriptions', `/subscriptions/${rows[0].id}`, '/events', '/partners/NOBODY']
    for (const path of [...paths, ...others]) {
      await page.goto(`${stage.origin}/console${path}`)
      const excess = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      expect([path, await page.evaluate(excess), await page.title()]).toEqual([
        path,
        0,
        expect.not.stringMatching(/^run$/),
      ])
    }
    expect(complaints).toEqual([])
    await page.context().close()
  })
})
