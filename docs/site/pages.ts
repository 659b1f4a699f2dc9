/**
 * The pages of the site, by reader: what the navigation, the index for programs (`llms.txt`) and the addresses are made
 * of. A section names the pages that come first; a folder stands for all others in it, so a new page is in the
 * navigation as soon as its file is there.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, resolve } from 'node:path'

export const root = resolve(import.meta.dirname, '../..')

export interface Page {
  /** From the root of the checkout: `docs/guides/webhooks.md`. */
  source: string
  /** On the site, below its base: `guides/webhooks.md`. */
  path: string
  /** Its first heading. */
  title: string
  /** The first sentence below it, and its sections. */
  summary: string
}

export interface Section {
  title: string
  pages: Page[]
}

const home = 'docs/index.md'

const contents: { title: string; sources: string[] }[] = [
  {
    title: 'For partners',
    sources: [
      'docs/partners.md',
      'docs/questions.md',
      'docs/guides/first-call.md',
      'docs/guides/year-every-night.md',
      'docs/guides/whole-firm.md',
      'docs/guides/sql.md',
      'docs/guides/staying-in-step.md',
      'docs/guides/webhooks.md',
      'docs/guides/when-it-fails.md',
      'docs/guides/',
    ],
  },
  {
    title: 'For operators',
    sources: [
      'docs/operators.md',
      'docs/operators/deploy.md',
      'docs/operators/scaling.md',
      'docs/operators/cluster.md',
      'docs/operators/metrics.md',
      'docs/operators/console.md',
      'docs/operators/',
      'SECURITY.md',
    ],
  },
  {
    title: 'Specification',
    sources: [
      'docs/spec/README.md',
      'docs/spec/interface.md',
      'docs/spec/resources.md',
      'docs/spec/exports.md',
      'docs/spec/changes.md',
      'docs/spec/ledgers.md',
      'docs/spec/webhooks.md',
      'docs/spec/',
    ],
  },
  { title: 'Reference', sources: ['docs/errors.md', 'docs/commands.md', 'docs/', 'CHANGELOG.md'] },
  {
    title: 'For developers',
    sources: ['README.md', 'CONTRIBUTING.md', 'src/README.md', 'bench/README.md', 'fixtures/README.md'],
  },
]

/** Where a page is on the site, unless that is its path in `docs/`. */
const paths: Readonly<Record<string, string>> = {
  'docs/spec/README.md': 'spec/index.md',
  'src/README.md': 'developers/map.md',
  'bench/README.md': 'developers/benches.md',
  'fixtures/README.md': 'developers/fixtures.md',
  'README.md': 'developers/readme.md',
  'CONTRIBUTING.md': 'developers/contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'operators/security.md',
}

/** Every page but the first one, which stands above all sections. */
export function readSections(): Section[] {
  const named = new Set([home, ...contents.flatMap(({ sources }) => sources)])
  return contents.map(({ title, sources }) => ({
    title,
    pages: sources
      .flatMap((source) => (source.endsWith('/') ? othersIn(source, named) : [source]))
      .map(readPage),
  }))
}

/** The page above all sections. */
export const readHome = (): Page => readPage(home)

function othersIn(folder: string, named: ReadonlySet<string>): string[] {
  const files = readdirSync(join(root, folder)).filter((name) => name.endsWith('.md'))
  return files
    .map((name) => folder + name)
    .filter((source) => !named.has(source))
    .sort()
}

function readPage(source: string): Page {
  const text = readFileSync(join(root, source), 'utf8').replaceAll(/<!--[\s\S]*?-->/g, '')
  const [, title, rest = ''] = /^# (.+)\n([\s\S]*)/m.exec(text) ?? []
  if (title === undefined) throw new Error(`${source} has no heading: a page begins with "# "`)
  return {
    source,
    path: paths[source] ?? posix.relative('docs', source),
    title,
    summary: summaryOf(rest),
  }
}

/** Without lists, tables, code and links. */
function summaryOf(markdown: string): string {
  const prose = markdown.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
  const headings = [...prose.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
  const paragraphs = prose.split(/\n{2,}/).filter((text) => /^\s*[\p{L}*`[]/u.test(text))
  const paragraph = paragraphs.find((text) => text.length > 60) ?? paragraphs[0] ?? ''
  const plain = paragraph
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim()
  const sentence = /^.{20,}?\.(?= |$)/.exec(plain)?.[0] ?? plain.replace(/:$/, '.')
  return headings.length === 0 ? sentence : `${sentence} Sections: ${headings.join(', ')}.`
}

/** The anchor of a heading, as GitHub makes it, so that links work in a checkout and on the site. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}
