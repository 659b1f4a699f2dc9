import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from '../src/config.ts'
import { storeSettings } from '../src/store/store.ts'

const masterKey = 'ab'.repeat(32)
const s3 = {
  MASTER_KEY: masterKey,
  S3_ENDPOINT: 'https://s3.example.com/',
  S3_BUCKET: 'exports',
  S3_ACCESS_KEY: 'key',
  S3_SECRET_KEY: 'secret',
}

function mistakesOf(env: NodeJS.ProcessEnv): string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n  - ').slice(1)
  }
}

test('TIME_ZONE must be a name, because PostgreSQL inverts the sign of an offset', () => {
  for (const zone of ['Europe/Paris', 'UTC', 'Etc/GMT-2', 'EST5EDT', 'America/Port-au-Prince'])
    expect(readConfig({ TIME_ZONE: zone }).timeZone).toBe(zone)
  for (const zone of ['+02:00', '-0530', '+02', 'Europe/Nowhere'])
    expect(mistakesOf({ TIME_ZONE: zone })).toEqual([expect.stringContaining('TIME_ZONE')])
})

test('a variable with a misspelt name of a setting is reported, whatever else the environment holds', () => {
  const env = {
    RATE_LIMIT_REQUEST: '5',
    DATABASE_ULR: 'postgres://a@b/c',
    log_level: 'debug',
    STOP_SECOND: '5',
    // Variables of other programs.
    HOSTS: 'a',
    PATH: '/bin',
    POSTGRES_PASSWORD: 'b',
    AWS_REGION: 'c',
    GRANDLIVRE_PORT: 'tcp://10.0.0.1:80',
    // A setting with its right name.
    LOG_LEVEL: 'info',
  }
  expect(readConfig(env).mistyped).toEqual([
    { name: 'RATE_LIMIT_REQUEST', meant: 'RATE_LIMIT_REQUESTS' },
    { name: 'DATABASE_ULR', meant: 'DATABASE_URL' },
    { name: 'log_level', meant: 'LOG_LEVEL' },
    { name: 'STOP_SECOND', meant: 'STOP_SECONDS' },
  ])
})

test('a process on the embedded database does not wait to drain', () => {
  const own = { DATABASE_URL: 'postgres://a@b/c', MASTER_KEY: masterKey }
  expect([readConfig({}).drainSeconds, readConfig(own).drainSeconds]).toEqual([0, 10])
  expect(readConfig({ ...own, DRAIN_SECONDS: '0', STOP_SECONDS: '3600' })).toMatchObject({
    drainSeconds: 0,
    stopSeconds: 3600,
  })
})

test('a setting gives the share of recorded traces that begin here; other traces follow their caller', () => {
  const share = (sampler: string, argument?: string) =>
    readConfig({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument }).tracesShare
  expect(readConfig({}).tracesShare).toBe(1)
  expect(share('parentbased_always_off')).toBe(0)
  expect(share('parentbased_traceidratio', '0.25')).toBe(0.25)
  expect(mistakesOf({ OTEL_TRACES_SAMPLER: 'always_on' })).toEqual([
    expect.stringContaining('OTEL_TRACES_SAMPLER must be one of parentbased_always_on'),
  ])
  for (const argument of ['2', '-1', 'half'])
    expect(
      mistakesOf({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: argument }),
    ).toEqual([`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not "${argument}"`])
})

test('requests for metrics may use an IP address, or a host name that the settings allow', () => {
  const allowed = (names?: string) =>
    readConfig({ METRICS_PORT: '9464', METRICS_ALLOWED_HOSTS: names }).metrics!.allowedHosts
  expect([undefined, '', ' grandlivre , Metrics.internal,'].map(allowed)).toEqual([
    [],
    [],
    ['grandlivre', 'Metrics.internal'],
  ])
  for (const name of ['grandlivre:9464', 'http://grandlivre', '*', 'a b'])
    expect(mistakesOf({ METRICS_PORT: '9464', METRICS_ALLOWED_HOSTS: name })).toEqual([
      `METRICS_ALLOWED_HOSTS must be names without ports, separated by commas, not "${name}"`,
    ])
})

test('webhooks may not reach private networks unless the operator allows it', () => {
  const allowed = (value?: string) => readConfig({ WEBHOOK_ALLOW_INSECURE: value }).webhookAllowInsecure
  expect([undefined, '', 'false', '0'].map(allowed)).toEqual([false, false, false, false])
  expect(['true', '1'].map(allowed)).toEqual([true, true])
})

test('a third party may have a hundred subscriptions in a schema unless the operator sets another limit', () => {
  expect(readConfig({}).webhookSubscriptionsMax).toBe(100)
  expect(readConfig({ WEBHOOK_SUBSCRIPTIONS_MAX: '1000' }).webhookSubscriptionsMax).toBe(1000)
})

test.each([
  ['DRAIN_SECONDS', '601', 'a whole number from 0 to 600'],
  ['WEBHOOK_SUBSCRIPTIONS_MAX', '0', 'a whole number from 1 to 100000'],
  ['WEBHOOK_ALLOW_INSECURE', 'yes', 'true or false'],
  ...['0', '-1', 'x', '1.5', '3651'].map((days) => [
    'FILE_RETENTION_DAYS',
    days,
    'a whole number from 1 to 3650',
  ]),
  ['CHANGES_RETENTION_DAYS', '3651', 'a whole number from 1 to 3650'],
])('%s of %s is refused: it must be %s', (name, value, form) => {
  expect(mistakesOf({ [name!]: value })).toEqual([`${name} must be ${form}, not "${value}"`])
})

describe('the store of files', () => {
  test('is a folder of the data directory by default', () => {
    const config = readConfig({ DATA_DIR: '/somewhere' })
    expect(config.store).toEqual({ kind: 'filesystem', folder: '/somewhere/files' })
    expect([config.publicUrl, config.fileRetentionDays]).toEqual([undefined, 7])
    expect(readConfig({}).store).toEqual({ kind: 'filesystem', folder: join(resolve('.data'), 'files') })
  })

  test('is S3 if its address is set; downloads come from there unless another address is set', () => {
    const endpoint = 'https://s3.example.com'
    const keys = { bucket: 'exports', accessKey: 'key', secretKey: 'secret' }
    const store = { kind: 's3', endpoint, publicEndpoint: endpoint, region: 'us-east-1', ...keys }
    expect(readConfig(s3).store).toEqual(store)
    const others = { S3_PUBLIC_ENDPOINT: 'http://files:9000', S3_REGION: 'eu-west-3' }
    const other = { ...store, publicEndpoint: 'http://files:9000', region: 'eu-west-3' }
    expect(readConfig({ ...s3, ...others }).store).toEqual(other)
  })

  test('reports all missing settings at once', () => {
    const named = (env: NodeJS.ProcessEnv) => mistakesOf(env).map((mistake) => mistake.split(' ')[0])
    const missing = ['MASTER_KEY', 'S3_BUCKET', 'S3_ACCESS_KEY', 'S3_SECRET_KEY']
    expect(named({ S3_ENDPOINT: 'http://s3:9000' })).toEqual(missing)
    expect(named({ S3_ENDPOINT: 'http://s3:9000', DATABASE_URL: 'postgres://db/x' })).toEqual(missing)
    expect(named({ DATABASE_URL: 'postgres://db/x', HOST: '0.0.0.0' })).toEqual(['MASTER_KEY', 'PUBLIC_URL'])
    expect(named({ DATABASE_URL: 'postgres://db/x' })).toEqual(['MASTER_KEY'])
  })

  test('is refused if only some settings of S3 are set', () => {
    expect(mistakesOf({ S3_BUCKET: 'exports', S3_SECRET_KEY: 'x' })).toEqual([
      'S3_ENDPOINT is required with S3_BUCKET, S3_SECRET_KEY (such as https://s3.example.com)',
    ])
  })

  test('refuses malformed addresses and buckets', () => {
    const malformed = ['s3.example.com', 'ftp://s3', 'https://s3/path', 'https://s3/?a=b', 'https://u:p@s3']
    for (const address of malformed)
      for (const name of ['S3_ENDPOINT', 'S3_PUBLIC_ENDPOINT', 'PUBLIC_URL'])
        expect(mistakesOf({ ...s3, [name]: address })).toEqual([expect.stringContaining(`${name} must be`)])
    for (const bucket of ['Exports', 'ab', '-exports', 'a/b'])
      expect(mistakesOf({ ...s3, S3_BUCKET: bucket })).toEqual([expect.stringContaining('S3_BUCKET must be')])
  })
})

describe('the key that signs links', () => {
  const settingsOf = (key: string, env: NodeJS.ProcessEnv = {}) =>
    storeSettings(readConfig(env), [Buffer.from(key, 'hex')], 'http://127.0.0.1:8080')

  test('is derived from the master key alone, without being equal to it', () => {
    const settings = settingsOf(masterKey) as { signingKeys: readonly string[] }
    expect(settings.signingKeys).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
    expect(settings.signingKeys).not.toContain(masterKey)
    expect(settingsOf(masterKey)).toEqual(settings)
    expect((settingsOf('cd'.repeat(32)) as { signingKeys: readonly string[] }).signingKeys).not.toEqual(
      settings.signingKeys,
    )
  })

  test('is accompanied by the public address, by default the address where the service listens', () => {
    expect(settingsOf(masterKey)).toMatchObject({ publicUrl: 'http://127.0.0.1:8080' })
    const env = { PUBLIC_URL: 'https://ledger.example.com/' }
    expect(settingsOf(masterKey, env)).toMatchObject({ publicUrl: 'https://ledger.example.com' })
  })
})
