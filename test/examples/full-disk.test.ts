/** What the example of a full export does where its file does not fit. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test('a file of which the system takes only a part is not reported as downloaded', async () => {
  const bytes = Buffer.alloc(1500, 'x')
  const fileSha256 = createHash('sha256').update(bytes).digest('hex')
  const of = { size: bytes.length, fileSha256, contentSize: bytes.length, sha256: fileSha256, rows: 1 }
  const server = createServer((incoming, outgoing) => {
    const url = `http://${incoming.headers.host}/file`
    const totals = '"totals":{"debit":1,"credit":1}'
    const status = JSON.stringify({ id: 'export_1', status: 'DONE', url, ...of })
    outgoing.end(incoming.url === '/file' ? bytes : `${status.slice(0, -1)},${totals}}`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const out = await mkdtemp(join(tmpdir(), 'grandlivre-disk-'))
  try {
    const run = async (limit: string) => {
      const program = [process.execPath, join(import.meta.dirname, '../../examples/full-export.ts')]
      const child = spawn('bash', ['-c', `${limit}; exec "$0" "$@"`, ...program, '--out', out], {
        stdio: 'ignore',
        env: {
          GRANDLIVRE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          ...{ GRANDLIVRE_TOKEN: 't', GRANDLIVRE_SECRET: 's', NODE_DISABLE_COMPILE_CACHE: '1' },
        },
      })
      const [status] = await once(child, 'close')
      return [status === 0, (await readFile(join(out, 'full-export.json'))).length]
    }
    expect(await run('true')).toEqual([true, 1500])
    // No file may be longer than 1 KiB: the first write ends there, as on a disk that is full.
    expect(await run('ulimit -c 0 -f 1')).toEqual([false, 1024])
  } finally {
    server.close()
    await rm(out, { recursive: true })
  }
})
