/** A program that is ended from outside ends properly, and so does its embedded database. */
import { once } from 'node:events'
import { access, readFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts'
import { environment, type RunningProgram, runNode, startProcess } from '../support/process.ts'
import { ask } from '../support/servers/database.ts'
import { copyCluster } from '../support/servers/own-database.ts'
import { setEmbeddedStage } from '../support/stages/embedded-stage.ts'
import { documentEvent, stageOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = setEmbeddedStage()
beforeEach(() => copyCluster(stage.dataDir))

function run(...words: string[]): RunningProgram {
  const running = runNode(words, { ...environment, DATA_DIR: stage.dataDir, PORT: '0' })
  stage.children.push(running.child)
  return running
}

/**
 * A Ctrl-C under npm arrives twice: from the terminal and from npm. The test sends two kinds of signals, because a busy
 * process may receive two of one kind as one. The order in which the process receives them is not certain.
 */
const twice = ['SIGINT', 'SIGTERM'] as const

test('a service that gets one Ctrl-C as two signals lets running answers end, and stops the database', async () => {
  const { child, output, ended } = run('src/main.ts')
  await until(() => output.out.includes('service.listening') || child.exitCode !== null)
  const response = await stalledExport()
  for (const signal of twice) child.kill(signal)
  await until(() => output.out.includes('service.stopping') || child.exitCode !== null)
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  expect(JSON.parse(text)).toHaveLength(Number(response.trailers['x-row-count']))
  expect(await ended).toEqual([0, null])
  expect(output.out).toContain('"event":"service.stopped","drained":true')
  // A pipe gets nothing else, such as the text for a terminal (welcome.test.ts).
  const lines = output.out.trimEnd().split('\n')
  expect(lines.map((line) => typeof JSON.parse(line).event)).toEqual(lines.map(() => 'string'))
})

/** Starts a command, and waits until it has begun to load. It would outlast every test here. */
async function runSeed(): Promise<RunningProgram> {
  const command = run('src/cli.ts', 'seed', '--movements', '5000000')
  await until(() => /\d movements/.test(command.output.error) || command.child.exitCode !== null)
  return command
}

test.each([
  { signals: ['SIGINT'], codes: [130] },
  { signals: ['SIGTERM'], codes: [143] },
  { signals: twice, codes: [130, 143] },
] as const)(
  'a command that gets $signals rolls back unfinished work, stops the database, and exits with the code of the signal',
  async ({ signals, codes }) => {
    const { child, output, ended } = await runSeed()
    for (const signal of signals) child.kill(signal)
    expect(codes).toContain((await ended)[0])
    expect(output.error).toContain('Interrupted: what was not finished is undone\n')
    await expect(access(join(stage.dataDir, 'postgres/postmaster.pid'))).rejects.toThrow('ENOENT')
    const database = await startEmbeddedDatabase({ dataDir: stage.dataDir, durable: false })
    expect(await ask(database.ownerUrl, 'select from grandlivre.folders')).toEqual([])
    await database.stop()
  },
)

test('an interrupted command on a shared server ends its transaction and leaves the server running', async () => {
  const { child, ended } = await runSeed()
  const database = await startEmbeddedDatabase({ dataDir: stage.dataDir })
  child.kill('SIGINT')
  await ended
  const seeding = `select from pg_stat_activity where application_name = 'grandlivre seed'`
  await until(async () => (await ask(database.ownerUrl, seeding)).length === 0)
  expect(await ask(database.ownerUrl, 'select from grandlivre.folders')).toEqual([])
  await database.stop()
})

test('a command that loses its database says in one line what to do', async () => {
  const { output, ended } = await runSeed()
  process.kill((await stage.postmasterPid())!, 'SIGINT')
  expect(await ended).toEqual([1, null])
  expect(output.error).toMatch(
    /^The database could not go on \(.+\): what was not finished is undone\. Try again\. If the command was about to end, look first whether it was done$/m,
  )
  // The server was stopped from outside, so no process waits for its end.
  await until(async () => (await stage.postmasterPid()) === undefined)
})

test('a service that gets SIGTERM during its start also stops its database', async () => {
  const { child, ended } = run('src/main.ts')
  await until(async () => (await stage.postmasterPid()) !== undefined || child.exitCode !== null)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  await expect(access(join(stage.dataDir, 'postgres/postmaster.pid'))).rejects.toThrow('ENOENT')
})

test('a service that gets SIGTERM accepts no request while it waits for a subscriber', async (context) => {
  const { receiver, subscribe, publish, ownerUrl } = await stageOf(context)
  receiver.behave('/silent', () => {})
  await subscribe('/silent')
  const service = await startProcess({ DATABASE_URL: ownerUrl, WEBHOOK_ALLOW_INSECURE: 'true' })
  stage.children.push(service.child)
  await publish([documentEvent('a')])
  await until(() => receiver.requests('/silent').length > 0)
  service.child.kill('SIGTERM')
  await until(() => service.logged('service.stopping'))
  await expect(fetch(`${service.url}/healthz`)).rejects.toThrow('fetch failed')
  expect(await service.ended).toEqual([0, null])
})

/** Begins an export whose client reads nothing yet. It has more bytes than the buffers on the way hold. */
async function stalledExport(): Promise<IncomingMessage> {
  const { baseUrl, companyToken, thirdPartySecret, exercices } = JSON.parse(
    await readFile(join(stage.dataDir, 'credentials.json'), 'utf8'),
  )
  const headers = { Authorization: `Bearer ${companyToken}`, 'X-Third-Party-Secret': thirdPartySecret }
  const url = `${baseUrl}/api/v1/mad/movements?version=1.0.0&idExercice=${exercices.at(-1).id}`
  const [response] = await once(get(url, { headers, agent: false }), 'response')
  return response
}
