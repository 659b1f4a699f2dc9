/**
 * The formats of full exports and of streamed responses: everything but their bytes. Routes, the document of the API,
 * threads, stores and retention use these declarations. `exports/render/file-renderers.ts` has the renderer of each
 * format and does not compile if one is missing. The database lists the formats in a CHECK of its table of exports; a
 * test compares the two.
 */
interface FileFormatFacts {
  /** Ending of its files: lower-case letters and digits, without the dot. */
  ending: string
  mediaType: string
  /** What a trigger may select: only a whole folder, or also a fiscal year, a period or some journals. */
  covers: 'folder' | 'selection'
  /** The forms in which routes stream it, with their media types. */
  streamed: Readonly<Record<string, string>>
}

export const fileFormats = {
  JSON: {
    ending: 'json',
    mediaType: 'application/json',
    covers: 'folder',
    streamed: { json: 'application/json', ndjson: 'application/x-ndjson' },
  },
  TRA: { ending: 'tra', mediaType: 'text/plain; charset=windows-1252', covers: 'selection', streamed: {} },
  CSV: {
    ending: 'csv',
    mediaType: 'text/csv; charset=utf-8; header=present',
    covers: 'selection',
    streamed: {},
  },
  PARQUET: {
    ending: 'parquet',
    mediaType: 'application/vnd.apache.parquet',
    covers: 'selection',
    streamed: {},
  },
} as const satisfies Record<string, FileFormatFacts>

export type FileFormat = keyof typeof fileFormats
export const fileFormatNames = Object.keys(fileFormats) as FileFormat[]

type Streamed = (typeof fileFormats)[FileFormat]['streamed']
/** A form in which items are streamed. */
export type StreamedForm = Streamed extends infer Each ? (Each extends object ? keyof Each : never) : never

/** A form whose items are JSON. */
export type JsonForm = keyof (typeof fileFormats)['JSON']['streamed']

export const mediaTypes = Object.assign(
  {},
  ...Object.values(fileFormats).map(({ streamed }) => streamed),
) as Readonly<Record<StreamedForm, string>>
export const streamedForms = Object.keys(mediaTypes) as StreamedForm[]

/**
 * Second endings of compressed files. No compressed file is written yet, but files with these endings belong to the
 * service too.
 */
const compressions = ['gz', 'zst']

/** The end of a file's name, as part of a regular expression. */
export const endingPattern = `\\.(?:${Object.values(fileFormats)
  .map(({ ending }) => ending)
  .join('|')})(?:\\.(?:${compressions.join('|')}))?`

/** Media type by the ending of the name; undefined for a file of no format. */
export function mediaTypeOf(fileName: string): string | undefined {
  return Object.values(fileFormats).find(({ ending }) => fileName.endsWith(`.${ending}`))?.mediaType
}
