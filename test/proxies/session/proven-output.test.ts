import { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import { STRICT_HELD } from '../../../proxies/session/limits.ts'
import { ProvenOutput } from '../../../proxies/session/proven-output.ts'
import type { Transport } from '../../../proxies/ssh/transport/transport.ts'

type Leg = Pick<Transport, 'onSend' | 'onDrain' | 'sendNow'>

let sent: string[]
let drains: number
let flushes: { resolve: () => void; reject: (error: Error) => void }[]
let client: Leg
let output: ProvenOutput

beforeEach(() => {
  sent = []
  drains = 0
  flushes = []
  client = {
    onSend: undefined,
    onDrain: () => drains++,
    sendNow: (payload) => void sent.push(Buffer.from(payload).toString()),
  }
  output = new ProvenOutput({
    client: client as Transport,
    flush: () => new Promise((resolve, reject) => flushes.push({ resolve, reject })),
  })
})

/** Like Transport.send. */
const send = (text: string) => {
  const payload = Buffer.from(text)
  if (client.onSend) client.onSend(payload)
  else client.sendNow(payload)
  // The caller reuses its buffer.
  payload.fill(0)
}
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('output of a strict session', () => {
  test('waits for a flush that was asked for after it, in order, one flush at a time', async () => {
    send('a')
    // A frame recorded in the same turn belongs to it.
    expect(flushes).toHaveLength(0)
    send('b')
    await settle()
    expect(flushes).toHaveLength(1)
    send('c')
    await settle()
    expect(flushes).toHaveLength(1)
    expect(sent).toEqual([])
    flushes[0]!.resolve()
    await settle()
    expect(sent).toEqual(['a', 'b'])
    expect(drains).toBe(1)
    expect(flushes).toHaveLength(2)
    flushes[1]!.resolve()
    await settle()
    expect(sent).toEqual(['a', 'b', 'c'])
  })

  test('is dropped when the recording fails; what the bastion says then is not', async () => {
    send('a')
    await settle()
    send('b')
    flushes[0]!.reject(new Error('disk'))
    await settle()
    expect(sent).toEqual([])
    send('sallyport: the recording cannot be written')
    expect(sent).toEqual(['sallyport: the recording cannot be written'])
  })

  test('that waits when the session is over comes before the end', async () => {
    send('a')
    await settle()
    send('b')
    let isOver = false
    const finished = output.flushAll().then(() => {
      isOver = true
    })
    flushes[0]!.resolve()
    await settle()
    expect([sent, isOver]).toEqual([['a'], false])
    flushes[1]!.resolve()
    await finished
    expect(sent).toEqual(['a', 'b'])
    await output.flushAll()
  })

  test('that a failed recording held back is not shown by the flush that still comes', async () => {
    send('a')
    await settle()
    output.destroy()
    flushes[0]!.resolve()
    await settle()
    expect(sent).toEqual([])
    await output.flushAll()
  })

  test('is bounded: then nothing more is to be read', async () => {
    expect(output.isFull).toBe(false)
    for (let bytes = 0; bytes <= STRICT_HELD; bytes += 32_768) send('x'.repeat(32_768))
    expect(output.isFull).toBe(true)
    await settle()
    flushes[0]!.resolve()
    await settle()
    expect(output.isFull).toBe(false)
  })
})
