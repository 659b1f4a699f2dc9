/** The site of the documentation, as `npm ci` leaves it. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { ownFolder } from '../../../docs/site/build.ts'
import { root } from '../../../docs/site/pages.ts'

/** Runs `npm run docs -- site`. */
export const runBuild = (...options: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [join(root, 'docs/site/build.ts'), ...options])

/** Made again if what it is made of has changed since. */
export async function currentSite(): Promise<string> {
  const sources = globSync(
    [
      '*.md',
      '{bench,fixtures,src}/README.md',
      'docs/**/*.md',
      'docs/{site,.vitepress}/*.ts',
      'docs/.vitepress/theme/*.js',
    ],
    { cwd: root },
  )
  const changedAt = Math.max(...sources.map((source) => statSync(join(root, source)).mtimeMs))
  const isCurrent = () =>
    (statSync(join(ownFolder, 'llms.txt'), { throwIfNoEntry: false })?.mtimeMs ?? 0) > changedAt
  if (isCurrent()) return ownFolder
  const made = `${ownFolder}.new-${process.pid}-of-tests`
  await runBuild('--out', made)
  // Tests of another file may use theirs by now.
  if (isCurrent()) rmSync(made, { recursive: true })
  else {
    rmSync(ownFolder, { recursive: true, force: true })
    renameSync(made, ownFolder)
  }
  return ownFolder
}

/** Makes the site below `base`, and serves it as any web server would: files by their paths, and no more. */
export async function serveSite(out: string, base: string): Promise<{ url: string; close(): void }> {
  await runBuild('--out', out, '--base', base)
  const types: Record<string, string> = {
    '.html': 'text/html',
    '.js': 'text/javascript',
    '.css': 'text/css',
    '.svg': 'image/svg+xml',
  }
  const server = createServer((request, response) => {
    const path = new URL(request.url!, 'http://any').pathname
    const file = join(out, path.slice(base.length))
    const isThere = path.startsWith(base) && existsSync(file)
    response.writeHead(isThere ? 200 : 404, { 'Content-Type': types[extname(file)] ?? 'text/plain' })
    response.end(isThere ? readFileSync(file) : undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
