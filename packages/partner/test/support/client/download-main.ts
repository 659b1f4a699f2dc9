/** A partner's program that a test kills: exports a folder, and downloads the file. Its argument is `{ access, file }` as JSON. */
import { Grandlivre, type GrandlivreOptions } from '../../../src/client/grandlivre.ts'

const { access, file } = JSON.parse(process.argv[2]!) as { access: GrandlivreOptions; file: string }
const exported = await new Grandlivre(access).fullExport({ format: 'JSON' })
const downloaded = await exported.download(file)
process.stdout.write(JSON.stringify(downloaded))
process.exit()
