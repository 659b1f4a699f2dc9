/** Real ledgers beside the project, if there are any: they are not part of it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../../../../shared/data/fec')

export const haveRealLedgers = existsSync(folder)
if (!haveRealLedgers)
  console.warn(
    'Skipped, because ../shared/data/fec does not exist: parsing, importing and exporting two real ledgers',
  )

/** Totals in minor units. */
export const realLedgers = [
  { file: join(folder, '0000000001FEC20220831.txt'), lines: 5422, total: 1_018_621_981n, lettered: 2035 },
  { file: join(folder, '000000000FEC20231231.txt'), lines: 2102, total: 126_535_082n, lettered: 371 },
] as const
