/** Software bills of materials: what something runs with, as CycloneDX documents by npm. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Sbom {
  bomFormat: string
  metadata: { component: { name: string; purl: string; licenses: { license: { id: string } }[] } }
  components: { purl: string }[]
}

/** Of an archive that npm has packed. */
export function sbomOfPackage(archive: string): Promise<Sbom> {
  return inFolder(async (folder) => {
    await run('tar', ['-xzf', archive, '--strip-components=1', '-C', folder])
    return npmSbom(folder, 'library')
  })
}

/** Of the service, from its lock. */
export function sbomOfService(checkout: string): Promise<Sbom> {
  return inFolder(async (folder) => {
    const [manifest, lock] = await Promise.all(
      ['package.json', 'package-lock.json'].map(async (name) =>
        JSON.parse(await readFile(join(checkout, name), 'utf8')),
      ),
    )
    // What only development needs. npm's own --omit=dev also leaves out packages that vitest may use: @opentelemetry/api.
    for (const root of [manifest, lock.packages['']]) delete root.devDependencies
    for (const [path, { dev }] of Object.entries<{ dev?: boolean }>(lock.packages))
      if (dev) delete lock.packages[path]
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
    await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lock))
    return npmSbom(folder, 'application', '--package-lock-only')
  })
}

async function npmSbom(folder: string, type: string, ...options: string[]): Promise<Sbom> {
  const words = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', type, ...options]
  return JSON.parse((await run('npm', words, { cwd: folder, maxBuffer: 2 ** 26 })).stdout)
}

/** Named as the component, since npm takes the name of the folder. */
async function inFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const parent = await mkdtemp(join(tmpdir(), 'grandlivre-sbom-'))
  try {
    await mkdir(join(parent, 'grandlivre'))
    return await use(join(parent, 'grandlivre'))
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
}
