/** Large messages are read into memory that serves again, and small ones beside them. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { FreeMemory } from '../../src/contract/free-memory.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage } from '../../src/contract/wire.ts'

const bytesOf = (message: unknown) => Buffer.concat(encodeMessage(message))
const large = (fill: number) => ({ bytes: Buffer.alloc(100_000, fill) })

/** Returns the message with a hash for its bytes: comparing a million of them one by one takes seconds. */
function summary(message: unknown): object {
  const { bytes, ...rest } = message as { bytes?: Uint8Array }
  return bytes ? { ...rest, length: bytes.length, hash: hash('sha256', bytes) } : rest
}

function memoryOf(message: unknown): ArrayBufferLike {
  return (message as { bytes: Uint8Array }).bytes.buffer
}

test('the memory of a released message holds the next one', () => {
  const reader = new MessageReader()
  const [first] = reader.read(bytesOf(large(1)))
  const [second] = reader.read(bytesOf(large(2)))
  expect(memoryOf(second)).not.toBe(memoryOf(first))
  expect(first).toEqual(large(1))
  reader.release(first as object)
  const [third] = reader.read(bytesOf(large(3)))
  expect(memoryOf(third)).toBe(memoryOf(first))
  expect(third).toEqual(large(3))
  expect(second).toEqual(large(2))
})

test('memory that is released twice serves once', () => {
  const reader = new MessageReader()
  const [first] = reader.read(bytesOf(large(1)))
  reader.release(first as object)
  reader.release(first as object)
  const [second] = reader.read(bytesOf(large(2)))
  const [third] = reader.read(bytesOf(large(3)))
  expect(memoryOf(third)).not.toBe(memoryOf(second))
})

test('the bytes of a small message stay when the next ones come', () => {
  const reader = new MessageReader()
  const [first] = reader.read(bytesOf({ bytes: Buffer.alloc(5000, 1) }))
  for (let fill = 2; fill < 40; fill++) reader.read(bytesOf({ bytes: Buffer.alloc(5000, fill) }))
  expect(first).toEqual({ bytes: Buffer.alloc(5000, 1) })
})

test('messages of all lengths come through whole, wherever they are cut', () => {
  const lengths = [0, 1, 32_700, 32_768, 32_800, 65_500, 65_536, 65_600, 131_072, 1_000_000]
  const messages = lengths.flatMap((length, i) => [{ i }, { bytes: Buffer.alloc(length, i) }])
  const bytes = Buffer.concat(messages.map(bytesOf))
  for (const piece of [777, 32_768, 65_536, 200_000, bytes.length]) {
    const reader = new MessageReader()
    const read: unknown[] = []
    for (let at = 0; at < bytes.length; at += piece) {
      read.push(...reader.read(bytes.subarray(at, at + piece)))
      expect(reader.room().length).toBeGreaterThan(0)
    }
    expect(read.map(summary)).toEqual(messages.map(summary))
  }
})

test('no more memory is kept than allowed, and none when it is not used', () => {
  vi.useFakeTimers()
  try {
    const free = new FreeMemory({ maxFree: 300_000 })
    for (const memory of [free.take(100_000), free.take(100_000), free.take(100_000)]) free.put(memory)
    expect(free.bytes).toBe(2 * 131_072)
    free.take(100_000)
    vi.advanceTimersByTime(10_000)
    expect(free.bytes).toBe(131_072)
    vi.advanceTimersByTime(10_000)
    expect(free.bytes).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
