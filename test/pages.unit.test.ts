/** The pages are generated from the code where possible, and every link in or to them resolves. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { blocks, commandsOf } from '../bench/newcomer/commands.ts'
import { pagesWithResults, withResults } from '../docs/bench-tables.ts'
import { errorsPage } from '../docs/errors-page.ts'
import { anchorOf } from '../docs/site/pages.ts'

const root = resolve(import.meta.dirname, '..')

function filesIn(folder: string, endings: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => endings.test(path))
    .map((path) => join(folder, path))
}

const read = (path: string) => readFileSync(join(root, path), 'utf8')

const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...filesIn('docs', /\.md$/),
  ...filesIn('src', /\.md$/),
  ...filesIn('packages', /\.md$/),
  ...filesIn('bench', /\.md$/),
]

/** Drops fenced blocks, in which `#` begins a comment. */
const proseOf = (page: string) => read(page).replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')

/** The anchors of a page's headings. */
function anchorsOf(page: string): string[] {
  const headings = [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!)
  return headings.map(anchorOf)
}

/** @param address path from the root, and a heading after `#` if it names one */
function exists(address: string): boolean {
  const [path = '', anchor] = address.split('#')
  if (!existsSync(join(root, path))) return false
  return anchor === undefined || (path.endsWith('.md') && anchorsOf(path).includes(anchor))
}

test('the errors page matches the table of errors (npm run docs -- errors)', () => {
  expect(read('docs/errors.md')).toBe(errorsPage())
})

test.each(pagesWithResults)('the page %s shows the results of the bench (npm run docs -- bench)', (page) => {
  expect(read(page)).toMatch(/<!-- bench:\w+ -->\n.+/)
  expect(read(page)).toBe(withResults(read(page)))
})

test.each(blocks)('the README has the commands for a newcomer: %s (npm run bench -- newcomer)', (name) => {
  expect(commandsOf(read('README.md'), name).text).not.toBe('')
})

test('links between pages lead to existing files and headings', () => {
  const links = pages.flatMap((page) =>
    [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target]) => target!)
      .filter((target) => !/^https?:/.test(target))
      .map((target) => {
        const [path = '', anchor] = target.split('#')
        const file = path === '' ? page : relative(root, resolve(root, dirname(page), path))
        return { page, target, address: anchor === undefined ? file : `${file}#${anchor}` }
      }),
  )
  expect(links.length).toBeGreaterThan(100)
  expect(links.filter(({ address }) => !exists(address))).toEqual([])
})

test('every reference in the code to a document leads to a document and a section that exist', () => {
  const files = ['src', 'packages', 'test', 'bench', 'examples'].flatMap((folder) =>
    filesIn(folder, /\.(ts|sql)$/),
  )
  const citations = files.flatMap((file) =>
    [...read(file).matchAll(/\bdocs\/[\w/-]+\.md(?:#[\w-]+)?/g)].map(([address]) => ({ file, address })),
  )
  expect(citations).not.toEqual([])
  expect(citations.filter(({ address }) => !exists(address))).toEqual([])
})

test('the map has one row for each room, at most 40, and names only existing things', () => {
  const rows = [...read('src/README.md').matchAll(/^\| (.*?`(.+?)`.*?) \| (.*) \|$/gm)]
  const [, ...map] = rows.slice(0, rows.findIndex(([, , room]) => room === 'packages/contract/src/') + 1)
  const named = map.map(([, , room]) => room!)
  const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const ofService = rooms.map(({ name }) => `${name}/`)
  const ofPackages = globSync('packages/*/src/', { cwd: root }).map((path) => `${path}/`)
  const ofPartners = ['cli', 'sync', 'client'].map((room) => `packages/partner/src/${room}/`)
  expect(named.toSorted()).toEqual([...ofService, ...ofPackages, ...ofPartners].toSorted())
  expect(rows.length).toBeLessThanOrEqual(40)
  const missing = map.flatMap(([, , room, text]) =>
    [...text!.matchAll(/`([\w./-]+(?:\/|\.ts|\.sql))`/g)]
      .map(([, name]) => [room!, name!])
      .filter(
        ([folder, name]) => !['', 'src/'].some((above) => existsSync(join(root, above, folder!, name!))),
      ),
  )
  expect(missing).toEqual([])
})
