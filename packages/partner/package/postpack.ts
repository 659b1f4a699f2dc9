/** After `npm pack`: its folder has its own `package.json` and `README.md` again. */
import { restore } from './in-place.ts'

restore(process.cwd())
