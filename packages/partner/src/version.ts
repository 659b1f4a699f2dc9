import { readFileSync } from 'node:fs'

/**
 * Version of the package, from its manifest. The package imports itself by name, which works from `src` and from
 * `dist`.
 */
export const { version }: { version: string } = JSON.parse(
  readFileSync(new URL(import.meta.resolve('grandlivre/package.json')), 'utf8'),
)
