/** MinIO for the bench, if .ci/run has built it: on a free port of this machine, in a temporary folder. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { StoreSettings } from '../../src/store/store.ts'
import { freePort, type OwnProcess, startProcess } from '../own-process.ts'

const program = fileURLToPath(new URL('../../.cache/bin/minio', import.meta.url))

export const minioInstalled = existsSync(program)

export interface Minio {
  /** Used by the bench to remove files. */
  files: StoreSettings
  /** Settings for the environment of a service. */
  settings: Record<string, string>
  stop(): Promise<void>
}

/** @param stack stops it and removes its folder */
export async function startMinio(stack: AsyncDisposableStack): Promise<Minio> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-bench-minio-'))
  const endpoint = `http://127.0.0.1:${await freePort()}`
  const [accessKey, secretKey] = ['bench', randomBytes(16).toString('hex')]
  const minio = startProcess([program, 'server', '--quiet', `--address=${new URL(endpoint).host}`, folder], {
    env: {
      HOME: folder,
      MINIO_ROOT_USER: accessKey,
      MINIO_ROOT_PASSWORD: secretKey,
      MINIO_BROWSER: 'off',
      // Without it, MinIO refuses a folder on the system disk.
      MINIO_CI_CD: '1',
    },
  })
  const stop = async (): Promise<void> => {
    await minio.stop()
    await rm(folder, { recursive: true, force: true })
  }
  stack.defer(stop)
  await answering(endpoint, minio)
  const [bucket, region] = ['grandlivre', 'us-east-1']
  return {
    files: { kind: 's3', endpoint, publicEndpoint: endpoint, bucket, region, accessKey, secretKey },
    settings: {
      S3_ENDPOINT: endpoint,
      S3_BUCKET: bucket,
      S3_REGION: region,
      S3_ACCESS_KEY: accessKey,
      S3_SECRET_KEY: secretKey,
    },
    stop,
  }
}

async function answering(endpoint: string, minio: OwnProcess): Promise<void> {
  for (let waitedMs = 0; waitedMs < 30_000; waitedMs += 100) {
    // A refusal for lack of credentials is a response; while it starts, MinIO answers 503.
    const status = await fetch(endpoint).then(
      (answer) => answer.status,
      () => 503,
    )
    if (status < 500) return
    await Promise.race([delay(100), minio.failed])
  }
  throw new Error(`MinIO did not start at ${endpoint} within half a minute`)
}
