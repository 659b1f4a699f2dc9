/**
 * Declares the formats of full exports and of streamed responses. Routes, the document of the API, threads, stores and
 * retention use these declarations. `exports/render/file-renderers.ts` has the renderer of each format, and does not
 * compile if a renderer is missing. The database lists the formats in a CHECK of its table of exports; a test compares
 * the two.
 */
export interface FileFormatFacts {
  /** The ending of its files: lower-case letters and digits, without the dot. */
  ending: string
  mediaType: string
  /**
   * The parameters that a trigger may have for this format, in addition to those of every format. A format that takes
   * no selection covers a whole folder.
   */
  takes: readonly FormatParameter[]
  /** A trigger without one of these parameters is refused. */
  requires: readonly FormatParameter[]
}

/** The parameters that select a part of a folder: a fiscal year or a period, and journals. */
const selection = ['idExercice', 'startDate', 'endDate', 'journalIds'] as const

/**
 * Parameters that change the bytes of a file but not what it covers, with their values. The default value is not in the
 * list.
 */
export const formatOptions = { encoding: ['utf-8'], columns: ['extended'] } as const

/** The parameters of a trigger that only some formats take. */
export const formatParameters = [
  ...selection,
  ...(Object.keys(formatOptions) as (keyof typeof formatOptions)[]),
] as const
export type FormatParameter = (typeof formatParameters)[number]

/** The options of a file. An undefined option has the default of its format. */
export type FormatOptions = {
  [Option in keyof typeof formatOptions]?: (typeof formatOptions)[Option][number] | undefined
}

export const fileFormats = {
  JSON: {
    ending: 'json',
    mediaType: 'application/json',
    takes: [],
    requires: [],
  },
  TRA: {
    ending: 'tra',
    mediaType: 'text/plain; charset=windows-1252',
    takes: selection,
    requires: [],
  },
  // A FEC has one of two encodings. The store knows only the file's ending, so the media type names no encoding.
  FEC: {
    ending: 'txt',
    mediaType: 'text/plain',
    takes: ['idExercice', 'encoding', 'columns'],
    requires: ['idExercice'],
  },
  CSV: {
    ending: 'csv',
    mediaType: 'text/csv; charset=utf-8; header=present',
    takes: selection,
    requires: [],
  },
  PARQUET: {
    ending: 'parquet',
    mediaType: 'application/vnd.apache.parquet',
    takes: selection,
    requires: [],
  },
} as const satisfies Record<string, FileFormatFacts>

export type FileFormat = keyof typeof fileFormats
export const fileFormatNames = Object.keys(fileFormats) as FileFormat[]

/** The forms in which routes stream items, each with its media type. */
const streamed = { json: 'application/json', ndjson: 'application/x-ndjson' } as const
export type StreamedForm = keyof typeof streamed
export const streamedForms = Object.keys(streamed) as StreamedForm[]

/** The media type of each form of an answer. Many ledgers together have a form of their own. */
export const mediaTypes = { ...streamed, ledgers: 'application/vnd.grandlivre.ledgers' } as const

/** The ways to compress a file of any format. Each adds a second ending to the name, and has its own media type. */
const compressions = {
  gzip: { ending: 'gz', mediaType: 'application/gzip' },
  zstd: { ending: 'zst', mediaType: 'application/zstd' },
} as const

export type Compression = keyof typeof compressions
export const compressionNames = Object.keys(compressions) as Compression[]

/** The end of a file's name, without the first dot: `json`, `tra.gz`. */
export function endingOf(format: FileFormat, compression: Compression | undefined): string {
  const { ending } = fileFormats[format]
  return compression === undefined ? ending : `${ending}.${compressions[compression].ending}`
}

const fileEndings = fileFormatNames.flatMap((format) =>
  [undefined, ...compressionNames].map((compression) => ({
    ending: endingOf(format, compression),
    mediaType: (compression === undefined ? fileFormats[format] : compressions[compression]).mediaType,
  })),
)

/** A regular expression for the end of a file's name. */
export const endingPattern = `\\.(?:${fileEndings.map(({ ending }) => ending.replace('.', '\\.')).join('|')})`

/** The media type for a file's name, by its ending; undefined if no format has the ending. */
export function mediaTypeOf(fileName: string): string | undefined {
  return fileEndings.find(({ ending }) => fileName.endsWith(`.${ending}`))?.mediaType
}

/**
 * Thrown if the format cannot hold these books. A retry does not help: the books need a change. The message is for the
 * caller.
 */
export class UnsupportedByFormat extends Error {
  override name = 'UnsupportedByFormat'
}

/**
 * The revision of the bytes of each selection; collections declare their own (exports/render/collections.ts). A
 * revision rises whenever the bytes change, so that ETags of older bytes no longer match.
 * `fixtures/format-revisions.json` records the output of each revision for the fixtures; a test fails if bytes changed
 * and their revision did not.
 */
export const formatRevisions = {
  movements: 1,
  entries: 1,
  balance: 1,
} as const

/**
 * Thrown if the process that writes Parquet failed. `retryable` is true if it ended without a message, as when the
 * system was short of memory. Otherwise the message is DuckDB's, and a retry would fail with the same one.
 */
export class ParquetFailure extends Error {
  override name = 'ParquetFailure'
  readonly retryable: boolean

  constructor(message: string, retryable: boolean) {
    super(message)
    this.retryable = retryable
  }
}
