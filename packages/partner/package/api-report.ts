/**
 * The report of the package's API: every declaration that programs of partners can reach, in one file whose diff shows what
 * a change means for them. `npm run docs -- package` writes it; `-- --released` also notes that it is the API of the version
 * in package.json, against which the next changes are held.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const workspace = resolve(import.meta.dirname, '..')

/** Where `.ci/run` installs it. */
export const apiExtractor = resolve(
  workspace,
  '../../.cache/runtimes/node_modules/@microsoft/api-extractor/bin/api-extractor',
)

export const files = {
  report: join(import.meta.dirname, 'grandlivre.api.md'),
  released: join(import.meta.dirname, 'released-api.json'),
}

/** The API of the last release: the hash of each declaration by its name. */
export interface ReleasedApi {
  version: string
  /** Empty where there was no package yet. */
  declarations: Record<string, string>
}

interface Manifest {
  version: string
  exports: Record<string, string>
}

export const readManifest = async (): Promise<Manifest> =>
  JSON.parse(await readFile(join(workspace, 'package.json'), 'utf8'))

/** Compiles the package and reports its API: the names that each entry point exports, and each declaration once. */
export async function apiReport(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-api-'))
  try {
    await run('tsc', ['--project', workspace, '--outDir', folder])
    const { exports } = await readManifest()
    const entries = Object.entries(exports).filter(([, path]) => path.endsWith('.ts'))
    const lines = entries.map(([name, path]) => {
      const compiled = path.replace(/^\.\/(.*)\.ts$/, './partner/$1.js')
      return `export * as ${name === '.' ? 'grandlivre' : name.slice('./'.length)} from '${compiled}'\n`
    })
    await writeFile(join(folder, 'entry.d.ts'), lines.join(''))
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'grandlivre', type: 'module' }))
    await writeFile(join(folder, 'extractor.json'), JSON.stringify(settings))
    const words = [apiExtractor, 'run', '--local', '--config', join(folder, 'extractor.json')]
    await run(process.execPath, words, { cwd: folder })
    const report = await readFile(join(folder, 'grandlivre.api.md'), 'utf8')
    // A new comment changes nothing for a program.
    return report.replaceAll(/^ *\/\/ \(undocumented\)\n/gm, '').replaceAll(' (undocumented)', '')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The report would have the lines of files, which change with each comment. */
const silent = { logLevel: 'none', addToApiReportFile: false }

const settings = {
  projectFolder: '.',
  mainEntryPointFilePath: '<projectFolder>/entry.d.ts',
  newlineKind: 'lf',
  compiler: {
    overrideTsconfig: {
      compilerOptions: {
        module: 'nodenext',
        target: 'es2022',
        lib: ['es2023', 'dom', 'dom.iterable'],
        types: [],
      },
      files: ['entry.d.ts'],
    },
  },
  apiReport: {
    enabled: true,
    // Types that a signature mentions without being exported are reached, too.
    includeForgottenExports: true,
    reportFileName: 'grandlivre',
    reportFolder: '<projectFolder>',
    reportTempFolder: '<projectFolder>/temp',
  },
  docModel: { enabled: false },
  dtsRollup: { enabled: false },
  tsdocMetadata: { enabled: false },
  messages: {
    extractorMessageReporting: { default: silent, 'ae-forgotten-export': silent },
    tsdocMessageReporting: { default: silent },
  },
}

/** Made of the routes of the service, whose own document tells what changes in them. */
const ofRoutes = ['Routes', 'queryValues']

/** @returns the hash of each declaration of a report by its public name; of overloads, of all together */
export function declarationsIn(report: string): Record<string, string> {
  const texts = new Map<string, string>()
  const exportedAs = new Map(
    [...report.matchAll(/^ +(\w+) as (\w+),?$/gm)].map(([, own, name]) => [own, name]),
  )
  for (const [text, name] of report.matchAll(
    /^(?:export )?(?:declare )?(?:abstract )?(?:class|const|enum|function|interface|namespace|type) (\w+)[\s\S]*?(?=\n\n|\n```)/gm,
  )) {
    // Two files may each have one of the same name, and the second has a number in the report.
    const plain = exportedAs.get(name) ?? name!.replace(/_\d+$/, '')
    if (!ofRoutes.includes(plain)) texts.set(plain, `${texts.get(plain) ?? ''}${text}\n`)
  }
  return Object.fromEntries(
    [...texts].map(([name, text]) => [name, createHash('sha256').update(text).digest('hex').slice(0, 16)]),
  )
}

/**
 * @param unreleased section of the changelog
 * @returns what changed since the release and is not named there in backticks; of a package that is new, its entry points
 */
export function unnamedChanges(
  { declarations }: ReleasedApi,
  { report, entryPoints, unreleased }: { report: string; entryPoints: string[]; unreleased: string },
): string[] {
  const present = declarationsIn(report)
  const isNew = Object.keys(declarations).length === 0
  const names = [...new Set([...Object.keys(declarations), ...Object.keys(present)])]
  const changed = isNew ? entryPoints : names.filter((name) => declarations[name] !== present[name])
  return changed.filter((name) => !new RegExp(`\`${name}\\b[^\`/]*\``).test(unreleased))
}

if (import.meta.main && !existsSync(apiExtractor)) {
  console.error('.cache/runtimes lacks API Extractor: run .ci/run install.')
  process.exitCode = 1
} else if (import.meta.main) {
  const report = await apiReport()
  await writeFile(files.report, report)
  if (process.argv.includes('--released')) {
    const { version } = await readManifest()
    const released: ReleasedApi = { version, declarations: declarationsIn(report) }
    await writeFile(files.released, `${JSON.stringify(released, null, 2)}\n`)
  }
}
