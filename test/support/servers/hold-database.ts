/**
 * A process that uses the embedded database of the folder in its first argument: it prints the addresses as
 * JSON once it is up, and releases the database when its standard input ends. Ctrl-C does not end it.
 */
import { startEmbeddedDatabase } from '../../../src/db/embedded/embedded.ts'

const dataDir = process.argv[2]
if (dataDir === undefined) throw new Error('Name the folder')
process.on('SIGINT', () => {})
const database = await startEmbeddedDatabase({ dataDir, durable: false })
console.log(JSON.stringify({ ownerUrl: database.ownerUrl, serviceUrl: database.serviceUrl }))
process.stdin.on('end', () => void database.stop())
process.stdin.resume()
