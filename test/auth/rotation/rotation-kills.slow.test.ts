/**
 * `rotate-key` back and forth between two keys, under load, killed three times, or as often as KILLS says
 * (`npm run long -- rotations`: 20, with a record in ROTATION_RECORD). Two processes export, link to files, deliver to a
 * thousand subscriptions, and write secrets meanwhile. Each delivery is checked at the end, when all secrets are known.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, type TestContext, test } from 'vitest'
import { decrypt, encrypt, makeSigningSecret } from '../../../src/auth/secrets.ts'
import { publish } from '../../../src/events/publish.ts'
import { insertSubscription } from '../../../src/webhooks/subscriptions.sql.ts'
import { cli, startCli } from '../../support/cli.ts'
import { movementsUrl } from '../../support/download.ts'
import { ended, trigger } from '../../support/full-export.ts'
import { fillLedger } from '../../support/ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../../support/ledgers/tenants.ts'
import { startProcess } from '../../support/process.ts'
import { answerWith, type Received, startReceiver } from '../../support/receiver.ts'
import { createTestDatabase } from '../../support/servers/database.ts'
import { testMasterKey } from '../../support/service.ts'
import { documentEvent } from '../../support/stages/webhooks.ts'

const kills = Number(process.env['KILLS'] ?? 3)
const record = process.env['ROTATION_RECORD']
const subscriptions = 1_000
const keys = [testMasterKey, randomBytes(32)] as const

const hex = (key: Buffer) => key.toString('hex')
const fingerprintOf = (key: Buffer) => createHmac('sha256', key).update('grandlivre master key').digest()

async function stageOf({ onTestFinished }: TestContext) {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-rotations-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const staff = await createTenants(database.ownerUrl)
  onTestFinished(() => staff.end())
  await staff.client.query('set search_path = grandlivre')
  const secret = await staff.thirdParty('ONE')
  const headers = credentials(await staff.token('ONE', 'api', folders.first), secret)
  const { rows } = await staff.client.query('select id from third_parties')
  await fillLedger(staff.client, { ...folders.first, label: 'one', thirdPartyId: rows[0].id })
  const receiver = await startReceiver(secret)
  onTestFinished(() => receiver.close())
  const received: { path: string; delivery: Received }[] = []
  const hear = (path: string) =>
    receiver.behave(path, (response, delivery, attempt) => {
      received.push({ path, delivery })
      answerWith(204)(response, delivery, attempt)
    })
  /** The signing secrets by the path of their subscription, and the partner's secrets. */
  const known = { signing: new Map<string, string[]>(), partner: [secret] }
  const scope = { schemaId: '100', level: 'staff', firmId: null, thirdPartyId: rows[0].id } as const
  for (let number = 0; number < subscriptions; number++) {
    const path = `/${number}`
    const postUrl = receiver.url + path
    const made = await insertSubscription(staff.client, {
      ...scope,
      onEvents: ['document'],
      folderIds: [],
      postUrl,
    })
    // Four secrets sign at once, so that the command has several steps in which it may be killed.
    const secrets = Array.from({ length: 4 }, makeSigningSecret)
    await staff.client.query(
      `insert into signing_secrets (subscription_id, secret_encrypted, created_at, retired_at)
       select $1, sealed, now() - place * interval '1 minute', case when place > 1 then now() + interval '1 day' end
       from unnest($2::bytea[]) with ordinality sealed(sealed, place)`,
      [made.id, secrets.map((each) => encrypt(each, testMasterKey))],
    )
    known.signing.set(path, secrets)
    hear(path)
  }
  const settings = {
    DATABASE_URL: database.ownerUrl,
    DATA_DIR: dataDir,
    WEBHOOK_ALLOW_INSECURE: 'true',
    WEBHOOK_SUBSCRIPTIONS_MAX: '100000',
    LOG_LEVEL: 'info',
  }
  const start = async (env: Record<string, string>) => {
    const service = await startProcess({ ...settings, ...env })
    onTestFinished(() => service.kill())
    return service
  }
  // The two processes have the keys in opposite order, which must not matter.
  const first = await start({ MASTER_KEY: hex(keys[0]), FORMER_MASTER_KEY: hex(keys[1]) })
  const second = await start({ MASTER_KEY: hex(keys[1]), FORMER_MASTER_KEY: hex(keys[0]) })
  return { database, staff, headers, receiver, received, hear, known, start, services: [first, second] }
}
type Stage = Awaited<ReturnType<typeof stageOf>>

/** How often each status was answered. */
const answered = new Map<number, number>()

async function ask(url: string, init?: RequestInit): Promise<{ status: number; text: string }> {
  const response = await fetch(url, init)
  const text = await response.text()
  answered.set(response.status, (answered.get(response.status) ?? 0) + 1)
  return { status: response.status, text }
}

const forBoth = (to: number, ownerUrl: string) => ({
  ownerUrl,
  env: { MASTER_KEY: hex(keys[to]!), FORMER_MASTER_KEY: hex(keys[1 - to]!) },
})

/** Everything that goes on beside the command. @returns what ends it, and counts */
function load({ database, staff, headers, receiver, hear, known, services }: Stage) {
  let isOver = false
  let turn = 0
  const anyUrl = () => services[turn++ % services.length]!.url
  const counts = { exports: 0, links: 0, subscriptionsMade: 0, secretsRotated: 0, partnerSecrets: 0 }
  const again = async (pauseMs: number, run: () => Promise<void>) => {
    while (!isOver) {
      await run()
      await delay(pauseMs)
    }
  }
  const links: string[] = []
  const made: { id: string; path: string }[] = []
  const json = { ...headers, 'content-type': 'application/json' }
  const partners = [0, 1, 2].map((number) => `MORE${number}`)
  const loops = [
    again(50, async () => {
      const answer = await ask(movementsUrl(anyUrl(), { idExercice: '12' }), { headers })
      expect(answer.status).toBe(200)
      counts.exports++
    }),
    again(300, async () => {
      // Links are valid for an hour, so the links of all keys so far are.
      const url = anyUrl()
      const { body } = await trigger(url, headers)
      const link = new URL((await ended(url, headers, body.id)).url!)
      links.push(link.pathname + link.search)
      for (const each of [links[0]!, links.at(-1)!]) expect((await ask(anyUrl() + each)).status).toBe(200)
      counts.links++
    }),
    again(400, async () => {
      await staff.client.query('begin')
      await publish(staff.client, '100', [documentEvent(`event ${turn}`, '111')])
      await staff.client.query('commit')
    }),
    again(100, async () => {
      const path = `/made/${made.length}`
      hear(path)
      const body = JSON.stringify({ postUrl: receiver.url + path, onEvents: ['document'] })
      const answer = await ask(`${anyUrl()}/api/v1/webhook`, { method: 'POST', headers: json, body })
      expect(answer.status).toBe(201)
      const { id, signingSecret } = JSON.parse(answer.text)
      known.signing.set(path, [signingSecret])
      made.push({ id, path })
      counts.subscriptionsMade++
    }),
    again(50, async () => {
      const one = made[counts.secretsRotated % Math.max(made.length, 1)]
      if (!one || known.signing.get(one.path)!.length === 4) return
      const url = `${anyUrl()}/api/v1/webhook/${one.id}/rotate-secret`
      const answer = await ask(url, { method: 'POST', headers })
      expect(answer.status).toBe(200)
      known.signing.get(one.path)!.push(JSON.parse(answer.text).signingSecret)
      counts.secretsRotated++
    }),
    again(500, async () => {
      const code = partners[counts.partnerSecrets % partners.length]!
      const at = forBoth(counts.partnerSecrets % 2, database.ownerUrl)
      const words = counts.partnerSecrets < 3 ? ['create', '--name', code] : ['rotate-secret']
      const done = await cli(at, 'partner', ...words, '--code', code)
      expect([done.code, done.error]).toEqual([0, expect.anything()])
      counts.partnerSecrets++
    }),
    again(1_000, async () => {
      const done = await cli(
        forBoth(0, database.ownerUrl),
        ...['partner', 'rotate-secret', '--code', 'ONE', '--keep', '24'],
      )
      expect([done.code, done.error]).toEqual([0, expect.anything()])
      known.partner.push(/^Secret: (.*)$/m.exec(done.out)![1]!)
    }),
  ]
  return {
    counts,
    end: async () => {
      isOver = true
      await Promise.all(loops)
    },
    /** Rejects with the first loop that fails. */
    failed: Promise.all(loops),
  }
}

/** How far a killed run had come. */
type Place = 'before the first step' | 'between the first step and the last' | 'after the last step'

async function placeOf({ staff }: Stage, to: Buffer): Promise<Place> {
  const { rows } = await staff.client.query(
    'select fingerprint, exists (select from grandlivre.next_key) as goes from grandlivre.adopted_key',
  )
  if (rows[0].goes) return 'between the first step and the last'
  return rows[0].fingerprint.equals(fingerprintOf(to)) ? 'after the last step' : 'before the first step'
}

/** Starts the command, and kills it `afterMs` milliseconds after its first step. */
async function kill(stage: Stage, to: number, afterMs: number): Promise<Place> {
  const { child, soFar, ended } = startCli(forBoth(to, stage.database.ownerUrl), 'rotate-key')
  while (!soFar.error.includes('From key') && child.exitCode === null) await delay(2)
  await delay(afterMs)
  child.kill('SIGKILL')
  await ended
  return placeOf(stage, keys[to]!)
}

/** Deliveries without a signature, or with a signature that no secret made. */
function wrongOf({ received, known }: Stage) {
  const isOf = (secrets: readonly string[], text: string, given: string, encoding: 'hex' | 'base64') =>
    secrets.some((secret) => {
      const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : secret
      return createHmac('sha256', key).update(text).digest(encoding) === given
    })
  return received.filter(({ path, delivery: { body, headers } }) => {
    const text = body.toString('utf8')
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`
    const signatures = String(headers['webhook-signature']).split(' ')
    const secrets = known.signing.get(path)!
    return !(
      isOf(known.partner, text + headers.date, String(headers['signature']), 'hex') &&
      signatures.length >= Math.min(secrets.length, 1) &&
      signatures.every((each) => isOf(secrets, signed, each.slice('v1,'.length), 'base64'))
    )
  })
}

test('killing rotate-key under load loses no secret, and every delivery has a valid signature', {
  timeout: 120_000 + 20_000 * kills,
}, async (context) => {
  const stage = await stageOf(context)
  const { database, staff, received, services } = stage
  const began = Date.now()
  const { counts, end, failed } = load(stage)
  const places = new Map<Place, number>()
  let rotations = 0
  const rotate = async (to: number) => {
    const done = await startCli(forBoth(to, database.ownerUrl), 'rotate-key').ended
    expect([done.code, done.out]).toEqual([0, expect.stringContaining('of this database')])
    rotations++
  }
  const work = async () => {
    let to = 1
    // Measures how long the command works after its first step.
    const { soFar, ended } = startCli(forBoth(to, database.ownerUrl), 'rotate-key')
    while (!soFar.error.includes('From key')) await delay(2)
    const started = performance.now()
    expect((await ended).code).toBe(0)
    const workMs = performance.now() - started
    for (let number = 0; number < kills; number++) {
      to = 1 - to
      const place = await kill(stage, to, number === 0 ? 0 : Math.random() * workMs)
      places.set(place, (places.get(place) ?? 0) + 1)
      await rotate(to)
    }
    return to
  }
  const to = (await Promise.race([work(), failed])) as number
  await end()
  // The last event reaches every subscription.
  await staff.client.query('begin')
  await publish(staff.client, '100', [documentEvent('the last', '111')])
  await staff.client.query('commit')
  const paths = [...stage.known.signing.keys()]
  const reached = () =>
    new Set(
      received
        .filter(({ delivery }) => delivery.events.some(({ data }) => data.name === 'the last'))
        .map(({ path }) => path),
    ).size
  await expect.poll(reached, { timeout: 60_000 }).toBe(paths.length)
  for (const { url } of services) expect((await fetch(`${url}/readyz`)).status).toBe(200)
  for (const { kill } of services) await kill()

  // One key is enough for every secret, a process, and the audit.
  const { rows } = await staff.client.query(
    `select secret_encrypted as sealed from third_party_secrets union all select secret_encrypted from signing_secrets`,
  )
  for (const { sealed } of rows) expect(decrypt(sealed, [keys[to]!])).toMatch(/^(whsec_|glv_secret_)/)
  await stage.start({ MASTER_KEY: hex(keys[to]!) })
  const verified = await cli(
    { ownerUrl: database.ownerUrl, env: { MASTER_KEY: hex(keys[to]!) } },
    ...['audit', 'verify'],
  )
  expect(verified.out).toContain('The audit is whole')
  const wrong = wrongOf(stage)
  const result = {
    at: new Date(began).toISOString(),
    seconds: Math.round((Date.now() - began) / 1000),
    rotations: rotations + 1,
    kills: Object.fromEntries(places),
    subscriptions: paths.length,
    secrets: rows.length,
    deliveries: received.length,
    'signatures that fail': wrong.length,
    answers: Object.fromEntries(answered),
    ...counts,
  }
  if (record) await writeFile(record, `${JSON.stringify(result, null, 2)}\n`)
  expect(wrong).toEqual([])
  expect([...answered.keys()].filter((status) => status >= 500)).toEqual([])
  expect(places.get('between the first step and the last') ?? 0).toBeGreaterThan(0)
})
