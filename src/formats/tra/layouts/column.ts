/** `a` text, left-aligned; `n` number, right-aligned; `d` day, DDMMYYYY; `b` boolean, `X` or `-`. */
export type TraKind = 'a' | 'n' | 'd' | 'b'

/** A row of the tables: name, first column, length, kind, M if mandatory, source of the value. */
export type Column = readonly [
  name: string,
  at: number,
  length: number,
  kind: TraKind,
  mandatory: 'M' | '-',
  from?: string,
]
