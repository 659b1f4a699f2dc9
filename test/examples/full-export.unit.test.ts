/** What the example of a full export accepts, and what it refuses. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { download, exportFolder } from '../../examples/full-export.ts'

const folder = mkdtempSync(join(tmpdir(), 'grandlivre-full-'))
afterAll(() => rmSync(folder, { recursive: true }))

const bytes = '{"movements":[]}'
const gzipped = gzipSync(bytes)
const sha256 = (of: string | Buffer) => createHash('sha256').update(of).digest('hex')
const totals = '"totals":{"debit":90071992547409.93,"credit":90071992547409.92}'
const running = '"status":"INIT","progress":{"rows":1,"rowsTotal":null,"bytes":9}'

let server: Server
let url: string
/** Bodies of the statuses, one per request; the first answers the trigger. */
let statuses: string[]
let requests: (string | undefined)[]

beforeEach(async () => {
  requests = []
  server = createServer((incoming, outgoing) => {
    requests.push(incoming.url)
    const files: Record<string, string | Buffer> = { '/file': bytes, '/file.gz': gzipped }
    outgoing.end(files[incoming.url!] ?? `{"id":"export_1",${statuses.shift()}}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const done = (changed = {}) => ({
  status: 'DONE' as const,
  ...{ id: 'export_1', url: `${url}/file`, rows: 0 },
  ...{ size: bytes.length, fileSha256: sha256(bytes), contentSize: bytes.length, sha256: sha256(bytes) },
  ...changed,
})
const doneText = () => `${JSON.stringify(done()).slice(1, -1)},${totals}`
const partner = () => ({ url, token: 't', secret: 's' })

test('an export is polled until it is done; its sums keep every digit', async () => {
  statuses = [running, running, doneText()]
  expect(await exportFolder(partner(), 'TRA')).toMatchObject({
    ...done(),
    debit: '90071992547409.93',
    credit: '90071992547409.92',
    wasThere: false,
  })
  const status = '/api/v1/mad/all/status?exportId=export_1'
  expect(requests).toEqual(['/api/v1/mad/all?version=1.0.0&format=TRA', status, status])
})

test('an export that is already done is not polled, and a failed one is refused with its reason', async () => {
  statuses = [doneText(), '"status":"FAILED","reason":"They say: no disk"', `"status":"DONE"`]
  expect(await exportFolder(partner(), 'JSON')).toMatchObject({ wasThere: true })
  await expect(exportFolder(partner(), 'JSON')).rejects.toThrow('export_1 failed: They say: no disk')
  await expect(exportFolder(partner(), 'JSON')).rejects.toThrow('has no totals')
})

test('a file is downloaded, and refused if its size or SHA-256 differs', async () => {
  const file = join(folder, 'full-export.json')
  const sums = { debit: '0', credit: '0', wasThere: false, ms: 0 }
  await download({ ...done(), ...sums }, file)
  expect(readFileSync(file, 'utf8')).toBe(bytes)
  await expect(download({ ...done({ size: 17 }), ...sums }, file)).rejects.toThrow('has 16 bytes')
  for (const hash of ['fileSha256', 'sha256'])
    await expect(download({ ...done({ [hash]: '00' }), ...sums }, file)).rejects.toThrow('another SHA-256')
})

test('a compressed file stays so, and is refused if it or its content differs', async () => {
  statuses = [doneText()]
  await exportFolder(partner(), 'TRA', 'gzip')
  expect(requests).toEqual(['/api/v1/mad/all?version=1.0.0&format=TRA&compression=gzip'])
  const file = join(folder, 'full-export.json.gz')
  const sums = { debit: '0', credit: '0', wasThere: false, ms: 0 }
  const compressed = { url: `${url}/file.gz`, size: gzipped.length, fileSha256: sha256(gzipped) }
  await download({ ...done(compressed), ...sums }, file, 'gzip')
  expect(readFileSync(file).equals(gzipped)).toBe(true)
  const differences: [object, string][] = [
    [{ size: 1 }, `The file has ${gzipped.length} bytes, and its status says 1`],
    [{ fileSha256: sha256(bytes) }, 'The file has another SHA-256'],
    [{ contentSize: 17 }, 'The content of the file has 16 bytes, and its status says 17'],
    [{ sha256: sha256(gzipped) }, 'The content of the file has another SHA-256'],
  ]
  for (const [difference, message] of differences)
    await expect(
      download({ ...done({ ...compressed, ...difference }), ...sums }, file, 'gzip'),
    ).rejects.toThrow(message)
})
