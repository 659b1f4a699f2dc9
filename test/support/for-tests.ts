/** Opens what the tests of a file or a `describe` share, or what each of them has for itself. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'

const endings = ['close', 'drop', 'stop', 'end'] as const

/** Has at least one of the methods of `endings`; the first one closes it. */
type Closable = {
  [ending in (typeof endings)[number]]: Record<ending, () => unknown>
}[(typeof endings)[number]]

/**
 * Opens something before the first test, after everything that is opened above, and closes it after the last test, before
 * everything that is opened above.
 * @returns stands for what `open` gives, from the first test on
 */
export function forTests<Opened extends Closable>(open: () => Promise<Opened> | Opened): Opened {
  return openedBy(open, beforeAll, afterAll)
}

/** Like `forTests`, but opened for each test. */
export function forEachTest<Opened extends Closable>(open: () => Promise<Opened> | Opened): Opened {
  return openedBy(open, beforeEach, afterEach)
}

function openedBy<Opened extends Closable>(
  open: () => Promise<Opened> | Opened,
  before: typeof beforeAll | typeof beforeEach,
  after: typeof afterAll | typeof afterEach,
): Opened {
  let opened: Opened | undefined
  before(async () => {
    opened = await open()
  })
  after(async () => {
    // `opened` is undefined if opening failed.
    const ending = endings.find((name) => opened && name in opened)
    if (ending) await (opened as Record<typeof ending, () => unknown>)[ending]()
    opened = undefined
  })
  return new Proxy({} as Opened, {
    get: (_, name) => {
      const value = Reflect.get(opened!, name)
      return typeof value === 'function' ? value.bind(opened) : value
    },
    set: (_, name, value) => Reflect.set(opened!, name, value),
    ownKeys: () => Reflect.ownKeys(opened!),
    getOwnPropertyDescriptor: (_, name) => ({
      value: Reflect.get(opened!, name),
      enumerable: true,
      configurable: true,
    }),
  })
}
