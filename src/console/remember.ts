/** Adds to a map that forgets its oldest entry beyond `most`. */
export function remember<Value>(map: Map<string, Value>, name: string, value: Value, most: number): void {
  map.set(name, value)
  const [oldest] = map.keys()
  if (map.size > most) map.delete(oldest!)
}
