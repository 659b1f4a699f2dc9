/** The export stage as commands meet it: behind a proxy that spoils answers, and with a folder for files and logins. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forTests } from '../../../../../test/support/for-tests.ts'
import { setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import { startFaultyProxy, untouched } from '../client/faulty-proxy.ts'
import { accessOf } from './command-line.ts'

/**
 * To be called once in a file, before its tests.
 * @returns at once: the folder, which is the home of the callers; paths in it; and the environment of a caller without an
 *   access. Once tests run: the stage, its proxy, which spoils nothing before each test, and the environments of callers
 *   with the token of folder 111 and of firm 110, through the proxy
 */
export function proxiedStage() {
  const folder = mkdtempSync(join(tmpdir(), 'grandlivre-cli-'))
  const none: Record<string, string> = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder }
  const its = forTests(async () => {
    const stage = await setExportStage()
    const proxy = await startFaultyProxy(stage.service.url)
    return {
      stage,
      proxy,
      company: { ...none, ...accessOf(proxy.url, stage.company) } as typeof none,
      firm: { ...none, ...accessOf(proxy.url, stage.firm) } as typeof none,
      async close(): Promise<void> {
        rmSync(folder, { recursive: true, force: true })
        await proxy.close()
        await stage.close()
      },
    }
  })
  untouched(() => its.proxy)
  return { its, folder, at: (name: string) => join(folder, name), none }
}
