/** The links of a page, which are paths in the checkout, as links on the site. */
import { posix } from 'node:path'
import type { Page } from './pages.ts'

const fences = /^( *```[\s\S]*?^ *```$)/m

/**
 * @param markdown of the page `source`
 * @param prefix of addresses on the site
 * @param ofImage what becomes of an image
 * @returns links to pages by their address. A file that is no page is named, since the site does not have it
 */
export function withSiteLinks(
  markdown: string,
  source: string,
  pages: readonly Page[],
  { prefix, ofImage }: { prefix: string; ofImage(image: string, alternative: string): string },
): string {
  const addressOf = (target: string) => {
    const [path = '', anchor] = target.split('#')
    const file = posix.join(posix.dirname(source), path).replace(/\/$/, '')
    const page = pages.find((each) => each.source === file || each.source === `${file}/README.md`)
    return { file, address: page && prefix + page.path + (anchor === undefined ? '' : `#${anchor}`) }
  }
  const linked = (prose: string) =>
    prose.replaceAll(
      /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g,
      (link, image, label: string, target: string) => {
        if (image) return ofImage(link, label)
        if (/^(?:https?:|mailto:|#)/.test(target)) return link
        const { file, address } = addressOf(target)
        if (address) return `[${label}](${address})`
        return label.includes(posix.basename(file)) ? label : `${label} (\`${file}\`)`
      },
    )
  // Odd pieces are fenced blocks.
  return markdown
    .split(fences)
    .map((piece, index) => (index % 2 === 1 ? piece : linked(piece)))
    .join('')
}
