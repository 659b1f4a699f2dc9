/** docker-compose.yml and Dockerfile: their settings, published ports, health checks and secrets. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, matchesGlob } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readHome, readSections } from '../../docs/site/pages.ts'
import { readConfig } from '../../src/config.ts'
import { defaultTiming } from '../../src/timing.ts'

interface Container {
  image?: string
  build?: { args: Record<string, string> }
  profiles?: string[]
  environment?: Record<string, string | number>
  env_file?: { path: string; required: boolean }[]
  ports?: string[]
  network_mode?: string
  healthcheck?: unknown
  mem_limit?: string
  stop_grace_period?: string
  volumes?: string[]
}

const root = new URL('../..', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const compose = read('docker-compose.yml').replaceAll(/^\s*#.*\n/gm, '')
const docs = read('docs/operators/deploy.md')
const dockerfile = read('Dockerfile')
const services: Record<string, Container> = parse(compose, { merge: true }).services

const isSecret = (name: string) => /(PASSWORD|SECRET|KEY|TOKEN)$/.test(name)

/** Variables from the environment, nested ones too: `${NAME}`, `${NAME:-default}`, `${NAME:?message}`. */
const variables = [...compose.matchAll(/\$\{(\w+)(:?[-?+])?/g)].map(([, name, operator]) => ({
  name: name!,
  operator,
}))

const demanded = [...new Set(variables.filter(({ name }) => isSecret(name)).map(({ name }) => name))].sort()

test('the composition publishes the service, its balancer and the files that partners download, and nothing else', () => {
  expect(Object.keys(services)).toEqual(['database', 'files', 'service', 'second', 'balancer'])
  const publishing = Object.entries(services).filter(([, each]) => each.ports?.length || each.network_mode)
  expect(publishing.map(([name]) => name)).toEqual(['files', 'service', 'balancer'])
  const always = Object.entries(services).filter(([, { profiles }]) => profiles === undefined)
  expect(always.map(([name]) => name)).toEqual(['database', 'files', 'service'])
})

test('the composition publishes no files if they are on an S3 server elsewhere', () => {
  expect(services['files']!.ports).toEqual([`\${S3_ENDPOINT:+127.0.0.1:}9000:9000`])
})

test('the composition requires every secret and has no default secrets', () => {
  expect(demanded).toEqual(['MASTER_KEY', 'POSTGRES_PASSWORD', 'S3_ACCESS_KEY', 'S3_SECRET_KEY'])
  expect(variables.filter(({ name, operator }) => isSecret(name) && operator !== ':?')).toEqual([])
  const settings = Object.values(services).flatMap(({ environment = {} }) => Object.entries(environment))
  const secrets = settings.filter(([name]) => isSecret(name))
  expect(secrets).toHaveLength(9)
  for (const [name, value] of secrets) expect([name, value]).toEqual([name, expect.stringMatching(/^\$\{/)])
  expect(compose).toMatch(/postgres:\/\/grandlivre:\$\{POSTGRES_PASSWORD:\?/)
})

/** The settings in the table of the README, which another test compares with those that the service reads. */
const [, table] = /^## Settings\n([\s\S]*?)^## /m.exec(read('README.md'))!
const settings = [...table!.matchAll(/^\| (`[A-Z].*?) \|/gm)].flatMap(([, names]) => names!.match(/\w+/g)!)

test('the composition passes on every setting of .env, except those that the container sets itself', () => {
  expect(settings.length).toBeGreaterThan(30)
  for (const name of ['service', 'second']) {
    const { environment = {}, env_file } = services[name]!
    expect(env_file).toEqual([{ path: '.env', required: false }])
    expect(Object.keys(environment).filter((each) => !settings.includes(each))).toEqual([])
    // Any other value would override the one in .env.
    const fixed = Object.entries(environment).filter(
      ([each, value]) => !String(value).startsWith(`\${${each}:`),
    )
    expect(Object.fromEntries(fixed)).toEqual({ HOST: '0.0.0.0', PORT: 8080, DATA_DIR: '/tmp/grandlivre' })
  }
})

test('no variable of the composition looks like a mistyped setting', () => {
  const others = variables.map(({ name }) => [name, 'a']).filter(([name]) => !settings.includes(name!))
  expect(others.length).toBeGreaterThan(3)
  expect(readConfig(Object.fromEntries(others)).mistyped).toEqual([])
})

test('a container has enough time to stop and a memory limit', () => {
  const url = 'postgres://owner@localhost/ledger'
  const { drainSeconds, stopSeconds } = readConfig({ DATABASE_URL: url, MASTER_KEY: 'ab'.repeat(32) })
  const longest = drainSeconds + stopSeconds + defaultTiming.closeMs / 1000
  for (const name of ['service', 'second'] as const) {
    const { stop_grace_period, mem_limit } = services[name]!
    expect(Number(/^(\d+)s$/.exec(stop_grace_period!)![1])).toBeGreaterThan(longest)
    expect(mem_limit).toBe(`\${MEMORY_LIMIT:-2g}`)
  }
})

test('the balancer gets the file of ops/haproxy/ and every variable that this file reads', () => {
  const { environment = {}, volumes = [] } = services['balancer']!
  const [file] = volumes[0]!.split(':')
  expect(existsSync(new URL(file!, root))).toBe(true)
  const asked = [
    ...read(file!)
      .replaceAll(/^#.*/gm, '')
      .matchAll(/"\$\{(\w+)\}"/g),
  ].map(([, name]) => name)
  expect(Object.keys(environment).sort()).toEqual([...new Set(asked)].sort())
  for (const name of ['SERVICE1', 'SERVICE2'])
    expect(Object.keys(services)).toContain(String(environment[name]).split(':')[0])
})

test('the base image is an argument of the build, with the same default everywhere', () => {
  const [, base] = /^ARG BASE=(\S+)$/m.exec(dockerfile)!
  expect(dockerfile.match(/^FROM \S+/gm)).toEqual(Array(2).fill(`FROM \${BASE}`))
  expect(services['service']!.build!.args['BASE']).toBe(`\${BASE_IMAGE:-${base}}`)
  expect(docs).toContain(`docker buildx imagetools inspect ${base} --format`)
})

test('the image is built with every page of the documentation', () => {
  const copied = read('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1))
  const isCopied = (path: string) =>
    copied.some((line) => path.startsWith(`${line}/`) || matchesGlob(path, line))
  const pages = [readHome(), ...readSections().flatMap((section) => section.pages)]
  const pictures = pages.flatMap(({ source }) =>
    [...read(source).matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(([, path]) => join(dirname(source), path!)),
  )
  expect(pictures.length).toBeGreaterThan(3)
  const needed = [
    ...pages.map(({ source }) => source),
    ...pictures,
    'docs/site/build.ts',
    'docs/.vitepress/config.ts',
  ]
  expect(needed.filter((path) => !isCopied(path))).toEqual([])
  expect(dockerfile).toMatch(/^COPY --from=site \/app\/site \.\/site$/m)
})

test('the health check of a container succeeds if its process lives', async (context) => {
  expect([services['service']!.healthcheck, services['second']!.healthcheck]).toEqual([undefined, undefined])
  const [, words] = /^HEALTHCHECK .* CMD (\[[\s\S]*?\])$/m.exec(dockerfile)!
  const [, ...check] = JSON.parse(words!.replace('\\\n', ''))
  let answered = 200
  const server = createServer(({ url }, answer) =>
    answer.writeHead(url === '/healthz' ? answered : 404).end(),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  context.onTestFinished(() => void server.close())
  const env = { PORT: String((server.address() as AddressInfo).port) }
  const exitCode = () =>
    promisify(execFile)(process.execPath, check, { env }).then(
      () => 0,
      ({ code }) => code,
    )
  expect(await exitCode()).toBe(0)
  answered = 503
  expect(await exitCode()).toBe(1)
})

test('the documented command creates missing secrets and changes no existing one', (context) => {
  const [, make] = /^```sh\n(\(umask [\s\S]*?\)) && docker compose up --build\n```/m.exec(docs)!
  expect(/ in ([A-Z0-9_ ]+); do/.exec(make!)![1]!.split(' ')).toEqual(demanded)
  try {
    execFileSync('openssl', ['version'])
  } catch {
    context.skip('openssl is not there')
  }
  const folder = mkdtempSync(join(tmpdir(), 'grandlivre-env-'))
  context.onTestFinished(() => rmSync(folder, { recursive: true }))
  const run = () => execFileSync('sh', ['-c', make!], { cwd: folder })
  const file = join(folder, '.env')
  const made = () => readFileSync(file, 'utf8').trim().split(/\n+/)
  run()
  expect(made()).toEqual(demanded.map((name) => expect.stringMatching(`^${name}=[0-9a-f]{64}$`)))
  expect(new Set(made().map((line) => line.split('=')[1])).size).toBe(demanded.length)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  // Existing lines stay, even if the last one has no line end.
  writeFileSync(file, 'S3_ENDPOINT=https://s3.example.com\nS3_SECRET_KEY=\nMASTER_KEY=kept')
  run()
  run()
  const given = ['S3_ENDPOINT=https://s3.example.com', 'S3_SECRET_KEY=', 'MASTER_KEY=kept']
  expect(made().slice(0, 3)).toEqual(given)
  expect(made().slice(3)).toEqual(
    demanded.slice(1).map((name) => expect.stringMatching(`^${name}=[0-9a-f]{64}$`)),
  )
})
