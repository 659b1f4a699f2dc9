/** One session of bash, which keeps variables, functions and programs in the background from block to block. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../until.ts'

export interface Shell {
  /**
   * Runs the commands. What they print goes on growing while one of them runs in the background.
   * @returns what they have printed so far
   * @throws {Error} with what they printed, if one of them fails
   */
  run(commands: string): Promise<() => string>
  /** Ends it, and every program that it has started. */
  close(): Promise<void>
}

/** @param folder where it works; it must be empty */
export function startShell(folder: string, env: NodeJS.ProcessEnv): Shell {
  // A group of its own, so that programs in the background can be ended with it.
  const bash = spawn('bash', ['--noprofile', '--norc', '-e'], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const closed = once(bash, 'close')
  bash.stdin.on('error', () => {})
  let done = ''
  bash.stdout.on('data', (chunk) => {
    done += chunk
  })
  let blocks = 0
  return {
    async run(commands) {
      blocks += 1
      const [script, out, errors] = ['sh', 'out', 'errors'].map((ending) =>
        join(folder, `.block-${blocks}.${ending}`),
      ) as [string, string, string]
      writeFileSync(script, `${commands}\n`)
      const end = `done ${blocks}\n`
      bash.stdin.write(`source ${script} </dev/null >${out} 2>${errors}; echo ${end}`)
      await until(() => done.endsWith(end) || bash.exitCode !== null)
      const read = () => readFileSync(out, 'utf8')
      if (!done.endsWith(end))
        throw new Error(`A command failed.\n${commands}\n---\n${read()}${readFileSync(errors, 'utf8')}`)
      return read
    },
    async close() {
      try {
        process.kill(-bash.pid!, 'SIGKILL')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
      await closed
    },
  }
}
