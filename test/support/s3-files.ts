/** A bucket for the exports of a stage, which its services reach through a proxy. */
import { basename } from 'node:path'
import type { TestContext } from 'vitest'
import { createClient, type S3Settings } from '../../src/store/s3-requests.ts'
import { type ObjectStore, StoreError } from '../../src/store/store.ts'
import { type S3Proxy, startS3Proxy } from './servers/s3-proxy.ts'
import type { S3Server } from './servers/s3-servers.ts'
import { type Files, failingStageOf, type StageOptions } from './stages/failing-stage.ts'
import { openS3Stage, quickRetries } from './stages/store-stage.ts'
import { until } from './until.ts'

/** A stage of one test on a bucket, which ends with it. */
export async function s3StageOf(server: S3Server, context: TestContext, options: StageOptions = {}) {
  const files = await openS3Files(server)
  context.onTestFinished(() => files.proxy.close())
  const stage = await failingStageOf(context, { ...options, files })
  return { ...stage, proxy: files.proxy }
}

export async function openS3Files(server: S3Server): Promise<Files & { proxy: S3Proxy }> {
  const proxy = await startS3Proxy(server.endpoint)
  // Bypasses the proxy, so that the test sees the bucket whatever the services see.
  const { store, settings } = openS3Stage(server)
  await until(() => isReachable(store))
  const { bucket, region, accessKey, secretKey } = settings as S3Settings
  const client = createClient(settings as S3Settings, server.endpoint, quickRetries)
  return {
    proxy,
    store,
    settings: {
      S3_ENDPOINT: proxy.endpoint,
      S3_PUBLIC_ENDPOINT: server.endpoint,
      S3_BUCKET: bucket,
      S3_REGION: region,
      S3_ACCESS_KEY: accessKey,
      S3_SECRET_KEY: secretKey,
    },
    stored: async () => {
      const finished = await Array.fromAsync(store.listObjects(new Date(Date.now() + 3_600_000)))
      const { uploads } = await client.listIncompleteUploadsQuery(bucket, '', '', '', '')
      const unfinished = uploads.map(({ key }) => `${basename(key)} (unfinished)`)
      return [...finished.map(({ key }) => basename(key)), ...unfinished]
    },
  }
}

/**
 * A server that has just started may answer a first request and reset the next connection.
 * @throws {StoreError} if the error is lasting
 */
async function isReachable(store: ObjectStore): Promise<boolean> {
  try {
    await store.check()
    return true
  } catch (error) {
    if (error instanceof StoreError && error.retryable) return false
    throw error
  }
}
