import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StoreSettings } from '../../../../../src/store/store.ts'
import { startTestService } from '../../../../../test/support/service.ts'
import { setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import type { Grandlivre, GrandlivreOptions } from '../../../src/client/grandlivre.ts'
import { startFaultyProxy } from './faulty-proxy.ts'
import { accessOf, libraryOf } from './library.ts'

/** A service whose files are downloaded through a proxy that can spoil them. */
export async function setDownloadStage() {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-downloads-'))
  const files = await mkdtemp(join(tmpdir(), 'grandlivre-files-'))
  const store = { kind: 'filesystem', folder: files } as Extract<StoreSettings, { kind: 'filesystem' }>
  const stage = await setExportStage({ store })
  const proxy = await startFaultyProxy(stage.service.url)
  // This service signs addresses of the proxy. Behind the proxy, the first service answers with the files of both.
  const service = await startTestService(stage.database, { store, publicUrl: proxy.url })
  const opened: Grandlivre[] = []
  return {
    stage,
    /** A proxy between the client and the files only. */
    proxy,
    /** Options of the client, for another process. */
    access: accessOf(stage.company, service.url),
    /** An empty folder for downloads. */
    folder,
    library(options: Partial<GrandlivreOptions> = {}): Grandlivre {
      const library = libraryOf(stage.company, service.url, options)
      opened.push(library)
      return library
    },
    /** How often the status of an export was read. */
    statusesRead: () => service.lines.filter((line) => line.includes('/mad/all/status')).length,
    /** Names in the folder of downloads. */
    found: async () => (await readdir(folder)).sort(),
    read: (name: string) => readFile(join(folder, name)),
    async close(): Promise<void> {
      for (const library of opened) library.close()
      await proxy.close()
      await service.stop()
      await stage.close()
      for (const path of [folder, files]) await rm(path, { recursive: true, force: true })
    },
  }
}
