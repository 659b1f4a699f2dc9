/**
 * A process that uses the embedded database of the folder in its first argument: prints the addresses as JSON when
 * it is up, and leaves when its standard input ends. Ctrl-C does not end it.
 */
import { startEmbeddedDatabase } from '../../../src/db/embedded/embedded.ts'

const dataDir = process.argv[2]
if (dataDir === undefined) throw new Error('Name the folder')
process.on('SIGINT', () => {})
const database = await startEmbeddedDatabase({ dataDir, durable: false })
console.log(JSON.stringify({ ownerUrl: database.ownerUrl, serviceUrl: database.serviceUrl }))
process.stdin.on('end', () => void database.stop())
process.stdin.resume()
