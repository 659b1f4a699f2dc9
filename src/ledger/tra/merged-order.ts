/**
 * One order of all items of several lists that keeps the order of each, as far as they agree. Exports write accounts as
 * CRR, CGN and CAE records, each ascending by id, and an account may be in several: ids given in the merged order come
 * out in the order of the file.
 */
export function mergedOrder<Item>(lists: readonly (readonly Item[])[]): Item[] {
  const waiting = lists.map((list) => ({ list, at: 0 }))
  /** In how many lists each item is. */
  const uses = new Map<Item, number>()
  for (const list of lists) for (const item of list) uses.set(item, (uses.get(item) ?? 0) + 1)
  const order: Item[] = []
  const done = new Set<Item>()
  const take = (item: Item) => {
    order.push(item)
    done.add(item)
  }
  for (;;) {
    let isStuck = true
    for (const each of waiting)
      for (; each.at < each.list.length; each.at++) {
        const item = each.list[each.at]!
        if (!done.has(item)) {
          const isNextEverywhere =
            waiting.filter(({ list, at }) => list[at] === item).length === uses.get(item)
          if (!isNextEverywhere) break
          take(item)
        }
        isStuck = false
      }
    const blocked = waiting.find(({ list, at }) => at < list.length)
    if (blocked === undefined) return order
    // The lists disagree.
    if (isStuck) take(blocked.list[blocked.at]!)
  }
}
