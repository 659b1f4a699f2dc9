/**
 * The formats of full exports, and the forms in which routes stream: everything about them but their bytes. Routes, the
 * document of the API, threads, stores and retention read it here; what reads and renders each stands in
 * `exports/render/file-renderers.ts`, which does not compile while one is missing. The database names them too, in a CHECK of
 * its table of exports, which a test compares.
 */
interface FileFormatFacts {
  /** Of its files, in lower-case letters and digits, without a dot. */
  ending: string
  mediaType: string
  /** What a trigger may ask for: a whole folder, or also a fiscal year, a period, or some journals. */
  takes: 'folder' | 'selection'
  /** The forms in which routes stream it, with their media types. */
  streamed: Readonly<Record<string, string>>
}

export const fileFormats = {
  JSON: {
    ending: 'json',
    mediaType: 'application/json',
    takes: 'folder',
    streamed: { json: 'application/json', ndjson: 'application/x-ndjson' },
  },
  TRA: { ending: 'tra', mediaType: 'text/plain; charset=windows-1252', takes: 'selection', streamed: {} },
} as const satisfies Record<string, FileFormatFacts>

export type FileFormat = keyof typeof fileFormats
export const fileFormatNames = Object.keys(fileFormats) as FileFormat[]

type Streamed = (typeof fileFormats)[FileFormat]['streamed']
/** A form in which items are streamed. */
export type StreamedForm = Streamed extends infer Each ? (Each extends object ? keyof Each : never) : never

/** One whose items are JSON. */
export type JsonForm = keyof (typeof fileFormats)['JSON']['streamed']

export const mediaTypes = Object.assign(
  {},
  ...Object.values(fileFormats).map(({ streamed }) => streamed),
) as Readonly<Record<StreamedForm, string>>
export const streamedForms = Object.keys(mediaTypes) as StreamedForm[]

/** After the ending of a compressed file. None is written yet; one that is there is ours all the same. */
const compressions = ['gz', 'zst']

/** The end of a file's name, as a part of a regular expression. */
export const endingPattern = `\\.(?:${Object.values(fileFormats)
  .map(({ ending }) => ending)
  .join('|')})(?:\\.(?:${compressions.join('|')}))?`

/** By the ending of its name; undefined for none of ours. */
export function mediaTypeOf(fileName: string): string | undefined {
  return Object.values(fileFormats).find(({ ending }) => fileName.endsWith(`.${ending}`))?.mediaType
}
