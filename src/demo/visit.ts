/**
 * The partner of the demo as a process of its own, started by run.ts: it has the credentials file and the network, and
 * takes none of the time of the service's threads. Arguments: the file, the number of movements, the folder for files.
 */
import { readFileSync } from 'node:fs'
import type { Credentials } from '../sample/demo-folder.ts'
import { tour } from './tour.ts'

const [credentialsFile, movements, out] = process.argv.slice(2) as [string, string, string]
const credentials = JSON.parse(readFileSync(credentialsFile, 'utf8')) as Credentials

// Whoever reads this may have seen enough.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

tour({ credentials, movements: Number(movements), out }).catch((error: NodeJS.ErrnoException) => {
  const isFull = error.code === 'ENOSPC'
  const told = isFull ? `The disk of ${out} is full: make room, or choose another --out` : error.message
  process.stderr.write(`${told}\n`)
  process.exitCode = 1
})
