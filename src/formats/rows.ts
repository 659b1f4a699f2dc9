/** Identifies a folder; the first two columns of every table here. */
export interface FolderKey {
  schemaId: string
  folderId: string
}

/** First and last day, both inclusive, `YYYY-MM-DD`. */
export interface Period {
  start: string
  end: string
}
