import { expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'
import { request, startTestService } from '../support/service.ts'
import { metricsOf, sumOf } from '../support/telemetry/scrape.ts'
import { until } from '../support/until.ts'

const database = forTests(createTestDatabase)
const service = forTests(() =>
  startTestService(database, { metrics: { host: '127.0.0.1', port: 0, allowedHosts: [] } }),
)
const owner = forTests(() => connect(database.ownerUrl))

const probed = async () => (await request(`${service.url}/readyz`)).body.epoch
const secondsSince = (moment: string) => (Date.now() - Date.parse(moment)) / 1_000

async function beginAnother(): Promise<number> {
  // Makes the name in the database that of a former server, and the epoch an hour old.
  await owner.query(
    `select setval('server_name', 1), setval('epoch_began', extract(epoch from now())::bigint - 3600)`,
  )
  const { rows } = await owner.query('select pass_gate()::int as epoch')
  return rows[0].epoch
}

test('/readyz and the metrics show the epoch and its age, and each new epoch is logged once', async () => {
  const first = await probed()
  expect(first).toMatchObject({ number: 1, began: expect.stringMatching(/^20.*Z$/) })
  expect(first.ageSeconds).toBeGreaterThanOrEqual(0)
  const epochs = [1]
  for (let i = 0; i < 2; i++) {
    epochs.push(await beginAnother())
    await until(async () => (await probed()).number === epochs.at(-1))
    const { began, ageSeconds } = await probed()
    expect(ageSeconds).toBeLessThan(3_000)
    expect(Math.abs(secondsSince(began))).toBeLessThan(3_000)
  }
  const samples = await metricsOf(service)
  expect(sumOf(samples, 'grandlivre_epoch', {})).toBe(epochs.at(-1))
  expect(sumOf(samples, 'grandlivre_epoch_age_seconds', {})).toBeLessThan(3_000)
  const logged = service.lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'epoch.began')
  expect(logged).toMatchObject([
    { level: 'warn', former: epochs[0], epoch: epochs[1] },
    { level: 'warn', former: epochs[1], epoch: epochs[2] },
  ])
})

test('an epoch that a failover began under an earlier version also has a start time', async () => {
  await owner.query(`select setval('epoch_began', 1)`)
  await owner.query('update service_state set epoch = 4711')
  await until(async () => (await probed()).number === 4711)
  expect((await probed()).ageSeconds).toBeLessThan(3_000)
})

test('the service role can read the epoch, but not set it', async () => {
  const client = await connect(database.serviceUrl)
  await client.query('set role grandlivre_service')
  for (const name of ['epoch', 'epoch_began']) {
    expect((await client.query(`select last_value from grandlivre.${name}`)).rows).toHaveLength(1)
    await expect(client.query(`select setval('grandlivre.${name}', 5)`)).rejects.toMatchObject({
      code: '42501',
    })
    await expect(client.query(`select nextval('grandlivre.${name}')`)).rejects.toMatchObject({
      code: '42501',
    })
  }
  await client.end()
})
