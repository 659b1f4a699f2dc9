import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createLog } from '../src/log.ts'

test('lines that a slow reader cannot take are dropped and counted, so that memory stays bounded', async () => {
  const lines: string[] = []
  let release: (() => void) | undefined
  const out = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      if (release === undefined) release = done
      else done()
    },
  })
  const log = createLog('info', out)
  const url = 'x'.repeat(10_000)
  for (let count = 0; count < 1000; count += 1) log('service.listening', { url, pid: count })
  expect(out.writableLength).toBeLessThan(2 * 1024 * 1024)
  const drained = once(out, 'drain')
  release?.()
  await drained
  log('service.stopping', { signal: 'SIGTERM' })
  out.end()
  await once(out, 'finish')
  const events = lines.map((line) => JSON.parse(line))
  const { lines: dropped } = events.find(({ event }) => event === 'log.dropped')
  expect(events.filter(({ event }) => event === 'service.listening')).toHaveLength(1000 - dropped)
})

test('the process continues if the reader of its log goes away', async () => {
  const code = `
    import { createLog } from './src/log.ts'
    const log = createLog('info')
    let count = 0
    const timer = setInterval(() => {
      log('service.listening', { url: 'x'.repeat(100000), pid: count })
      count += 1
      if (count === 20) { clearInterval(timer); process.stderr.write('alive') }
    }, 1)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  let error = ''
  child.stderr.on('data', (chunk) => {
    error += chunk
  })
  expect(await once(child, 'close')).toEqual([0, null])
  expect(error).toBe('alive')
})

test('only lines of the given level or above are written, and none if the level is silent', () => {
  const lines: string[] = []
  const out = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  for (const level of ['silent', 'error'] as const) {
    createLog(level, out)('service.stopping', { signal: 'SIGTERM' })
    createLog(level, out)('request.failed', { requestId: 'a', code: 'ERR-INTERNAL', error: new Error(level) })
  }
  expect(lines.map((line) => JSON.parse(line).error.message)).toEqual(['error'])
})
