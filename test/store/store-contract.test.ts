import { expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { describeOnS3 } from '../support/servers/s3-servers.ts'
import { openFolderStage, openS3Stage } from '../support/stages/store-stage.ts'
import { describeStore } from '../support/store-contract.ts'

describeStore('a folder', () => openFolderStage())

describeOnS3((server) => describeStore('a bucket', async () => openS3Stage(server())))

const stage = forTests(openFolderStage)

test('a folder shared by many writers is created again each time the last of them removes it', async () => {
  const { store, leftovers } = stage
  const writing = Array.from({ length: 8 }, async (_, writer) => {
    for (let round = 0; round < 400; round++)
      await (await store.create(`4000/place/${writer}-${round}.json`, 'application/json')).abort()
  })
  await Promise.all(writing)
  expect(await leftovers()).toEqual([])
})

test('an object completed while its folder is being cleared is removed too', async () => {
  const { store, leftovers } = stage
  const outcomes = new Set<string>()
  for (let round = 0; round < 100; round++) {
    const writers = await Promise.all(
      [0, 1, 2, 3].map((writer) => store.create(`5000/place/${writer}-${round}.json`, 'application/json')),
    )
    const completing = Promise.allSettled(writers.map((writer) => writer.complete({ bytes: 0 })))
    await store.clear('5000/place', () => true)
    for (const { status } of await completing) outcomes.add(status)
    expect(await leftovers()).toEqual([])
  }
  // Fails if the two never raced.
  expect([...outcomes].sort()).toEqual(['fulfilled', 'rejected'])
})
