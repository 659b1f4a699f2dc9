import { line } from '../../acts/fields.ts'

/** @throws {Error} if the text is no line of an act: a name or a reason */
export function checkLine(option: string, text: string): void {
  const { error } = line.safeParse(text)
  if (error) throw new Error(`${option} ${error.issues[0]!.message}`)
}
