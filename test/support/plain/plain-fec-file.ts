/**
 * The FEC of an exercice as text, from ordinary queries of the owner: an export must match it byte for byte. Slow, and
 * shares nothing with the code it checks.
 */
import iconv from 'iconv-lite'
import type pg from 'pg'

type Row = Record<string, string | null> & {
  entry_filed: Record<string, string> | null
  line_filed: Record<string, string> | null
}

const standard =
  'JournalCode JournalLib EcritureNum EcritureDate CompteNum CompteLib CompAuxNum CompAuxLib PieceRef PieceDate ' +
  'EcritureLib Debit Credit EcritureLet DateLet ValidDate Montantdevise Idevise'

export async function plainFecFile(
  owner: pg.ClientBase | pg.Pool,
  { schemaId, folderId }: { schemaId: string; folderId: string },
  exerciceId: string,
  { encoding = 'iso-8859-15', columns }: { encoding?: 'iso-8859-15' | 'utf-8'; columns?: 'extended' } = {},
): Promise<Buffer> {
  const { rows } = await owner.query<Row>(
    `select m.filed as line_filed, e.filed as entry_filed, e.number, e.journal_id, e.id as entry_id, j.code,
       coalesce(j.filed_name, j.name) as journal, to_char(e.date, 'YYYYMMDD') as date,
       to_char(e.validated_at, 'YYYYMMDD') as validated, m.debit, m.credit, m.lettering_code,
       coalesce(a.filed_number, a.number) as number_of_account, coalesce(a.filed_name, a.name) as account,
       a.auxiliary_number, a.auxiliary_name, m.invoice_number, m.description
     from grandlivre.movements m
     join grandlivre.entries e on (e.schema_id, e.folder_id, e.id) = (m.schema_id, m.folder_id, m.entry_id)
     join grandlivre.exercices x on (x.schema_id, x.folder_id, x.id) = (e.schema_id, e.folder_id, e.exercice_id)
     join grandlivre.journals j on (j.schema_id, j.folder_id, j.id) = (e.schema_id, e.folder_id, e.journal_id)
     join grandlivre.accounts a on (a.schema_id, a.folder_id, a.id) = (m.schema_id, m.folder_id, m.account_id)
     where m.schema_id = $1 and m.folder_id = $2 and m.exercice_id = $3 and e.validated_at is not null
       and (j.type <> 'OD_EXC' or e.source = 'FEC')
     order by case when x.filed_columns is null then 0 else coalesce(m.place, m.id) end,
       j.type = 'AN' or j.type = 'RBAL' desc, e.validated_at, e.id, m.id`,
    [schemaId, folderId, exerciceId],
  )
  const exercice = await owner.query<{ filed_columns: string[] | null }>(
    'select filed_columns from grandlivre.exercices where schema_id = $1 and folder_id = $2 and id = $3',
    [schemaId, folderId, exerciceId],
  )
  const further = columns === 'extended' ? (exercice.rows[0]!.filed_columns ?? []) : []
  const names = [...standard.split(' '), ...further]
  const lines = rows.map((row) => {
    const fields = [row.line_filed, row.entry_filed, derived(row)]
    return names.map(
      (name) => fields.find((each) => each && Object.hasOwn(each, name) && each[name] !== null)?.[name] ?? '',
    )
  })
  const write = encoding === 'utf-8' ? oneLine : latin9
  const text = [names, ...lines].map((fields) => `${fields.map(write).join('\t')}\r\n`).join('')
  return iconv.encode(text, encoding)
}

function derived(row: Row): Record<string, string | null> {
  return {
    JournalCode: row['code']!,
    JournalLib: row['journal']!,
    EcritureNum: row['number']!,
    EcritureDate: row['date']!,
    CompteNum: row['number_of_account']!,
    CompteLib: row['account']!,
    CompAuxNum: row['auxiliary_number']!,
    CompAuxLib: row['auxiliary_name']!,
    PieceRef: row['invoice_number']!,
    PieceDate: row['date']!,
    EcritureLib: row['description']!,
    Debit: amount(row['debit']!),
    Credit: amount(row['credit']!),
    EcritureLet: row['lettering_code']!,
    ValidDate: row['validated']!,
  }
}

function amount(cents: string): string {
  const sign = cents.startsWith('-') ? '-' : ''
  const digits = cents.replace('-', '').padStart(3, '0')
  return `${sign}${digits.slice(0, -2)},${digits.slice(-2)}`
}

function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim()
}

/** Typographic characters, and what is written for each: the second of a pair. */
const plain = new Map(
  `‘' ’' ‚' ′' ´' “" ”" „" ″" ‹< ›> ‐- ‑- –- —- −- •· ¦| ¼1/4 ½1/2 ¾3/4`
    .split(' ')
    .map((pair) => [pair[0]!, pair.slice(1)] as const),
)

/** What ISO 8859-15 shows of a text. */
export function latin9(text: string): string {
  const fits = (character: string) =>
    iconv.decode(iconv.encode(character, 'iso-8859-15'), 'iso-8859-15') === character
  const shown = Array.from(oneLine(text.normalize('NFC')), (character) => {
    if (fits(character)) return character
    const parts = (plain.get(character) ?? character).normalize('NFKD').replaceAll(/\p{M}/gu, '')
    return Array.from(parts, (part) => (fits(part) ? part : '?')).join('')
  })
  return shown.join('').trim()
}
