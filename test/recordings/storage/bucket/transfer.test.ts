import { expect, test } from 'vitest'
import { bucketError, isOfTheStore } from '../../../../recordings/storage/bucket/error.ts'
import { objectKeys, segmentKey } from '../../../../recordings/storage/bucket/keys.ts'
import { Rate } from '../../../../recordings/storage/bucket/rate.ts'
import { PART_LENGTH, partLength } from '../../../../recordings/storage/bucket/transfer.ts'

const GIBIBYTE = 2 ** 30

test.each([0, 1, PART_LENGTH, 77 * GIBIBYTE, 100 * GIBIBYTE, 1024 * GIBIBYTE])(
  'a file of %d bytes has at most 10 000 parts of 5 MiB at least',
  (size) => {
    const length = partLength(size)
    expect(length).toBeGreaterThanOrEqual(5 * 2 ** 20)
    expect(Math.ceil(size / length)).toBeLessThanOrEqual(10_000)
  },
)

test('a rate lets the first go at once, and each next one when what was before it is through', async () => {
  let now = 1000
  const slept: number[] = []
  const rate = new Rate(
    1000,
    () => now,
    async (ms) => void slept.push(ms),
  )
  await rate.take(500)
  await rate.take(500)
  await rate.take(1)
  expect(slept).toEqual([500, 1000])
  now = 10_000
  await rate.take(1_000_000)
  expect(slept).toHaveLength(2)
  const unlimited = new Rate(
    0,
    () => now,
    async (ms) => void slept.push(ms),
  )
  await unlimited.take(1e12)
  await unlimited.take(1)
  expect(slept).toHaveLength(2)
})

test('objects lie in the folders of the disk, segments in the order of the file; no id leads elsewhere', () => {
  const keys = objectKeys('a/b/', '01JD0000000000000000000001', Date.UTC(2026, 0, 2))
  expect(keys).toEqual({
    folder: 'a/b/2026/01/02/01JD0000000000000000000001/',
    recording: 'a/b/2026/01/02/01JD0000000000000000000001/session.rec',
    keyFile: 'a/b/2026/01/02/01JD0000000000000000000001/key.age',
    segments: 'a/b/2026/01/02/01JD0000000000000000000001/segments/',
  })
  const offsets = [0, 9, 10, 8_388_608, 123_456_789_012_345]
  const segments = offsets.map((offset) => segmentKey('s/', offset))
  expect([...segments].sort()).toEqual(segments)
  expect(() => objectKeys('', '../../x', 0)).toThrow('expected a session id')
})

test.each([
  [{ name: 'TimeoutError', message: 'socket' }, 'unavailable'],
  [{ name: 'Error', message: '', code: 'ECONNREFUSED' }, 'unavailable'],
  [{ name: 'SlowDown', $metadata: { httpStatusCode: 503 } }, 'unavailable'],
  [{ name: 'TooManyRequests', $metadata: { httpStatusCode: 429 } }, 'unavailable'],
  [{ name: 'AccessDenied', $metadata: { httpStatusCode: 403 } }, 'refused'],
  [{ name: 'NoSuchBucket', $metadata: { httpStatusCode: 404 } }, 'refused'],
  [{ name: 'NoSuchUpload', $metadata: { httpStatusCode: 404 } }, 'missing'],
  [{ name: 'BadDigest', $metadata: { httpStatusCode: 400 } }, 'content'],
  [{ name: 'EntityTooLarge', $metadata: { httpStatusCode: 400 } }, 'failed'],
])('%o is %s', (thrown, fault) => {
  const error = bucketError(Object.assign(new Error('x'), thrown), 'put a/b')
  expect(error.fault).toBe(fault)
  expect(error.message).toMatch(/^put a\/b: /)
  expect(isOfTheStore(error)).toBe(fault === 'unavailable' || fault === 'refused')
})

test('what a store says is cut before it goes anywhere', () => {
  const error = bucketError(new Error('x'.repeat(1_000_000)), 'put a/b')
  expect(error.message.length).toBeLessThanOrEqual(300)
})
