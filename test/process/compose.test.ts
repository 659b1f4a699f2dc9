/** docker-compose.yml: what it publishes, and that it holds no secret. It is read as text, without a YAML parser. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = new URL('../..', import.meta.url)
const compose = readFileSync(new URL('docker-compose.yml', root), 'utf8').replaceAll(/^\s*#.*\n/gm, '')
const docs = readFileSync(new URL('docs/operators.md', root), 'utf8')

const isSecret = (name: string) => /(PASSWORD|SECRET|KEY|TOKEN)$/.test(name)

/** Name and lines of each service. */
const services = [
  .../^services:\n((?:[ \n].*\n|\n)+)/m.exec(compose)![1]!.matchAll(/^ {2}(\w+):\n((?: {4}.*\n|\n)+)/gm),
].map(([, name, lines]) => ({ name: name!, lines: lines! }))

/** Variables from the environment, nested ones too: `${NAME}`, `${NAME:-default}`, `${NAME:?message}`. */
const variables = [...compose.matchAll(/\$\{(\w+)(:?[-?+])?/g)].map(([, name, operator]) => ({
  name: name!,
  operator,
}))

const demanded = [...new Set(variables.filter(({ name }) => isSecret(name)).map(({ name }) => name))].sort()

test('the composition publishes the service and the files that partners download, and nothing else', () => {
  expect(services.map(({ name }) => name)).toEqual(['database', 'files', 'service'])
  const publishing = services.filter(({ lines }) => /^ {4}(ports|network_mode):/m.test(lines))
  expect(publishing.map(({ name }) => name)).toEqual(['files', 'service'])
})

test('the composition publishes no files if they are on an S3 server elsewhere', () => {
  const files = services.find(({ name }) => name === 'files')!
  const ports = [.../^ {4}ports:\n((?: {6}.*\n)+)/m.exec(files.lines)![1]!.matchAll(/- '(.*)'/g)]
  expect(ports.map(([, port]) => port)).toEqual([`\${S3_ENDPOINT:+127.0.0.1:}9000:9000`])
})

test('the composition demands every secret and has a default for none', () => {
  expect(demanded).toEqual(['MASTER_KEY', 'POSTGRES_PASSWORD', 'S3_ACCESS_KEY', 'S3_SECRET_KEY'])
  expect(variables.filter(({ name, operator }) => isSecret(name) && operator !== ':?')).toEqual([])
  const settings = [...compose.matchAll(/^ {6}(\w+): (.*)$/gm)].filter(([, name]) => isSecret(name!))
  expect(settings).toHaveLength(6)
  for (const [, name, value] of settings)
    expect([name, value]).toEqual([name, expect.stringMatching(/^\$\{/)])
  expect(compose).toMatch(/postgres:\/\/grandlivre:\$\{POSTGRES_PASSWORD:\?/)
})

test('the command in the documentation makes the secrets that are missing, and changes none', (context) => {
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
