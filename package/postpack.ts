/** After `npm pack`: the checkout has its own `package.json` and `README.md` again. */
import { resolve } from 'node:path'
import { restore } from './in-place.ts'

restore(resolve(import.meta.dirname, '..'))
