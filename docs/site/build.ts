/**
 * Makes the site of the documentation, a folder that the service serves at `/docs/` and that any web server can serve:
 * `npm run docs -- site`, with `--out <folder> --base /books/` elsewhere and below another path. `npm ci` runs it at its end.
 *
 * VitePress makes the pages. Afterwards their inline scripts become a file, so that the policy of the pages needs neither
 * hashes nor exceptions for scripts (`script-src 'self'`), and beside each page stands its Markdown, which `llms.txt`
 * lists for programs (llmstxt.org).
 */
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { withSiteLinks } from './links.ts'
import { type Page, readHome, readSections, root } from './pages.ts'

/** Where the service looks for it (src/http/reference/site.ts). */
export const ownFolder = join(root, 'site')
const ownBase = '/docs/'

/**
 * Replaces what the folder had, if that was a site.
 * @param base the path below which it will be served, with a slash at both ends
 */
export async function buildSite(out: string, base: string): Promise<void> {
  if (!/^\/(?:[\w.~-]+\/)*$/.test(base))
    throw new Error(`--base ${base} is not a path with a slash at both ends, such as /docs/`)
  if (existsSync(out) && readdirSync(out).length > 0 && !existsSync(join(out, 'vp-icons.css')))
    throw new Error(`--out ${out} holds something else: name a folder that is empty or not there`)
  const { build } = await import('vitepress')
  const draft = `${out}.new-${process.pid}`
  const former = `${out}.old-${process.pid}`
  try {
    await build(join(root, 'docs'), {
      outDir: draft,
      base,
      // Another build may run at the same time.
      onAfterConfigResolve: (config) => {
        config.tempDir += `-${process.pid}`
        // Only a service has the reference of the API.
        const { themeConfig } = config.site
        if (base !== ownBase)
          themeConfig.nav = themeConfig.nav.filter(({ text }: { text: string }) => text !== 'API')
      },
    })
    for (const page of globSync('**/*.html', { cwd: draft })) takeScriptsOut(draft, page, base)
    copyFileSync(join(root, 'src/http/reference/page/icon.svg'), join(draft, 'favicon.svg'))
    writeMarkdown(draft, base)
    // A service that runs is without its pages for a moment only.
    if (existsSync(out)) renameSync(out, former)
    renameSync(draft, out)
  } finally {
    for (const left of [draft, former]) rmSync(left, { recursive: true, force: true })
  }
}

/** Of all pages they are the same: dark or light, which keys a Mac has. The file runs before the page is drawn, as they did. */
function takeScriptsOut(folder: string, page: string, base: string): void {
  const html = readFileSync(join(folder, page), 'utf8')
  const inline = /<script(?: id="[\w-]+")?>([\s\S]*?)<\/script>\s*/g
  const script = [...html.matchAll(inline)].map(([, text]) => text).join('\n')
  const name = `assets/first.${createHash('sha256').update(script).digest('hex').slice(0, 8)}.js`
  writeFileSync(join(folder, name), script)
  const outside = html
    .replaceAll(inline, '')
    .replace('</title>', `</title>\n    <script src="${base}${name}"></script>`)
  writeFileSync(join(folder, page), outside)
}

function writeMarkdown(folder: string, base: string): void {
  const sections = readSections()
  const pages = [readHome(), ...sections.flatMap((section) => section.pages)]
  for (const { source, path } of pages) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    // Programs that read Markdown get what a picture shows in words.
    const links = { prefix: base, ofImage: (_: string, alternative: string) => `*${alternative}*` }
    const text = readFileSync(join(root, source), 'utf8')
    writeFileSync(join(folder, path), withSiteLinks(text, source, pages, links))
  }
  const line = ({ title, path, summary }: Page) => `- [${title}](${base}${path}): ${summary}`
  const index = [
    `# Grandlivre`,
    `> ${readHome().summary}`,
    `The document of the API, OpenAPI 3.1, is at /api/v1/openapi.json of a running service.`,
    ...sections.map((section) => `## ${section.title}\n\n${section.pages.map(line).join('\n')}`),
  ]
  writeFileSync(join(folder, 'llms.txt'), `${index.join('\n\n')}\n`)
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { out: { type: 'string', default: ownFolder }, base: { type: 'string', default: ownBase } },
  })
  const began = performance.now()
  await buildSite(resolve(values.out), values.base)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  process.stdout.write(
    `The documentation is in ${values.out}, made in ${seconds} s; ${resolve(values.out) === ownFolder ? 'the service shows it at' : 'let your web server show it at'} ${values.base}.\n`,
  )
}

if (import.meta.main)
  await main().catch((error) => {
    const lacksVitePress = error.code === 'ERR_MODULE_NOT_FOUND' && /'vitepress'/.test(error.message)
    const why = lacksVitePress
      ? 'VitePress is a development dependency, which `npm ci --omit=dev` leaves out.'
      : error.message
    process.stderr.write(`The documentation at /docs/ was not made: ${why}\n`)
    process.exitCode = 1
  })
