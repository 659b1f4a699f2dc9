/** The site of the documentation, its files and what `/docs/` answers; site-in-browser.slow.test.ts has what a reader sees. */
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { serve } from '@hono/node-server'
import { OpenAPIHono } from '@hono/zod-openapi'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readHome, readSections, root } from '../../../docs/site/pages.ts'
import { addSite } from '../../../src/http/reference/site.ts'
import type { Edge } from '../../../src/http/route.ts'
import { currentSite, runBuild } from '../../support/browser/site.ts'
import { request } from '../../support/service.ts'
import { type CallerStage, setCallerStage } from '../../support/stages/caller-stage.ts'

let stage: CallerStage
let folder: string
/** The HTML of each page, by its path in the folder. */
let html: Map<string, string>

const read = (path: string) => readFileSync(join(folder, path), 'utf8')
const pages = [readHome(), ...readSections().flatMap((section) => section.pages)]

beforeAll(async () => {
  ;[folder, stage] = await Promise.all([currentSite(), setCallerStage()])
  html = new Map(globSync('**/*.html', { cwd: folder }).map((path) => [path, read(path)]))
})

afterAll(() => stage?.close())

const ask = (path: string, headers?: Record<string, string>, method?: string) =>
  request(stage.service.url + path, headers, method)

/** Sends the path unchanged: `fetch` would resolve its dots. */
const statusOf = (path: string) =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(stage.service.url)
    httpRequest({ hostname, port, path }, (response) => resolve(response.resume().statusCode))
      .on('error', reject)
      .end()
  })

test('every link leads to an existing file and heading of the site', () => {
  expect([...html.keys()].sort()).toEqual(
    ['404.html', ...pages.map(({ path }) => path.replace(/md$/, 'html'))].sort(),
  )
  const broken: string[] = []
  let count = 0
  for (const [page, text] of html)
    for (const [, name, target] of text.matchAll(/ (href|src)="([^"]*)"/g)) {
      if (/^(?:https?:|data:)/.test(target!) || target === '/docs/api/') continue
      count++
      const { pathname, hash } = new URL(target!, `http://site/docs/${page}`)
      const file = pathname.replace('/docs/', '').replace(/^$|(?<=\/)$/, 'index.html')
      const anchor = decodeURIComponent(hash.slice(1))
      const leads =
        existsSync(join(folder, file)) &&
        (name === 'src' || !anchor || html.get(file)?.includes(` id="${anchor}"`))
      if (!pathname.startsWith('/docs/') || !leads) broken.push(`${page}: ${target}`)
    }
  expect(count).toBeGreaterThan(1_000)
  expect([...new Set(broken)]).toEqual([])
})

test('every page of docs/ is in the navigation once, and in llms.txt with its summary', () => {
  const sources = pages.map(({ source }) => source)
  expect(sources.filter((source) => source.startsWith('docs/')).sort()).toEqual(
    globSync('docs/**/*.md', { cwd: root }).sort(),
  )
  expect(new Set(sources).size).toBe(sources.length)
  const navigation = /<nav[^>]*id="VPSidebarNav"[\s\S]*?<\/nav>/.exec(html.get('index.html')!)![0]
  for (const { path, title, summary } of pages.slice(1)) {
    const address = `/docs/${path.replace(/(?:index)?\.md$/, '')}`
    expect(navigation, path).toMatch(new RegExp(` href="${address}(?:\\.html)?"`))
    expect(summary, path).not.toBe('')
    expect(read('llms.txt')).toContain(`- [${title}](/docs/${path}): ${summary}\n`)
  }
})

test('the name of a file that the site does not have is not made a link', () => {
  const guide = html.get('guides/webhooks.html')!
  expect(read('guides/webhooks.md')).not.toMatch(/\]\((?:\.\.\/){2}/)
  expect(guide).toContain('packages/partner/src/client/webhooks.ts')
})

test('no page has an inline script', () => {
  const inline = [...html].filter(([, text]) => /<script(?![^>]* src=)/.test(text))
  expect(inline.map(([page]) => page)).toEqual([])
  for (const text of html.values()) expect(text).toMatch(/<script src="\/docs\/assets\/first\.\w+\.js">/)
})

test('an address without its file ending leads to the page; for an unknown address, only people get a page', async () => {
  for (const [path, page] of [
    ['versions', 'versions.html'],
    ['guides/webhooks/', 'guides/webhooks.html'],
    ['spec', 'spec/'],
  ]) {
    const { status, headers } = await fetch(`${stage.service.url}/docs/${path}`, { redirect: 'manual' })
    expect([status, headers.get('location')]).toEqual([302, `/docs/${page}`])
  }
  const shown = await ask('/docs/nowhere', { accept: 'text/html,*/*;q=0.8' })
  expect([shown.status, shown.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  const refused = await ask('/docs/nowhere', { accept: '*/*' })
  expect([refused.status, refused.body.error.code]).toEqual([404, 'ERR-NOT-FOUND'])
})

test('every file is sent with its media type', async () => {
  const types: Record<string, string> = {
    '.html': 'text/html; charset=utf-8',
    '.md': 'text/markdown; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.json': 'application/json',
    '.svg': 'image/svg+xml',
    '.png': 'image/png',
    '.txt': 'text/plain; charset=utf-8',
  }
  const files = globSync('**/*.*', { cwd: folder })
  expect(files.length).toBeGreaterThan(100)
  for (const file of files) {
    const { status, headers } = await ask(`/docs/${file}`, {}, 'HEAD')
    expect([file, status, headers.get('content-type')]).toEqual([file, 200, types[posix.extname(file)]])
    const isNamedByContent = file.startsWith('assets/')
    expect(headers.get('cache-control')).toBe(
      isNamedByContent ? 'public, max-age=31536000, immutable' : 'no-cache',
    )
  }
})

test('the root address of the service, and the addresses that programs try, lead to the documentation', async () => {
  for (const [path, status, location] of [
    ['/', 302, '/docs/'],
    ['/docs', 308, '/docs/'],
  ] as const) {
    const answer = await fetch(stage.service.url + path, { redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([status, location])
  }
  expect((await ask('/docs/')).body).toBe(html.get('index.html'))
  expect((await ask('/docs/spec/')).body).toBe(html.get('spec/index.html'))
  const { headers, body } = await ask('/llms.txt')
  expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(body).toMatch(/^# Grandlivre\n\n> .+\n\n[^\n]+\n\n## /)
  const named = [...body.matchAll(/\]\(([^)]+)\)/g)].map(([, path]) => path!)
  expect(named.length).toBe(pages.length - 1)
  for (const path of named) expect((await ask(path)).body, path).toMatch(/^# /m)
})

test('no path leads out of the folder of the site', async () => {
  for (const path of [
    '/docs/../package.json',
    '/docs/..%2f..%2fpackage.json',
    '/docs/%2e%2e/%2e%2e/package.json',
    '/docs/assets/../../../package.json',
    '/docs/..\\..\\package.json',
    '/docs//etc/passwd',
    '/docs/guides',
    '/docs/nothing.html',
    '/docs/index.html%00',
    '/docs/index.html/x.html',
    '/docs/.vitepress/config.ts',
  ])
    expect([path, await statusOf(path)]).toEqual([path, 404])
})

test('other methods get 405 with Allow', async () => {
  for (const path of ['/', '/docs', '/docs/', '/docs/errors.html', '/llms.txt'])
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const { status, headers } = await ask(path, {}, method)
      expect([path, status, headers.get('allow')]).toEqual([path, 405, 'GET, HEAD'])
    }
})

test('an installation without the site names the command that builds it, and serves the site from then on', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'grandlivre-no-site-'))
  const app = new OpenAPIHono<Edge>()
  app.onError((error, c) => c.text(error.message, 404))
  addSite(app, pathToFileURL(`${empty}/site/`))
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    for (const path of ['/docs/', '/docs/errors.html', '/llms.txt'])
      expect((await request(url + path)).body).toMatch(/npm run docs -- site.*\/docs\/api\//)
    cpSync(folder, join(empty, 'site'), { recursive: true })
    const errors = join(empty, 'site/errors.html')
    expect((await request(`${url}/docs/errors.html`)).body).toBe(html.get('errors.html'))
    // A page that was built again is served at once.
    writeFileSync(errors, '<title>Other</title>')
    utimesSync(errors, 0, 0)
    expect((await request(`${url}/docs/errors.html`)).body).toBe('<title>Other</title>')
  } finally {
    server.close()
    rmSync(empty, { recursive: true })
  }
})

test('a folder that holds other files is left alone, and wrong options are named', async () => {
  const other = mkdtempSync(join(tmpdir(), 'grandlivre-no-site-'))
  writeFileSync(join(other, 'letter.txt'), 'Dear Sir')
  try {
    for (const [options, message] of [
      [['--out', other], `--out ${other} holds something else`],
      [['--base', 'books'], '--base books is not a path with a slash at both ends'],
      [['--bsae', '/books/'], "'--bsae'"],
    ] as const)
      await expect(runBuild(...options)).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining(message),
      })
    expect(readFileSync(join(other, 'letter.txt'), 'utf8')).toBe('Dear Sir')
  } finally {
    rmSync(other, { recursive: true })
  }
})

test('an installation without development dependencies says why it cannot build the site, and succeeds', async () => {
  const other = mkdtempSync(join(tmpdir(), 'grandlivre-no-site-'))
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }
  const install = () => promisify(execFile)('sh', ['-c', scripts.postinstall], { cwd: other, env })
  try {
    // As in the stage of the image that has only package.json.
    expect(await install()).toEqual({ stdout: '', stderr: '' })
    cpSync(join(root, 'docs/site'), join(other, 'docs/site'), { recursive: true })
    writeFileSync(join(other, 'package.json'), '{"type":"module"}')
    expect((await install()).stderr).toMatch(
      /^The documentation .* VitePress is a development dependency, .*\n$/,
    )
  } finally {
    rmSync(other, { recursive: true })
  }
})
