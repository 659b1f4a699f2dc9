/** `ops/systemd/` and `ops/kubernetes/`, and the page that says how to use them. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config.ts'
import { defaultTiming } from '../../src/timing.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { environment } from '../support/process.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { request, startTestService, testMasterKey } from '../support/service.ts'

const root = resolve(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/operators/deploy.md'), 'utf8')
const unitFiles = readdirSync(join(root, 'ops/systemd')).filter((name) => /\.(service|timer)$/.test(name))
const unit = (name: string) => readFileSync(join(root, 'ops/systemd', name), 'utf8')

/** Runs a program. Returns undefined if the program is not there. */
function run(
  program: string,
  words: string[],
  options = {},
): { code: number | null; out: string } | undefined {
  const { error, status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', ...options })
  return error === undefined ? { code: status, out: stdout + stderr } : undefined
}

const hasSystemd = run('systemd-analyze', ['--version']) !== undefined
const PYTHONPATH = join(root, '.cache/kubernetes')
const hasSchemas =
  run('python3', ['-c', 'import kubernetes_validate'], { env: { ...process.env, PYTHONPATH } })?.code === 0
if (!hasSystemd) console.warn('No check of ops/systemd: systemd-analyze is not installed, see .ci/run')
if (!hasSchemas)
  console.warn('No check of ops/kubernetes by its schemas: kubernetes-validate is not installed, see .ci/run')

/** Seconds that a process may take to stop: DRAIN_SECONDS, STOP_SECONDS, and the time to close what is left. */
function secondsToLeave(settings: Record<string, string>): number {
  const { drainSeconds, stopSeconds, mistyped } = readConfig(settings)
  expect(mistyped).toEqual([])
  return drainSeconds + stopSeconds + defaultTiming.closeMs / 1000
}

const secrets = {
  DATABASE_URL: 'postgres://owner@localhost/ledger',
  MASTER_KEY: 'ab'.repeat(32),
  S3_ACCESS_KEY: 'access',
  S3_SECRET_KEY: 'secret',
}

test.skipIf(!hasSystemd)('systemd accepts every unit, and rates the services as well confined', async () => {
  await using files = await openFolder('units')
  const folder = files.path
  // systemd-analyze checks that the programs of the units exist.
  for (const name of unitFiles)
    await writeFile(join(folder, name), unit(name).replaceAll('/opt/grandlivre', root))
  const paths = unitFiles.map((name) => join(folder, name))
  expect(run('systemd-analyze', ['verify', '--man=no', ...paths])).toEqual({ code: 0, out: '' })
  for (const path of paths.filter((each) => each.endsWith('.service')))
    expect(
      run('systemd-analyze', ['security', '--offline=yes', '--threshold=25', '--no-pager', path])!.code,
      path,
    ).toBe(0)
})

test('a unit gives its process enough time to stop, and starts it as npm does', () => {
  const { DATABASE_URL, MASTER_KEY } = secrets
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit('grandlivre@.service'))!
  expect(Number(seconds)).toBeGreaterThan(secondsToLeave({ DATABASE_URL, MASTER_KEY }))
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, words] = /^ExecStart=\/opt\/grandlivre\/node_modules\/\.bin\/(.*)$/m.exec(
    unit('grandlivre@.service'),
  )!
  expect(scripts.start).toContain(words)
})

test('note-anchor.sh appends the current anchor to its file, except if the audit is broken', async (context) => {
  const database = await createTestDatabase()
  context.onTestFinished(() => database.drop())
  await using files = await openFolder('anchors')
  const folder = files.path
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const signed = credentials(await staff.token('ONE', 'api', folders.first), secret)
  const service = await startTestService(database)
  const ask = () => request(`${service.url}/api/v1/mad/journals?version=1.0.0`, signed)
  const env = { ...environment, DATABASE_URL: database.ownerUrl, MASTER_KEY: testMasterKey.toString('hex') }
  const anchors = join(folder, 'anchors')
  const note = () => run('sh', [join(root, 'ops/systemd/note-anchor.sh'), anchors], { cwd: root, env })!
  const noted = async () => (await readFile(anchors, 'utf8')).split('\n').slice(0, -1)
  expect((await ask()).status).toBe(200)
  await service.stop()
  expect(note()).toMatchObject({ code: 0, out: expect.stringContaining('Anchor: ') })
  expect(note().code).toBe(0)
  const [first, second, ...others] = await noted()
  expect([second, others]).toEqual([first, []])
  expect(first).toMatch(/^\d+:[0-9a-f]{64}$/)
  // Changes all hashes, as the owner of the database could.
  await staff.client.query(
    `set session_replication_role = replica; update grandlivre.audit_rows set hash = sha256('other')`,
  )
  expect(note()).toEqual({ code: 1, out: expect.stringContaining('Row 1 was changed') })
  expect(await noted()).toHaveLength(2)
  await staff.end()
})

test.skipIf(!hasSchemas)('every manifest is valid by the schemas of Kubernetes', () => {
  const words = [
    '-m',
    'kubernetes_validate',
    '--strict',
    '--quiet',
    'grandlivre.yaml',
    'migration.yaml',
    'settings.yaml',
  ]
  const cwd = join(root, 'ops/kubernetes')
  expect(readdirSync(cwd).sort()).toEqual(words.slice(-3))
  expect(run('python3', words, { cwd, env: { ...process.env, PYTHONPATH } })).toEqual({ code: 0, out: '' })
})

test('the manifests agree with each other and with the service', () => {
  const [all, [migration], [settings]] = ['grandlivre.yaml', 'migration.yaml', 'settings.yaml'].map(
    (name) =>
      parseAllDocuments(readFileSync(join(root, 'ops/kubernetes', name), 'utf8')).map((each) => each.toJS()),
    // biome-ignore lint/suspicious/noExplicitAny: a test reads into manifests of any shape
  ) as [any[], [any], [any]]
  const kind = (name: string) => all.find((each) => each.kind === name)
  const { template, selector, replicas } = kind('Deployment').spec
  const [container] = template.spec.containers
  const grace = template.spec.terminationGracePeriodSeconds
  expect(grace).toBeGreaterThan(secondsToLeave({ ...settings.data, ...secrets }))
  expect(replicas).toBeGreaterThan(1)
  expect(kind('Service').spec.selector).toEqual(template.metadata.labels)
  for (const labels of [
    selector,
    kind('PodDisruptionBudget').spec.selector,
    kind('NetworkPolicy').spec.podSelector,
  ])
    expect(labels.matchLabels).toEqual(template.metadata.labels)
  expect([container.livenessProbe.httpGet.path, container.readinessProbe.httpGet.path]).toEqual([
    '/healthz',
    '/readyz',
  ])
  // Readiness must be lost in less than half of the drain.
  const { periodSeconds, failureThreshold } = container.readinessProbe
  expect(periodSeconds * failureThreshold).toBeLessThan(Number(settings.data.DRAIN_SECONDS) / 2)
  const [migrating] = migration.spec.template.spec.containers
  expect(migrating.image).toBe(container.image)
  // The migration needs the settings of the service, and also the address of the owner.
  expect(container.envFrom).toEqual([
    { configMapRef: { name: settings.metadata.name } },
    { secretRef: { name: 'grandlivre' } },
  ])
  expect(migrating.envFrom).toEqual([...container.envFrom, { secretRef: { name: 'grandlivre-owner' } }])
  const [, made] = /generic grandlivre ([\s\S]*?)\nkubectl/.exec(page)!
  expect(made!.match(/(?<=from-literal=)\w+/g)).toEqual(Object.keys(secrets))
})

test('the page names existing files, and its commands are valid in the shell', async (context) => {
  for (const [, path] of page.matchAll(/(ops\/[\w@./-]+\w)/g))
    expect(
      existsSync(join(root, path!)) || unitFiles.some((name) => join('ops/systemd', name).startsWith(path!)),
      path,
    ).toBe(true)
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, commands]) => commands!)
  for (const commands of blocks) expect(run('sh', ['-nc', commands]), commands).toEqual({ code: 0, out: '' })
  // HAProxy accepts its file with the certificate that the page makes for a trial.
  await using files = await openFolder('deploy')
  const folder = files.path
  await symlink(join(root, 'ops'), join(folder, 'ops'))
  const made = run('sh', ['-ec', blocks.find((commands) => commands.startsWith('openssl'))!], { cwd: folder })
  if (run('openssl', ['version']) === undefined) context.skip('openssl is not there')
  expect(made?.code).toBe(0)
  chmodSync(join(folder, 'certificate.pem'), 0o600)
  const check = blocks.find((commands) => commands.includes('haproxy -c'))!
  const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` }
  if (run('haproxy', ['-v'], { env }) === undefined) context.skip('HAProxy is not there')
  const here = check.replace('/etc/haproxy/', `${folder}/`)
  expect(run('sh', ['-ec', here], { cwd: folder, env })!.code).toBe(0)
})
