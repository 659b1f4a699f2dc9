import { describeOnS3 } from './support/s3-servers.ts'
import { describeStore } from './support/store-contract.ts'
import { openFolderStage, openS3Stage } from './support/store-stage.ts'

describeStore('a folder', () => openFolderStage())

describeOnS3((server) => describeStore('a bucket', async () => openS3Stage(server())))
