/** The manifest that npm packs, made of the workspace's, whose paths lead to TypeScript. */

export interface WorkspaceManifest {
  exports: Readonly<Record<string, string>>
  bin: Readonly<Record<string, string>>
  repository: Readonly<{ url: string }>
  scripts?: unknown
}

/** Below `dist/`: what `require` loads. */
export const commonJs = 'commonjs'

/** Partners run compiled files, and none of the scripts. */
export function packedManifest({ scripts: _, ...manifest }: WorkspaceManifest): Record<string, unknown> {
  const map = <T>(paths: Readonly<Record<string, string>>, change: (path: string) => T) =>
    Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, change(path)]))
  const page = manifest.repository.url.replace(/^git\+(.*)\.git$/, '$1')
  const { '.': main, ...others } = manifest.exports
  const libraries = Object.entries(others).filter(([, path]) => path.endsWith('.ts'))
  return {
    ...manifest,
    homepage: `${page}#readme`,
    bugs: `${page}/issues`,
    exports: map(manifest.exports, target),
    bin: map(manifest.bin, (path) => filesOf(path).default),
    // For compilers that read no exports: by default TypeScript 5 does not where it writes CommonJS.
    main: filesOf(main!, commonJs).default,
    typesVersions: {
      '*': Object.fromEntries(
        libraries.map(([name, path]) => [name.slice('./'.length), [filesOf(path, commonJs).types]]),
      ),
    },
  }
}

/**
 * ES modules, and for `require` the same as CommonJS: before Node 20.19 and 22.12 `require` loads no ES modules, and
 * before TypeScript 5.8 compilers refuse it.
 */
function target(path: string): string | Record<string, unknown> {
  return path.endsWith('.ts') ? { require: filesOf(path, commonJs), ...filesOf(path) } : path
}

/** `./src/client/webhooks.ts` to `./dist/partner/src/client/webhooks.js` and its types. */
function filesOf(path: string, folder?: string): { types: string; default: string } {
  const [, file] = path.match(/^(?:\.\/)?(src\/.*)\.ts$/) ?? []
  if (file === undefined)
    throw new Error(`package.json: "${path}" in exports or bin is not a TypeScript file of src`)
  const base = `./dist/${folder === undefined ? '' : `${folder}/`}partner/${file}`
  return { types: `${base}.d.ts`, default: `${base}.js` }
}
