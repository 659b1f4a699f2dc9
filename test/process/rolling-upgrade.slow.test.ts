import { afterAll, expect, test } from 'vitest'
import { makeToken, sha256 } from '../../src/auth/secrets.ts'
import { createOwnerPool, inTransaction } from '../../src/db/pool.ts'
import { publish } from '../../src/events/publish.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { withoutPooler } from '../support/pooled/pooled-run.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { request } from '../support/service.ts'
import { documentEvent, namesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'
import { startBalancer } from '../support/upgrade/balancer.ts'
import { checkOutFormerCode, formerCommits, isFormerCodeKnown } from '../support/upgrade/former-code.ts'

// The former version does not work through a pooler.
withoutPooler()

const database = forTests(() => createTestDatabase({ template: 'template1' }))
const former = forTests(() => checkOutFormerCode(formerCommits.rolling))
const files = forTests(() => openFolder('rolling'))
const balancer = forTests(startBalancer)
let receiver: Receiver
const processes: ServiceProcess[] = []

afterAll(async () => {
  for (const each of processes.splice(0)) await each.kill()
  await receiver?.close()
})

async function start(root?: string): Promise<ServiceProcess> {
  const settings = { DATABASE_URL: database.ownerUrl, DATA_DIR: files.path, WEBHOOK_ALLOW_INSECURE: 'true' }
  const started = await startProcess(settings, {}, root)
  processes.push(started)
  await balancer.add(started.url)
  return started
}

/** Stops a process as operators do: takes it out of the balancer, then sends SIGTERM. */
async function stop(one: ServiceProcess): Promise<void> {
  await balancer.takeOut(one.url)
  one.child.kill('SIGTERM')
  expect(await one.ended).toEqual([0, null])
}

/** Repeats an act until the signal is aborted. @returns how often, and the failures */
async function repeat(act: () => Promise<string | undefined>, over: AbortSignal) {
  const failures: string[] = []
  let count = 0
  while (!over.aborted) {
    const failure = await act().catch(String)
    if (failure !== undefined) failures.push(failure)
    count += 1
  }
  return { count, failures }
}

test.skipIf(!isFormerCodeKnown)(
  'an upgrade of one process after the other fails no request and loses no event',
  async () => {
    const old = [await start(former.path), await start(former.path)] as const
    const staff = await createTenants(database.ownerUrl)
    // The set-up below runs code of today, which calls draw(). The migration replaces this function.
    await staff.client.query(
      'create function grandlivre.draw(of regclass) returns bigint language sql return nextval(of)',
    )
    const secret = await staff.thirdParty('PARTNER')
    receiver = await startReceiver(secret)
    const thirdPartyId = await staff.thirdPartyId('PARTNER')
    await fillLedger(staff.client, { ...folders.first, label: 'first', thirdPartyId })
    // The code of today would write columns that the former schema lacks.
    const token = makeToken('api')
    await staff.client.query(
      `insert into grandlivre.tokens (schema_id, id, third_party_id, level, firm_id, folder_id, token_hash, hint)
       values (100, 990000, $1, 'api', 110, 111, $2, 'hint')`,
      [thirdPartyId, sha256(token)],
    )
    const signed = credentials(token, secret)
    await staff.end()
    const owner = createOwnerPool(database.ownerUrl, { max: 2, applicationName: 'grandlivre test' })
    const subscribed = await fetch(`${balancer.url}/api/v1/webhook`, {
      method: 'POST',
      headers: { ...signed, 'Content-Type': 'application/json' },
      body: JSON.stringify({ postUrl: `${receiver.url}/events`, onEvents: ['document'] }),
    })
    expect(subscribed.status).toBe(201)

    const over = new AbortController()
    const bodies = new Set<string>()
    const read = async (path: string, keep = false) => {
      const { status, body } = await request(`${balancer.url}/api/v1${path}`, signed)
      if (keep) bodies.add(JSON.stringify(body))
      return status === 200 ? undefined : `${path}: ${status} ${JSON.stringify(body).slice(0, 300)}`
    }
    const fullExport = async () => {
      await inTransaction(owner, (client) => client.query('update exports set latest = false where latest'))
      const { body } = await trigger(balancer.url, signed)
      const { status, reason } = await ended(balancer.url, signed, body.id)
      return status === 'DONE' ? undefined : `full export: ${status} ${reason}`
    }
    const published: string[] = []
    const publishOne = async () => {
      const name = `event ${published.length}`
      await inTransaction(owner, (client) => publish(client, '100', [documentEvent(name, '111')]))
      published.push(name)
      await until(() => receiver.accepted('/events').length >= published.length - 20)
      return undefined
    }
    const load = Promise.all([
      repeat(() => read('/mad/movements?version=1.0.0&idExercice=12', true), over.signal),
      repeat(() => read('/key/info'), over.signal),
      repeat(fullExport, over.signal),
      repeat(publishOne, over.signal),
    ])

    const fresh = await start()
    // A former process restarts on the schema of this version.
    await stop(old[0])
    const restarted = await start(former.path)
    const second = await start()
    await stop(restarted)
    await stop(old[1])
    const before = published.length
    await until(() => published.length >= before + 20)
    over.abort()
    const done = await load
    await until(() => receiver.accepted('/events').length >= published.length)
    await owner.end()

    expect(done.flatMap(({ failures }) => failures).slice(0, 5)).toEqual([])
    expect(balancer.failures).toEqual([])
    expect(done.map(({ count }) => count > 2)).toEqual([true, true, true, true])
    expect(bodies.size).toBe(1)
    expect(new Set(namesOf(receiver.accepted('/events')))).toEqual(new Set(published))
    expect(receiver.forged).toEqual([])
    for (const { url } of [...old, restarted, fresh, second])
      expect(balancer.answered.get(url), url).toBeGreaterThan(0)
  },
)
