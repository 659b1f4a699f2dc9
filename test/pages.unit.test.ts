/** The pages: generated from the code where possible, and every link in or to them resolves. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
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

/** Without fenced blocks, in which `#` begins a comment. */
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

test('the errors page matches the table of errors (npm run docs:errors)', () => {
  expect(read('docs/errors.md')).toBe(errorsPage())
})

test.each(pagesWithResults)('%s shows the results of the bench (npm run docs:bench)', (page) => {
  expect(read(page)).toMatch(/<!-- bench:\w+ -->\n.+/)
  expect(read(page)).toBe(withResults(read(page)))
})

test.each(blocks)('the README has the commands of a newcomer: %s (npm run bench:newcomer)', (name) => {
  expect(commandsOf(read('README.md'), name).text).not.toBe('')
})

test('links between pages resolve to existing files and headings', () => {
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

test('citations of the documents in the code resolve', () => {
  const files = ['src', 'packages', 'test', 'bench', 'examples'].flatMap((folder) =>
    filesIn(folder, /\.(ts|sql)$/),
  )
  const citations = files.flatMap((file) =>
    [...read(file).matchAll(/\bdocs\/[\w/-]+\.md(?:#[\w-]+)?/g)].map(([address]) => ({ file, address })),
  )
  expect(citations).not.toEqual([])
  expect(citations.filter(({ address }) => !exists(address))).toEqual([])
})

test('the map lists every file of src and of the packages, and nothing else', () => {
  const rows = read('src/README.md').matchAll(/^\| (`.*?) \|/gm)
  // Names after the first of a row are in its folder.
  const listed = [...rows].flatMap(([, cell]) => {
    const [first = '', ...others] = [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)
    const folder = first.slice(0, first.replace(/\/$/, '').lastIndexOf('/') + 1)
    return [first, ...others.map((name) => (name.startsWith(folder) ? name : folder + name))]
  })
  const asPattern = (name: string) =>
    new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}${name.endsWith('/') ? '' : '$'}`)
  const patterns = listed.map((name) => ({ name, pattern: asPattern(name) }))
  // SQL is beside its user, and is not listed.
  const all = [
    ...filesIn('src', /\.\w+$/).map((path) => relative('src', path)),
    ...filesIn('packages', /\.\w+$/).filter((path) => /^packages\/\w+\/src\//.test(path)),
  ]
  const files = all.filter((path) => /\.(ts|sql)$/.test(path) && !path.endsWith('.sql.ts'))
  expect(files.filter((path) => !patterns.some(({ pattern }) => pattern.test(path)))).toEqual([])
  expect(
    patterns.filter(({ pattern }) => !all.some((path) => pattern.test(path))).map(({ name }) => name),
  ).toEqual([])
})
