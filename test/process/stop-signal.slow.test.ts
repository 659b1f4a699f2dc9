/** What ends a program from outside lets it end properly, and its embedded database with it. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts'
import { environment, runNode, startProcess } from '../support/process.ts'
import { ask } from '../support/servers/database.ts'
import { copyCluster } from '../support/servers/own-database.ts'
import { documentEvent, stageOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

let folder: string
let dataDir: string
let child: ChildProcess
let output: { out: string; error: string }

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  await chmod(folder, 0o755)
  dataDir = join(folder, 'data')
  await copyCluster(dataDir)
})

afterEach(async () => {
  child.kill('SIGKILL')
  const left = await postmasterPid()
  if (left !== undefined) process.kill(left, 'SIGKILL')
  await rm(folder, { recursive: true, force: true })
  expect(left, 'no server is left running').toBeUndefined()
})

function run(...words: string[]): Promise<[number | null, string | null]> {
  const env = { ...environment, DATA_DIR: dataDir, PORT: '0' }
  const running = runNode(words, env)
  child = running.child
  output = running.output
  return running.ended
}

/**
 * As a Ctrl-C under npm, which comes from the terminal and from npm. Two kinds, because two of a kind may reach a busy
 * process as one; which it hears first is not said.
 */
function signalTwice(): void {
  child.kill('SIGINT')
  child.kill('SIGTERM')
}

test('a service that hears a Ctrl-C twice lets running answers end, and stops the database', async () => {
  const ended = run('src/main.ts')
  await until(() => output.out.includes('service.listening') || child.exitCode !== null)
  const response = await stalledExport()
  signalTwice()
  await until(() => output.out.includes('service.stopping') || child.exitCode !== null)
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  expect(JSON.parse(text)).toHaveLength(Number(response.trailers['x-row-count']))
  expect(await ended).toEqual([0, null])
  expect(output.out).toContain('"event":"service.stopped","drained":true')
  // Nothing else is for a pipe, such as what a terminal shows (welcome.test.ts).
  const lines = output.out.trimEnd().split('\n')
  expect(lines.map((line) => typeof JSON.parse(line).event)).toEqual(lines.map(() => 'string'))
})

test('a command that hears a Ctrl-C twice undoes what was not finished, and stops the database', async () => {
  const ended = run('src/cli.ts', 'seed', '--movements', '5000000')
  await until(() => /\d movements/.test(output.error) || child.exitCode !== null)
  signalTwice()
  expect([130, 143]).toContain((await ended)[0])
  expect(output.error).toContain('Interrupted: what was not finished is undone\n')
  const database = await startEmbeddedDatabase({ dataDir, durable: false })
  try {
    expect(await ask(database.ownerUrl, 'select from grandlivre.folders')).toEqual([])
  } finally {
    await database.stop()
  }
})

test('a service that gets SIGTERM while it starts stops its database as well', async () => {
  const ended = run('src/main.ts')
  await until(async () => (await postmasterPid()) !== undefined || child.exitCode !== null)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  await expect(access(join(dataDir, 'postgres/postmaster.pid'))).rejects.toThrow('ENOENT')
})

test('a service that gets SIGTERM takes no request while it waits for a subscriber', async (context) => {
  const stage = await stageOf(context)
  stage.receiver.behave('/silent', () => {})
  await stage.subscribe('/silent')
  const service = await startProcess({
    DATABASE_URL: stage.ownerUrl,
    DATA_DIR: dataDir,
    WEBHOOK_ALLOW_INSECURE: 'true',
  })
  child = service.child
  await stage.publish([documentEvent('a')])
  await until(() => stage.receiver.requests('/silent').length > 0)
  child.kill('SIGTERM')
  await until(() => service.logged('service.stopping'))
  await expect(fetch(`${service.url}/healthz`)).rejects.toThrow('fetch failed')
  expect(await service.ended).toEqual([0, null])
})

/** Its client has read nothing of it yet, and it is more than the buffers on the way hold. */
async function stalledExport(): Promise<IncomingMessage> {
  const { baseUrl, companyToken, thirdPartySecret, exercices } = JSON.parse(
    await readFile(join(dataDir, 'credentials.json'), 'utf8'),
  )
  const headers = { Authorization: `Bearer ${companyToken}`, 'X-Third-Party-Secret': thirdPartySecret }
  const url = `${baseUrl}/api/v1/mad/movements?version=1.0.0&idExercice=${exercices.at(-1).id}`
  const [response] = await once(get(url, { headers, agent: false }), 'response')
  return response
}

async function postmasterPid(): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => undefined)
  return text ? Number(text.split('\n')[0]) : undefined
}
