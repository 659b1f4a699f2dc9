/** How VitePress builds the site. What it leaves to us after that: build.ts. */
import { globSync } from 'node:fs'
import { relative } from 'node:path'
import type { DefaultTheme, UserConfig } from 'vitepress'
import { withSiteLinks } from './links.ts'
import { anchorOf, type Page, readHome, readSections, root } from './pages.ts'

const sections = readSections()
const pages = [readHome(), ...sections.flatMap((section) => section.pages)]

const linkTo = ({ path }: Page) => `/${path.replace(/(?:index)?\.md$/, '')}`
const startOf = (title: string) => linkTo(sections.find((section) => section.title === title)!.pages[0]!)

const isPage = new Set(pages.map(({ source }) => source))
/** Every other Markdown file of the checkout, which would become a page. */
const others = globSync('**/*.md', {
  cwd: root,
  exclude: (path) => /(?:^|\/)(?:node_modules|dist|\..*)$/.test(String(path)),
})

/** They have a word of everything in a few sections: a search would find them first, whatever it asks for. */
const wordyPages = ['CHANGELOG.md', 'src/README.md']

/** The headings, and what is above the second without its tables. */
function outlineOf(markdown: string): string {
  const [introduction = '', ...sections] = markdown.split(/^(?=##)/m)
  return [introduction.replaceAll(/^\|.*$/gm, ''), ...sections.map((text) => text.split('\n', 1)[0])].join(
    '\n\n',
  )
}

/**
 * What is added to titles, which hits show: guides and specification have pages of the same title, and readers have other
 * words for a changelog.
 */
function additionTo(source: string): string {
  if (source === 'CHANGELOG.md') return ' (release notes: what changed in each version)'
  return source.startsWith('docs/spec/') ? ' (specification)' : ''
}

function searchedOf(markdown: string, source: string): string {
  const searched = wordyPages.includes(source) ? outlineOf(markdown) : markdown
  return searched.replace(/^# (.+)$/m, (_, title) => `# ${title}${additionTo(source)} {#${anchorOf(title)}}`)
}

const siteLinks = {
  name: 'links-on-the-site',
  enforce: 'pre' as const,
  transform(markdown: string, id: string) {
    const source = relative(root, id)
    if (!isPage.has(source)) return undefined
    return withSiteLinks(markdown, source, pages, { prefix: '/', ofImage: (image) => image })
  },
}

export const config: UserConfig<DefaultTheme.Config> = {
  title: 'Grandlivre',
  description: 'Whole ledgers, what changes in them, and proof that a copy is right',
  lang: 'en',
  base: '/docs/',
  srcDir: '..',
  srcExclude: ['site*/**', ...others.filter((path) => !isPage.has(path))],
  rewrites: Object.fromEntries(pages.map(({ source, path }) => [source, path])),
  // Addresses end in .html, so that any web server finds the files.
  cleanUrls: false,
  ignoreDeadLinks: 'localhostLinks',
  metaChunk: true,
  // A page loads what it shows, not also the pages that it links to.
  router: { prefetchLinks: false },
  markdown: { anchor: { slugify: anchorOf } },
  vite: { plugins: [siteLinks], logLevel: 'warn', build: { chunkSizeWarningLimit: 2_000 } },
  transformHead: ({ siteData }) => [
    ['link', { rel: 'icon', href: `${siteData.base}favicon.svg` }],
    ['meta', { name: 'color-scheme', content: 'light dark' }],
    // An operation of the reference of the API, which was here up to version 0.2: `/docs#/Ledger/get-mad-movements`.
    [
      'script',
      {},
      `if (location.hash.startsWith('#/')) location.replace('${siteData.base}api/' + location.hash)`,
    ],
  ],
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        _render: (markdown, env, md) => md.render(searchedOf(markdown, env.relativePath), env),
      },
    },
    outline: [2, 3],
    nav: [
      { text: 'Partners', link: startOf('For partners') },
      { text: 'Operators', link: startOf('For operators') },
      { text: 'Specification', link: startOf('Specification') },
      // Not a page of the site: without the target its router would look for one.
      { text: 'API', link: '/api/', target: '_self' },
    ],
    sidebar: sections.map(({ title, pages }) => ({
      text: title,
      collapsed: true,
      items: pages.map((page) => ({ text: page.title.replaceAll('`', ''), link: linkTo(page) })),
    })),
  },
}
