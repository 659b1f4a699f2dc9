/** How the slots of a process are shared, without a process. */
import { expect, test } from 'vitest'
import { type Candidate, Slots } from '../../../src/webhooks/dispatch/slots.ts'

const count = 256

/** A subscription whose id names its third party. */
function candidate(thirdPartyId: string, number: number, isSlow = false): Candidate {
  const subscriptionId = `${thirdPartyId}${isSlow ? '-slow' : ''}-${number}`
  return { subscriptionId, thirdPartyId, schemaId: '100', isSlow }
}

function slotsWith(...waiting: [thirdPartyId: string, subscriptions: number, isSlow?: boolean][]): Slots {
  const slots = new Slots(count)
  for (const each of waiting) crowd(slots, ...each)
  return slots
}

function crowd(slots: Slots, thirdPartyId: string, subscriptions: number, isSlow = false): void {
  for (let number = 0; number < subscriptions; number++) slots.wait(candidate(thirdPartyId, number, isSlow))
}

/** Assigns every slot that may be assigned now. */
function assignAll(slots: Slots): Candidate[] {
  const assigned: Candidate[] = []
  for (let next = slots.assign(); next; next = slots.assign()) assigned.push(next)
  return assigned
}

function heldBy(thirdPartyId: string, assigned: Candidate[]): number {
  return assigned.filter((each) => each.thirdPartyId === thirdPartyId).length
}

test('one greedy third party gets half of the slots not reserved for newcomers, however long it waits', () => {
  const slots = slotsWith(['x', 1_000])
  const assigned = assignAll(slots)
  expect(assigned.length).toBe(112)
  slots.release(assigned[0]!)
  expect(assignAll(slots).length).toBe(1)
  expect(assignAll(slots)).toEqual([])
})

test('two greedy third parties get a third each, whichever comes first', () => {
  const together = assignAll(slotsWith(['x', 1_000], ['y', 1_000]))
  expect([heldBy('x', together), heldBy('y', together)]).toEqual([75, 75])
  const slots = slotsWith(['x', 1_000])
  let held = assignAll(slots)
  crowd(slots, 'y', 1_000)
  held.push(...assignAll(slots))
  // Until the first releases slots, the second gets only half of what it left.
  expect([heldBy('x', held), heldBy('y', held)]).toEqual([112, 56])
  for (let end = 0; end < 200; end++) {
    const ended = held.find(({ thirdPartyId }) => thirdPartyId === 'x')!
    slots.release(ended)
    held = [...held.filter((each) => each !== ended), ...assignAll(slots)]
  }
  expect([heldBy('x', held), heldBy('y', held)]).toEqual([75, 75])
})

test('a newcomer gets a slot at once, even if a dozen greedy third parties came before it', () => {
  const slots = new Slots(count)
  for (let other = 0; other < 12; other++) {
    crowd(slots, `greedy${other}`, 1_000)
    assignAll(slots)
  }
  slots.wait(candidate('new', 0))
  expect(slots.assign()).toEqual(candidate('new', 0))
})

test('failing and slow receivers of a third party leave room for its healthy ones', () => {
  const slots = slotsWith(['x', 1_000, true])
  expect(assignAll(slots).length).toBe(75)
  crowd(slots, 'x', 1_000)
  const healthy = assignAll(slots)
  expect(healthy.length).toBe(37)
  expect(healthy.every(({ isSlow }) => !isSlow)).toBe(true)
})

test('a slot that becomes free goes to the third party that holds the fewest', () => {
  const slots = slotsWith(['x', 1_000], ['y', 1_000])
  const assigned = assignAll(slots)
  for (const each of assigned.filter(({ thirdPartyId }) => thirdPartyId === 'y').slice(0, 10))
    slots.release(each)
  for (const each of assigned.filter(({ thirdPartyId }) => thirdPartyId === 'x').slice(0, 4))
    slots.release(each)
  // x holds 71 and y 65: y catches up, then they take turns.
  expect(
    heldBy(
      'y',
      Array.from({ length: 6 }, () => slots.assign()!),
    ),
  ).toBe(6)
  expect(heldBy('x', assignAll(slots))).toBe(4)
})

test('the subscriptions of a third party take turns', () => {
  const slots = slotsWith(['x', 1_000])
  const turns = assignAll(slots)
  const running = [...turns]
  while (turns.length < 3_000) {
    const ended = running.shift()!
    slots.release(ended)
    slots.wait(ended)
    const next = slots.assign()!
    turns.push(next)
    running.push(next)
  }
  for (let round = 0; round < 3; round++)
    expect(new Set(turns.slice(round * 1_000, (round + 1) * 1_000)).size).toBe(1_000)
})

test('a subscription that is queued again keeps its place in the queue', () => {
  const slots = slotsWith(['x', 200])
  const [first] = assignAll(slots)
  slots.wait(candidate('x', 112))
  slots.release(first!)
  expect(slots.assign()).toEqual(candidate('x', 112))
})

test('while slots are free, a subscription yields only to its own third party, even if others hold fewer', () => {
  const slots = slotsWith(['x', 112])
  const [mine] = assignAll(slots)
  crowd(slots, 'y', 1_000)
  assignAll(slots)
  expect(slots.mustYield(mine!)).toBe(false)
  slots.wait(candidate('x', 112))
  expect(slots.mustYield(mine!)).toBe(true)
})

test('when no slot is left, every subscription yields to a third party that holds none', () => {
  const slots = new Slots(count)
  for (let other = 0; other < count; other++) slots.wait(candidate(`x${other}`, 0))
  const [mine] = assignAll(slots)
  expect(slots.mustYield(mine!)).toBe(false)
  slots.wait(candidate('new', 0))
  expect(slots.mustYield(mine!)).toBe(true)
  slots.release(mine!)
  slots.wait(mine!)
  expect(slots.assign()).toEqual(candidate('new', 0))
})

test('a healthy subscription yields to slow ones only if one of them may take its slot', () => {
  const crowded = slotsWith(['x', 1_000, true], ['x', 1])
  const assigned = assignAll(crowded)
  expect(crowded.mustYield(assigned.find(({ isSlow }) => !isSlow)!)).toBe(false)
  expect(crowded.mustYield(assigned.find(({ isSlow }) => isSlow)!)).toBe(true)
  const full = slotsWith(['x', 112])
  const [healthy] = assignAll(full)
  full.wait(candidate('x', 0, true))
  expect(full.mustYield(healthy!)).toBe(true)
})

test('slow subscriptions do not count as waiting', () => {
  const slots = slotsWith(['x', 50], ['x', 100, true], ['y', 49])
  expect(slots.withWaiting(50)).toEqual(new Set(['x']))
})
