/**
 * `npm run long`: lists the long runs, each of which repeats a test with many more cases. `npm run long -- <name>` runs one;
 * variables that are set win over those that it names.
 */
import { spawnSync } from 'node:child_process'

interface LongRun {
  about: string
  /** What it asks of the tests. */
  env: Record<string, string>
  files: string[]
}

const runs: Record<string, LongRun> = {
  failovers: {
    about: 'failovers under load on a cluster of three, of each kind in turn; a minute and a half each',
    env: { FAILOVERS: '8', FAILOVER_RECORD: 'bench/results/failovers.json' },
    files: ['test/cluster/failovers.slow.test.ts'],
  },
  erasures: {
    about: 'kills of folder delete on 600,000 movements beside streams and a follower; some minutes',
    env: { KILLS: '20', ERASED_MOVEMENTS: '600000', ERASURE_RECORD: 'bench/results/erasures.json' },
    files: ['test/erasure/erasure-kills.slow.test.ts'],
  },
  restarts: {
    about: 'restarts behind HAProxy under load, with streams of 200 MB; half a minute each',
    env: { RESTARTS: '6', RESTART_RECORD: 'bench/results/restarts.json' },
    files: ['test/ops/restarts.slow.test.ts'],
  },
  rotations: {
    about: 'kills of rotate-key while two processes export, deliver and write secrets; six seconds each',
    env: { KILLS: '20', ROTATION_RECORD: 'bench/results/key-rotations.json' },
    files: ['test/auth/rotation/rotation-kills.slow.test.ts'],
  },
  upgrades: {
    about: 'the upgrade from 0.2.0 of 300,000 movements under load; four minutes',
    env: { UPGRADE_MOVEMENTS: '300000', UPGRADE_RECORD: 'bench/results/upgrades.json' },
    files: ['test/process/release-upgrade.slow.test.ts'],
  },
}

const [name = '', ...words] = process.argv.slice(2)
const run = runs[name]
if (run) {
  const env = { ...run.env, ...process.env }
  const { status } = spawnSync('npx', ['vitest', 'run', ...run.files, ...words], { stdio: 'inherit', env })
  process.exitCode = status ?? 1
} else {
  for (const [each, { about, env }] of Object.entries(runs)) {
    const asked = Object.entries(env).map(([variable, value]) => `${variable}=${value}`)
    console.log(`npm run long -- ${each}\n  ${about}\n  ${asked.join(' ')}`)
  }
  if (name !== '') {
    console.error(`There is no long run ${name}`)
    process.exitCode = 1
  }
}
