/** File servers other than the service: the errors that end a download. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { selfSigned } from '../../../../../test/support/ops/certificate.ts'
import { type DownloadOptions, downloadFile } from '../../../src/client/files/download.ts'
import { Requests } from '../../../src/client/requests.ts'

const stage = forTests(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-file-servers-'))
  return { folder, close: () => rm(folder, { recursive: true }) }
})

/** Downloads a file of 8 bytes. */
async function download(server: Server, scheme: string, options: DownloadOptions = {}): Promise<unknown> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `${scheme}://localhost:${(server.address() as AddressInfo).port}/file`
  const pacing = { random: () => 0 }
  const requests = new Requests({ baseUrl: url, token: 't', secret: 's', attemptsMax: 2, pacing })
  const sha256 = '00'.repeat(32)
  const source = {
    ...{ id: 'export_1', status: 'DONE' as const, url, size: 8, fileSha256: sha256, contentSize: 8, sha256 },
    ...{ rows: 1, totals: { debit: '0', credit: '0' } },
  }
  try {
    return await downloadFile(requests, source, join(stage.folder, scheme), async () => url, options)
  } finally {
    requests.close()
    server.close()
  }
}

test('the error for a certificate of an unknown authority says what to check', async ({ skip }) => {
  try {
    execFileSync('openssl', ['version'])
  } catch {
    skip('openssl is not installed')
  }
  const certificate = await selfSigned(new Date(Date.now() + 86_400_000))
  await expect(download(createSecureServer(certificate), 'https')).rejects.toMatchObject({
    code: 'CONNECTION-FAILED',
    message: expect.stringMatching(/^GET https:\/\/localhost:\d+: self-signed certificate/),
    remedy: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
  })
})

test('the download rethrows an exception of onRestart unchanged', async () => {
  let asked = 0
  const respond: RequestListener = (_, answer) => {
    asked += 1
    answer.writeHead(asked === 1 ? 200 : 416).end('half')
  }
  const thrown = new Error('The caller cannot begin again')
  const onRestart = () => {
    throw thrown
  }
  await expect(download(createServer(respond), 'http', { onRestart })).rejects.toBe(thrown)
})
