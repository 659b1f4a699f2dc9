import { afterAll, beforeAll, describe } from 'vitest'
import { type S3Server, s3Programs } from './support/s3-servers.ts'
import { describeStore } from './support/store-contract.ts'
import { openFolderStage, openS3Stage } from './support/store-stage.ts'

describeStore('a folder', () => openFolderStage())

for (const { name, installed, start } of s3Programs) {
  const title = installed ? name : `${name} (not in .cache/bin: .ci/run builds it)`
  describe.skipIf(!installed)(title, () => {
    let server: S3Server

    beforeAll(async () => {
      server = await start()
    })

    afterAll(() => server?.stop())

    describeStore('a bucket', async () => openS3Stage(server))
  })
}
