/** The wheel of the package for Python, built and installed in an empty environment, and the checks of its code. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { firmAccess, runProgram } from '../support/guides/run-program.ts'
import { isInstalled, packagesOf } from '../support/guides/tools.ts'
import { setExportStage } from '../support/stages/export-stage.ts'
import { pythonPackage } from './session.ts'

const nobody = { baseUrl: '', companyToken: '', thirdPartySecret: '' }
const packages = packagesOf('package')

describe.skipIf(!isInstalled.package)('the package for Python', () => {
  const stage = forTests(setExportStage)
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-wheel-'))
  })

  afterAll(async () => {
    if (folder) await rm(folder, { recursive: true })
  })

  /** With the pinned packages beside the standard library. */
  async function run(...words: [string, ...string[]]): Promise<string> {
    const env = { PYTHONPATH: packages, HOME: folder, PYTHONDONTWRITEBYTECODE: '1' }
    const { code, out, error } = await runProgram(words, nobody, { env, cwd: pythonPackage })
    expect({ words, code, out, error }).toMatchObject({ code: 0 })
    return out
  }

  test('works from its wheel as its README says, with types', async () => {
    const built = [
      '-m',
      'pip',
      'wheel',
      '--quiet',
      '--no-deps',
      '--no-index',
      '--no-build-isolation',
      '--wheel-dir',
    ]
    await run('python3', ...built, folder, pythonPackage)
    const [wheel] = (await readdir(folder)).filter((name) => name.endsWith('.whl'))
    expect(wheel).toBe('grandlivre-0.3.0-py3-none-any.whl')
    const environment = join(folder, 'environment')
    await run('python3', '-m', 'venv', environment)
    const python = join(environment, 'bin/python3')
    // Its one dependency is among the packages beside it.
    await run(python, '-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps', join(folder, wheel!))
    expect(await run(python, '-c', 'import grandlivre; print(grandlivre.__file__)')).toContain(environment)

    const readme = await readFile(join(pythonPackage, 'README.md'), 'utf8')
    const [, program] = /```python\n(.*?)```/s.exec(readme)!
    expect(program!.trim().split('\n').length).toBeLessThanOrEqual(10)
    const env = { PYTHONPATH: packages }
    const used = await runProgram([python, '-c', program!], firmAccess(stage), { env, cwd: folder })
    expect(used).toEqual({
      code: 0,
      out: expect.stringMatching(/^2 folders, \d{2,} movements\n$/),
      error: '',
    })

    const typed =
      'import grandlivre\nfor change in grandlivre.Firm("http://x", "t", "s").changes():\n    reveal_type(change.known)\n'
    await writeFile(join(folder, 'typed.py'), typed)
    const checked = [
      '-m',
      'mypy',
      '--strict',
      '--config-file=',
      '--ignore-missing-imports',
      '--python-executable',
      python,
    ]
    expect(await run('python3', ...checked, join(folder, 'typed.py'))).toMatch(
      /TypedDict\('?grandlivre\.\w+\.Known/,
    )
  })

  test('passes mypy and ruff', async () => {
    const cache = join(folder, 'mypy')
    await run('python3', '-m', 'mypy', '--cache-dir', cache)
    await run('python3', '-m', 'ruff', 'check', '--no-cache')
  })
})
