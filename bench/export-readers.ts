/**
 * Reads exports continuously, several at once, until its standard input ends: load for concurrent
 * measurements. URL, HEADERS (JSON), COUNT, and the BODY of a POST come from the environment; the first line of output says that
 * all have started.
 */
import { drain } from './drain.ts'

const { URL: url = '', HEADERS: headers = '{}', COUNT: count = '1', BODY: body } = process.env
let reading = 0

process.stdin.once('end', () => process.exit()).resume()
for (let reader = 0; reader < Number(count); reader++) void readOn()

async function readOn(): Promise<never> {
  let isFirst = true
  for (;;) {
    const onFirstByte = () => {
      if (isFirst && ++reading === Number(count)) process.stdout.write('reading\n')
      isFirst = false
    }
    await drain(url, JSON.parse(headers), onFirstByte, body)
  }
}
