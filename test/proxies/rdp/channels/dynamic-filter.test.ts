/** Dynamic channels, filtered by name. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { DynamicFilter, type DynamicFilterOptions } from '../../../../proxies/rdp/channels/dynamic-filter.ts'
import { MessageStream } from '../../../../proxies/rdp/channels/message-stream.ts'
import { parseDynamic } from '../../../../proxies/rdp/codec/drdynvc.ts'
import { buildChunks } from '../../../../proxies/rdp/codec/virtual-channel.ts'
import { hex } from '../../stream-events.ts'
import { betweenEnds, type Ends } from './harness.ts'

const bytes = (text: string) => Buffer.from(text, 'hex')
const create = (channel: number, name: string) =>
  Buffer.concat([Buffer.from([0x10, channel]), Buffer.from(`${name}\0`)])
const created = (channel: number, status: string) =>
  Buffer.concat([Buffer.from([0x10, channel]), bytes(status)])

function open(): Ends {
  return betweenEnds<DynamicFilterOptions['visitor']>(['denied', 'opened'], ({ visitor, send }) => {
    const data = (_: unknown, name: string) => name !== 'quiet'
    return new DynamicFilter({ visitor: { ...visitor, data }, send, isAllowed: (name) => name !== 'gfx' })
  })
}

test('a channel of the list opens, carries data, and ends', () => {
  const { say, heard } = open()
  expect(say('target', create(3, 'echo')).client).toEqual([hex(create(3, 'echo'))])
  expect(say('client', bytes('3003aa')).target).toEqual([])
  expect(say('client', created(3, '00000000')).target).toHaveLength(1)
  expect(say('client', bytes('3003aa')).target).toEqual(['3003aa'])
  expect(say('target', bytes('240302 00aa'.replace(' ', ''))).client).toEqual(['24030200aa'])
  expect(say('client', bytes('4003')).target).toEqual(['4003'])
  expect(say('target', bytes('3003aa')).client).toEqual([])
  expect(say('target', bytes('4003')).client).toEqual([])
  expect(heard).toEqual([['opened', 'echo']])
})

test('another is refused in the client’s name, who is not asked', () => {
  const { say, heard } = open()
  const { client, target } = say('target', create(7, 'gfx'))
  expect(client).toEqual([])
  expect(parseDynamic(Buffer.from(target[0]!, 'hex'), 'client')).toMatchObject({
    kind: 'created',
    channel: 7,
  })
  expect(say('target', bytes('3007aa')).client).toEqual([])
  expect(say('client', created(7, '00000000')).target).toEqual([])
  expect(heard).toEqual([['denied', 'gfx']])
})

test('one that the client refuses may be asked for again, one that is open may not', () => {
  const { say, heard } = open()
  say('target', create(3, 'echo'))
  expect(say('client', created(3, '010000c0')).target).toHaveLength(1)
  expect(say('target', create(3, 'echo')).client).toHaveLength(1)
  say('client', created(3, '00000000'))
  expect(say('target', create(3, 'other')).client).toEqual([])
  expect(heard).toEqual([
    ['opened', 'echo'],
    ['denied', 'other'],
  ])
})

test('what its visitor keeps stays here, and compression is given up', () => {
  const { say } = open()
  say('target', create(3, 'quiet'))
  say('client', created(3, '00000000'))
  expect(say('target', bytes('3003aa')).client).toEqual([])
  expect(say('target', bytes('50000300333311113d0aa704')).client).toEqual(['50000200333311113d0aa704'])
  expect(say('client', bytes('50000300')).target).toEqual(['50000200'])
})

test('a message that passes in pieces has to be as long as it says', () => {
  const passed: string[] = []
  const stream = () =>
    new MessageStream({
      name: 'cliprdr',
      limit: 100,
      take: () => {},
      large: { judge: () => 'pass', pass: (chunk) => passed.push(hex(chunk)) },
    })
  const chunks = buildChunks(Buffer.alloc(40, 1), 15)
  const whole = stream()
  for (const chunk of chunks) whole.receive(chunk)
  expect(passed).toEqual(chunks.map(hex))
  const short = stream()
  short.receive(chunks[0]!)
  expect(() => short.receive(chunks[2]!)).toThrow(MalformedError)
  const long = stream()
  for (const chunk of [chunks[0]!, chunks[1]!]) long.receive(chunk)
  expect(() => long.receive(chunks[1]!)).toThrow(/found 5 more/)
})
