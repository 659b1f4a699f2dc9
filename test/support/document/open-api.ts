/** Checks values by the schemas of the API's document, as a client would. */

import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

/**
 * @param document the OpenAPI document
 * @returns what is wrong with a value by the schema at a JSON pointer; undefined if it fits
 */
export function schemaCheck(document: object): (pointer: string, value: unknown) => string | undefined {
  // `example` and `discriminator` are words of OpenAPI alone.
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'document')
  return (pointer, value) => {
    const validate = ajv.getSchema(`document#${pointer.split('/').map(encodeURIComponent).join('/')}`)
    if (!validate) throw new Error(`The document has no schema at ${pointer}`)
    return validate(value) ? undefined : ajv.errorsText(validate.errors)
  }
}

/** One step of a JSON pointer. */
export const step = (key: string | number) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** Each object and array of the document, with its JSON pointer. */
export function* nodesOf(node: unknown, pointer = ''): Generator<[pointer: string, node: object]> {
  if (typeof node !== 'object' || node === null) return
  yield [pointer, node]
  for (const [key, inner] of Object.entries(node)) yield* nodesOf(inner, pointer + step(key))
}
