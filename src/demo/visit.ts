/**
 * The partner of the demo as a process of its own, started by run.ts: it has the credentials file and the network, and
 * takes none of the time of the service's threads. Arguments: the file, the number of movements, the folder for files.
 */
import { readFileSync } from 'node:fs'
import type { Credentials } from '../demo-folder.ts'
import { tour } from './tour.ts'

const [credentialsFile, movements, out] = process.argv.slice(2) as [string, string, string]
const credentials = JSON.parse(readFileSync(credentialsFile, 'utf8')) as Credentials

tour({ credentials, movements: Number(movements), out }).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
