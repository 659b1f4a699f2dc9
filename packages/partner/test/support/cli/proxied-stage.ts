/** The export stage as commands meet it: behind a proxy that spoils answers, and with a folder for files and logins. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type ExportStage, setExportStage } from '../../../../../test/support/stages/export-stage.ts'
import { type FaultyProxy, startFaultyProxy } from '../client/faulty-proxy.ts'
import { accessOf } from './command-line.ts'

export interface ProxiedStage {
  stage: ExportStage
  /** Without a fault before each test. */
  proxy: FaultyProxy
  /** Home of the callers. */
  folder: string
  /** A path in it. */
  at(name: string): string
  /** Environments: without an access, and of a caller with the token of folder 111 or of firm 110, through the proxy. */
  none: Record<string, string>
  company: Record<string, string>
  firm: Record<string, string>
}

/** To be called once in a file, before its tests. What needs the service is there once they run. */
export function proxiedStage(): ProxiedStage {
  const folder = mkdtempSync(join(tmpdir(), 'grandlivre-cli-'))
  const none = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder }
  const its = {
    folder,
    at: (name: string) => join(folder, name),
    none,
  } as Partial<ProxiedStage> as ProxiedStage
  beforeAll(async () => {
    its.stage = await setExportStage()
    its.proxy = await startFaultyProxy(its.stage.service.url)
    its.company = { ...none, ...accessOf(its.proxy.url, its.stage.company) }
    its.firm = { ...none, ...accessOf(its.proxy.url, its.stage.firm) }
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await its.proxy?.close()
    await its.stage?.close()
  })
  beforeEach(() => {
    its.proxy.fault = () => undefined
  })
  return its
}
