/** Pictures of the console's pages of folders, partners and subscriptions: what staff see when a receiver is down. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { findThirdParty } from '../src/auth/third-parties.sql.ts'
import { ourSettings, withStartupOptions } from '../src/db/pool.ts'
import { publish } from '../src/events/publish.ts'
import { insertSubscription } from '../src/webhooks/subscriptions.sql.ts'
import { type ConsolePicture, type ConsoleStage, desktop, phone, signedIn } from './console-pictures.ts'

export const staffPictures: Record<string, ConsolePicture> = {
  'console-folder': (stage) => ofFolder(stage, { viewport: { width: 1280, height: 1000 } }),
  'console-token': ofToken,
  'console-subscription': (stage) => ofSubscription(stage, desktop),
  'console-subscription-phone': (stage) => ofSubscription(stage, phone),
}

/** After a stream of its latest year and a full export. */
async function ofFolder(stage: ConsoleStage, options: BrowserContextOptions): Promise<Buffer> {
  const page = await signedIn(stage, options, '/folders')
  await page.getByRole('row', { name: 'Garage Petit' }).getByRole('link').click()
  const years = page.getByRole('region', { name: 'Years' }).getByRole('rowheader')
  const year = await years.first().innerText()
  const { baseUrl, callers } = stage
  const headers = { ...callers[1]!, Accept: 'application/x-ndjson' }
  const ask = (path: string) => fetch(`${baseUrl}/api/v1/mad/${path}`, { headers })
  await (await ask(`movements?version=1.0.0&idExercice=${year}`)).arrayBuffer()
  await ask('all?version=1.0.0&format=JSON')
  // Until the export has ended, and the audit has both.
  while (
    (await page.getByText('GET /api/v1/mad/movements').count()) * (await page.getByText('Debit').count()) ===
    0
  ) {
    await page.waitForTimeout(500)
    await page.reload()
  }
  return page.screenshot()
}

async function ofToken(stage: ConsoleStage): Promise<Buffer> {
  const page = await signedIn(stage, { viewport: { width: 1280, height: 420 } }, '/folders')
  const folder = await page.getByRole('row', { name: 'Cabinet Moreau' }).getByRole('link').innerText()
  await page.goto(`${stage.consoleUrl}/partners/LEDGERLY`)
  await page.getByLabel('Id of the folder or firm').fill(folder)
  await page.getByRole('button', { name: 'Issue a token' }).click()
  await page.getByText('It is shown only once').waitFor()
  return page.screenshot()
}

async function ofSubscription(stage: ConsoleStage, options: BrowserContextOptions): Promise<Buffer> {
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(502).end('Bad gateway'))
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  try {
    const { port } = receiver.address() as AddressInfo
    const page = await signedIn(stage, options, `/subscriptions/${await subscribe(stage, port)}`)
    await waitForAttempt(page)
    return await page.screenshot()
  } finally {
    receiver.closeAllConnections()
    receiver.close()
  }
}

/** Subscribes CASHFLOW to a tenant in which three documents then appear. @returns its id */
async function subscribe({ ownerUrl }: ConsoleStage, port: number): Promise<string> {
  const client = new pg.Client({ connectionString: withStartupOptions(ownerUrl, ourSettings) })
  await client.connect()
  try {
    const { rows } = await client.query<{ schema_id: string }>('select schema_id from schemas limit 1')
    const schemaId = rows[0]!.schema_id
    const { id } = await insertSubscription(client, {
      ...{ schemaId, level: 'staff', firmId: null, folderIds: [], onEvents: ['document', 'cloudDocument'] },
      thirdPartyId: (await findThirdParty(client, 'CASHFLOW'))!.id,
      postUrl: `http://127.0.0.1:${port}/ledger-events`,
    })
    await client.query('begin')
    const documents = ['invoice-0412.pdf', 'invoice-0413.pdf', 'payslips.pdf'].map(
      (name, i) =>
        ({ name: 'document', operation: 'CREATE', data: { id: String(412 + i), kind: 'PF', name } }) as const,
    )
    await publish(client, schemaId, documents)
    await client.query('commit')
    return id
  } finally {
    await client.end()
  }
}

async function waitForAttempt(page: Page): Promise<void> {
  while ((await page.getByRole('cell', { name: '502' }).count()) === 0) {
    await page.waitForTimeout(300)
    await page.reload()
  }
}
