/** What `npm start` shows on a terminal once the service runs: where it is, and what to paste next. */
import { relative } from 'node:path'
import type { Credentials } from '../http/reference/demo-credentials.ts'

/** @param credentialsFile its path; shown from `folder` if it is in there */
export function welcome(credentials: Credentials, credentialsFile: string, folder: string): string {
  const { baseUrl, exercices } = credentials
  const { id, start } = exercices.at(-1)!
  const year = start.endsWith('-01-01') ? start.slice(0, 4) : id
  const fromHere = relative(folder, credentialsFile)
  const file = fromHere.startsWith('..') ? credentialsFile : fromHere
  return `
Grandlivre runs at ${baseUrl}, with a made-up ledger. In another terminal, in this folder:

  npx grandlivre login --from ${file.includes(' ') ? `'${file}'` : file}
  npx grandlivre pull --exercice ${year} --out ${year}.ndjson
  npx grandlivre listen http://localhost:3000/hook

Routes to read and try:  ${baseUrl}/docs
Tokens and the secret:   ${file}
Ctrl-C stops the service and its database.

`
}
