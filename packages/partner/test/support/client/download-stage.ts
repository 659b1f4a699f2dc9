import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StoreSettings } from '../../../../../src/store/store.ts'
import { startTestService } from '../../../../../test/support/service.ts'
import { type ExportStage, setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import type { Grandlivre, GrandlivreOptions } from '../../../src/client/grandlivre.ts'
import { type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts'
import { accessOf, libraryOf } from './library.ts'

/** A service whose files are downloaded through a proxy that can spoil them. */
export interface DownloadStage {
  stage: ExportStage
  /** Between the client and the files, and nothing else. */
  proxy: FaultyProxy
  /** How the client is opened, for another process. */
  access: Pick<GrandlivreOptions, 'baseUrl' | 'token' | 'secret'>
  /** An empty folder for downloads. */
  folder: string
  library(options?: Partial<GrandlivreOptions>): Grandlivre
  /** How often the status of an export was read. */
  statusesRead(): number
  /** Names in the folder of downloads. */
  found(): Promise<string[]>
  read(name: string): Promise<Buffer>
  close(): Promise<void>
}

export async function setDownloadStage(): Promise<DownloadStage> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-downloads-'))
  const files = await mkdtemp(join(tmpdir(), 'grandlivre-files-'))
  const store = { kind: 'filesystem', folder: files } as Extract<StoreSettings, { kind: 'filesystem' }>
  const stage = await setExportStage({ store })
  const proxy = await startFaultyProxy(stage.service.url)
  // Signs addresses of the proxy, behind which the first service answers with the files of both.
  const service = await startTestService(stage.database, { store, publicUrl: proxy.url })
  const opened: Grandlivre[] = []
  return {
    stage,
    proxy,
    access: accessOf(stage.company, service.url),
    folder,
    library: (options) => {
      const library = libraryOf(stage.company, service.url, options)
      opened.push(library)
      return library
    },
    statusesRead: () => service.lines.filter((line) => line.includes('/mad/all/status')).length,
    found: async () => (await readdir(folder)).sort(),
    read: (name) => readFile(join(folder, name)),
    close: async () => {
      for (const library of opened) library.close()
      await proxy.close()
      await service.stop()
      await stage.close()
      for (const path of [folder, files]) await rm(path, { recursive: true, force: true })
    },
  }
}
