import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'

export interface Machine {
  cpu: string
  cores: number
  memoryGb: number
  system: string
  node: string
  postgres: string
}

export function describeMachine(postgres: string): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    postgres,
  }
}

export function machineLine({ cpu, cores, system, node, postgres }: Machine): string {
  return `${cpu}, ${cores} cores, ${system}, Node ${node}, PostgreSQL ${postgres}`
}

/**
 * Stores the results of a run, with the raw numbers of every round.
 * @param file name in results/
 * @returns a line that names the file
 */
export function writeResult(file: string, content: object | string): string {
  const folder = fileURLToPath(new URL('../results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const text = typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`
  writeFileSync(folder + file, text)
  return `Written: bench/results/${file}`
}
