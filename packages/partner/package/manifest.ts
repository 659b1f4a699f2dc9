/** The manifest that npm packs, made of the workspace's, whose paths lead to TypeScript. */

export interface WorkspaceManifest {
  exports: Readonly<Record<string, string>>
  bin: Readonly<Record<string, string>>
  scripts?: unknown
}

/** Partners run compiled files, and none of the scripts. */
export function packedManifest({ scripts: _, ...manifest }: WorkspaceManifest): Record<string, unknown> {
  const map = <T>(paths: Readonly<Record<string, string>>, change: (path: string) => T) =>
    Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, change(path)]))
  return { ...manifest, exports: map(manifest.exports, target), bin: map(manifest.bin, compiled) }
}

function target(path: string): string | { types: string; default: string } {
  if (!path.endsWith('.ts')) return path
  return { types: compiled(path).replace(/\.js$/, '.d.ts'), default: compiled(path) }
}

/** `./src/client/webhooks.ts` to `./dist/partner/src/client/webhooks.js` */
function compiled(path: string): string {
  const [, file] = path.match(/^(?:\.\/)?(src\/.*)\.ts$/) ?? []
  if (file === undefined)
    throw new Error(`package.json: "${path}" in exports or bin is not a TypeScript file of src`)
  return `./dist/partner/${file}.js`
}
