import { readFileSync } from 'node:fs'

/** Of the package, whose own name leads to its manifest from `src` and from `dist`. */
export const { version }: { version: string } = JSON.parse(
  readFileSync(new URL(import.meta.resolve('grandlivre/package.json')), 'utf8'),
)
