/** Makes an entry the newest of a map. If the map then has more than `most` entries, the oldest is removed. */
export function remember<Value>(map: Map<string, Value>, name: string, value: Value, most: number): void {
  map.delete(name)
  map.set(name, value)
  const [oldest] = map.keys()
  if (map.size > most) map.delete(oldest!)
}
