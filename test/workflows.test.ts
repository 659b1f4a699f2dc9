/** The workflow of the repository has nothing that GitHub would refuse, and everything that it must have. */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { longRuns } from './long.ts'

const root = resolve(import.meta.dirname, '..')
const path = join(root, '.github/workflows/ci.yml')
const text = readFileSync(path, 'utf8')
const { permissions, concurrency, jobs } = parse(text) as {
  permissions: unknown
  concurrency: { group: string }
  jobs: Record<'check' | 'long', Job>
}

interface Job {
  'timeout-minutes'?: number
  permissions?: unknown
  strategy: { matrix: { node?: number[]; run?: string[] } }
  steps: { uses?: string; run?: string }[]
}

const linter = join(root, '.cache/bin/actionlint')
if (!existsSync(linter))
  console.warn('No check of the workflow by actionlint: not in .cache/bin, see .ci/run')

test.skipIf(!existsSync(linter))('actionlint finds nothing', () => {
  const { stdout, stderr } = spawnSync(linter, [path], { encoding: 'utf8' })
  expect(stdout + stderr).toBe('')
})

test('the jobs of the workflow have read access only, a time limit, and actions pinned to a commit', () => {
  expect(permissions).toEqual({ contents: 'read' })
  expect(concurrency.group).toContain('github.ref')
  for (const job of Object.values(jobs)) {
    expect(job).not.toHaveProperty('permissions')
    expect(job['timeout-minutes']).toBeGreaterThan(0)
  }
  const used = [...text.matchAll(/uses: (.*)$/gm)].map(([, action]) => action!)
  expect(used.length).toBeGreaterThan(0)
  expect(used.filter((action) => !/^actions\/[\w-]+@[0-9a-f]{40} # v[\d.]+$/.test(action))).toEqual([])
})

test('each change runs .ci/run on Node 22 and 26', () => {
  expect(jobs.check.strategy.matrix.node).toEqual([22, 26])
  expect(jobs.check.steps.at(-1)!.run).toBe('.ci/run')
})

test('each night runs all long tests', () => {
  expect(jobs.long.strategy.matrix.run).toEqual(Object.keys(longRuns).toSorted())
  expect(jobs.long.steps.some(({ run }) => run?.startsWith('.ci/nightly '))).toBe(true)
})

test('a long test run ends before its job is stopped, and its tests exist', () => {
  for (const { node, minutes } of Object.values(longRuns)) {
    expect(minutes).toBeLessThan(jobs.long['timeout-minutes']!)
    for (const path of node.filter((word) => /^(?:test|packages)\//.test(word)))
      expect(globSync(`${path}*`, { cwd: root }), path).not.toEqual([])
  }
})
