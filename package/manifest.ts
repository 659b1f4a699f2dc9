/** The manifest of the partner's package, made of the checkout's. */

/** What both manifests need of the checkout's `package.json`. Paths lead to TypeScript in `src`. */
export interface CheckoutManifest {
  name: string
  version: string
  license: string
  exports: Readonly<Record<string, string>>
  bin: Readonly<Record<string, string>>
}

/**
 * Leaves out what concerns the service: its dependencies and scripts. `private` goes, too: the checkout must not be
 * published, but the package is made to be given away.
 */
export function packedManifest(checkout: CheckoutManifest): Record<string, unknown> {
  const { name, version, license } = checkout
  return {
    name,
    version,
    description: 'Pulls whole ledgers from Grandlivre, follows their changes, and verifies its webhooks',
    license,
    type: 'module',
    exports: Object.fromEntries(
      Object.entries(checkout.exports).map(([subpath, path]) => [subpath, target(path)]),
    ),
    bin: Object.fromEntries(Object.entries(checkout.bin).map(([command, path]) => [command, compiled(path)])),
    engines: { node: '>=20' },
    // Needed only to copy a ledger into PostgreSQL, and imported only then.
    peerDependencies: { pg: '^8.11.0' },
    peerDependenciesMeta: { pg: { optional: true } },
    // Nobody imports the command line.
    files: ['dist', '!dist/partner/**/*.d.ts', '!dist/grandlivre.d.ts'],
  }
}

function target(path: string): string | { types: string; default: string } {
  if (!path.endsWith('.ts')) return path
  return { types: compiled(path).replace(/\.js$/, '.d.ts'), default: compiled(path) }
}

/** `./src/client/webhooks.ts` to `./dist/client/webhooks.js` */
function compiled(path: string): string {
  const [, file] = path.match(/^(?:\.\/)?src\/(.*)\.ts$/) ?? []
  if (file === undefined)
    throw new Error(`package.json: "${path}" in exports or bin is not a TypeScript file of src`)
  return `./dist/${file}.js`
}
