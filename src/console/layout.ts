/** The document around every page: header, navigation, main. It loads nothing from other hosts. */
import { html, raw } from 'hono/html'
import { form } from './elements.ts'
import type { Html, Page } from './page.ts'

interface LayoutParts {
  title: string
  main: Html
  /** Who is signed in. Absent on the sign-in page, and on pages shown to someone who is not signed in. */
  signedIn?: {
    /** Name of the key that they signed in with. */
    name: string
    csrf: string
    /** All pages of the console. Those with `navigation` have links in the header. */
    pages: readonly Page[]
    /** Path of the page, to mark its link in the header. */
    path: string
  }
  /** Whether the page is kept up to date. */
  isLive?: boolean
  /** The browser asks for the page again after this many seconds. */
  againSeconds?: number | undefined
}

export function layout({ title, main, signedIn, isLive = false, againSeconds }: LayoutParts): Html {
  return html`${raw('<!doctype html>')}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${againSeconds === undefined ? '' : html`<meta http-equiv="refresh" content="${againSeconds}">`}
<title>${title} - Grandlivre</title>
<link rel="icon" href="/console/assets/icon.svg">
<link rel="stylesheet" href="/console/assets/console.css">
${isLive ? html`<script src="/console/assets/console.js" defer></script>` : ''}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<p class="name">Grandlivre</p>
${signedIn ? navigation(signedIn) : ''}
</header>
<main id="main" tabindex="-1">${main}</main>
<p class="lost" id="lost" role="status" aria-live="polite"></p>
</body>
</html>`
}

function navigation(signedIn: NonNullable<LayoutParts['signedIn']>): Html {
  const { path } = signedIn
  const links = signedIn.pages
    .filter((page) => page.navigation !== undefined)
    .map((page) => {
      const isHere = page.path === '' ? path === '' : path === page.path || path.startsWith(`${page.path}/`)
      return html`<li><a href="/console${page.path}"${isHere ? raw(' aria-current="page"') : ''}>${page.navigation}</a></li>`
    })
  const signOut = html`<button class="quiet">Sign out ${signedIn.name}</button>`
  return html`<nav aria-label="Pages"><ul>${links}</ul></nav>${form(signedIn, '/sign-out', signOut)}`
}
