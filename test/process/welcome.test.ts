/** What `npm start` shows on a terminal. stop-signal.slow.test.ts checks what it writes elsewhere. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { environment } from '../support/process.ts'
import { copyCluster } from '../support/servers/own-database.ts'
import { setEmbeddedStage } from '../support/stages/embedded-stage.ts'
import { until } from '../support/until.ts'

const stage = setEmbeddedStage()

/** Whether `script` of util-linux is there, which gives a program a terminal. That of macOS takes other arguments. */
const hasTerminals = process.platform === 'linux' && existsSync('/usr/bin/script')

test.skipIf(!hasTerminals)(
  'on a terminal, the service prints its address and commands to paste next',
  async () => {
    await copyCluster(stage.dataDir)
    const env = { ...environment, DATA_DIR: stage.dataDir, PORT: '0' }
    const words = ['-qec', `${process.execPath} src/main.ts`, '/dev/null']
    const child = spawn('/usr/bin/script', words, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    stage.children.push(child)
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk))
    const ended = once(child, 'close')
    await until(() => printed.includes('Ctrl-C stops') || child.exitCode !== null)
    const { url, pid } = JSON.parse(printed.match(/^{.*"service.listening".*}/m)![0])
    process.kill(pid, 'SIGTERM')
    await ended
    expect(printed).toContain(`Grandlivre runs at ${url}, with a made-up ledger.`)
    expect(printed).toContain(`${url}/docs/api/\r\n`)
    const commands = [...printed.matchAll(/^ {2}npx grandlivre (\w+) (.*)\r$/gm)]
    expect(commands.map(([, name]) => name)).toEqual(['login', 'pull', 'listen'])
    expect(commands[0]![2]).toBe(`--from ${stage.dataDir}/credentials.json`)
  },
)
