/** Chromium as Debian packages it, driven by Playwright. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const path = '/usr/bin/chromium'

export const isChromiumInstalled = existsSync(path)

/** Warns once per run. */
export function warnIfChromiumIsMissing(): void {
  if (!isChromiumInstalled) console.warn('No tests in a browser: Chromium is not installed, see .ci/run')
}

/** Loads nothing of its own from the network. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** @param hosts names that lead to this machine */
export function openChromium(hosts: readonly string[] = []): Promise<Browser> {
  const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join(', ')
  return chromium.launch({ executablePath: path, args: [...quiet, `--host-resolver-rules=${rules}`] })
}
