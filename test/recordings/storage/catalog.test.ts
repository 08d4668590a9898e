/** Places in which recordings are searched. */
import { mkdirSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { sessionDirectory } from '../../../recordings/container/keys.ts'
import { findRecording } from '../../../recordings/storage/catalog.ts'
import { makeRoot, removeRoots } from '../support.ts'

afterAll(removeRoots)

/** The id for 2016-07-30T23:54:10.259Z. */
const SESSION = '01ARYZ6S41TSV4RRFFQ69G5FAV'
const MADE = Date.parse('2016-07-30T23:54:10.259Z')
const DAY = 86_400_000

test('a recording is looked for on the day in its id first, and then everywhere', async () => {
  const root = makeRoot()
  const made = [-400, 1, 0].map((days) => sessionDirectory(root, SESSION, MADE + days * DAY))
  expect(await findRecording(root, SESSION)).toBeUndefined()
  mkdirSync(made[1]!, { recursive: true })
  expect(await findRecording(root, SESSION)).toMatchObject({ directory: made[1], state: 'empty' })
  mkdirSync(made[0]!, { recursive: true })
  mkdirSync(made[2]!, { recursive: true })
  expect(await findRecording(root, SESSION)).toMatchObject({ directory: made[2] })
})

test.each(['8ZZZZZZZZZZZZZZZZZZZZZZZZZ', '7ZZZZZZZZZZZZZZZZZZZZZZZZZ', '../../etc', ''])(
  'what no session has as its id is not there: %j',
  async (session) => {
    const root = makeRoot()
    mkdirSync(sessionDirectory(root, SESSION, MADE), { recursive: true })
    expect(await findRecording(root, session)).toBeUndefined()
  },
)
