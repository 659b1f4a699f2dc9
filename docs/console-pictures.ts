/** Pictures of the console: a firm's folders, partners that read them, and staff that watch. */
import { once } from 'node:events'
import { type ClientRequest, get } from 'node:http'
import pg from 'pg'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { seed } from '../packages/sample/src/seed.ts'
import { createConsoleKey } from '../src/auth/console-keys.sql.ts'
import { insertThirdParty, makeSecret } from '../src/auth/third-parties.sql.ts'
import { issueToken } from '../src/auth/tokens.sql.ts'
import { ourSettings, withStartupOptions } from '../src/db/pool.ts'

export interface ConsoleParts {
  browser: Browser
  ownerUrl: string
  /** Encrypts the secrets of partners. */
  masterKey: Buffer
  /** Of the API. */
  baseUrl: string
  /** `http://127.0.0.1:9090/console` */
  consoleUrl: string
}

/** The fiscal year of made-up ledgers. */
const year = `startDate=${new Date().getFullYear()}-01-01&endDate=${new Date().getFullYear()}-12-31`

/** Headers of a partner that may read one folder. */
type Caller = Record<string, string>

export const desktop: BrowserContextOptions = { viewport: { width: 1280, height: 800 } }
export const phone: BrowserContextOptions = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 }
const dark: BrowserContextOptions = { colorScheme: 'dark' }

export type ConsolePicture = (stage: ConsoleStage) => Promise<Buffer>

/** Each picture has full exports of its own: the same trigger is answered by the same export for an hour. */
const exporting = (options: BrowserContextOptions, compression: string): ConsolePicture => {
  return (stage) => whileExporting(stage, options, compression)
}

const whole = (options: BrowserContextOptions, path: string): ConsolePicture => {
  return async (stage) => (await signedIn(stage, options, path)).screenshot({ fullPage: true })
}

export const consolePictures: Record<string, ConsolePicture> = {
  console: exporting(desktop, ''),
  'console-dark': exporting({ ...desktop, ...dark }, '&compression=gzip'),
  'console-phone': exporting(phone, '&compression=zstd'),
  'console-process': whole({ ...desktop, ...dark }, '/process'),
}

export interface ConsoleStage extends ConsoleParts {
  key: string
  callers: Caller[]
}

/** Folders of three sizes, each with a partner of its own, and the key of alice. */
export async function setConsoleStage(parts: ConsoleParts): Promise<ConsoleStage> {
  const client = new pg.Client({ connectionString: withStartupOptions(parts.ownerUrl, ourSettings) })
  await client.connect()
  try {
    const key = (await createConsoleKey(client, 'alice'))!
    const callers: Caller[] = []
    const folders = [
      ['Boulangerie Martin', 'LEDGERLY', 400_000],
      ['Garage Petit', 'CASHFLOW', 60_000],
      ['Cabinet Moreau', 'AUDITEX', 120_000],
    ] as const
    for (const [reference, code, movements] of folders) {
      const opened = await seed(parts.ownerUrl, { movements, reference, replace: false })
      const { plain, secret } = makeSecret(parts.masterKey)
      await insertThirdParty(client, { code, name: code, kind: 'partner', secret })
      const issued = await issueToken(client, { thirdPartyCode: code, level: 'api', opened })
      callers.push({ Authorization: `Bearer ${issued!.token}`, 'X-Third-Party-Secret': plain })
    }
    return { ...parts, key, callers }
  } finally {
    await client.end()
  }
}

export async function signedIn(
  { browser, consoleUrl, key }: ConsoleStage,
  options: BrowserContextOptions,
  path = '',
): Promise<Page> {
  const page = await (await browser.newContext(options)).newPage()
  await page.goto(consoleUrl + path)
  await page.getByLabel('Key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation').waitFor()
  return page
}

/** The start page in the middle of some streams and full exports. */
async function whileExporting(
  stage: ConsoleStage,
  options: BrowserContextOptions,
  compression: string,
): Promise<Buffer> {
  const page = await signedIn(stage, options)
  const { baseUrl, callers } = stage
  const streams = await Promise.all(
    callers.map((headers, i) =>
      slowStream(`${baseUrl}/api/v1/mad/${i === 1 ? 'entries' : 'movements'}?version=1.0.0&${year}`, headers),
    ),
  )
  for (const format of ['JSON', 'TRA'])
    for (const headers of callers)
      await fetch(`${baseUrl}/api/v1/mad/all?version=1.0.0&format=${format}${compression}`, { headers })
  const bar = page.locator('progress[value]').first()
  while (Number(await bar.getAttribute('value')) < 20) await page.waitForTimeout(50)
  const picture = await page.screenshot()
  for (const stream of streams) stream.destroy()
  return picture
}

/** Begins a stream, and reads as little of it as a slow partner. */
async function slowStream(url: string, headers: Caller): Promise<ClientRequest> {
  const request = get(url, { headers })
  const [response] = await once(request, 'response')
  response.on('error', () => {})
  response.once('readable', () => response.read(200_000))
  return request
}
