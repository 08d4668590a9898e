/** Devices of a client whose target does not have the channel. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import type { DeviceVisitor } from '../../../../proxies/rdp/channels/device-filter.ts'
import { DeviceRegistry } from '../../../../proxies/rdp/channels/device-registry.ts'
import { buildDeviceMessage, DEVICE_PACKET, parseDeviceMessage } from '../../../../proxies/rdp/codec/rdpdr.ts'
import { ByteReader } from '../../../../proxies/rdp/codec/reader.ts'
import { announce, DEVICES } from './devices.ts'
import { betweenEnds, type Ends } from './harness.ts'

const REPLY = buildDeviceMessage(DEVICE_PACKET.clientIdConfirm, Buffer.from('01000c0001000000', 'hex'))
const NAME = buildDeviceMessage(DEVICE_PACKET.clientName, Buffer.alloc(14))

function newCensus(): Ends & { begin(): string[] } {
  let registry: DeviceRegistry | undefined
  const ends = betweenEnds<DeviceVisitor>(['denied'], (options) => {
    registry = new DeviceRegistry(options)
    return registry
  })
  return { ...ends, begin: () => ends.during(() => registry?.begin()).client }
}

const packets = (messages: readonly string[]) =>
  messages.map((text) => parseDeviceMessage(Buffer.from(text, 'hex')).packet)

test('are asked for as a server does it, refused, and told of', () => {
  const { begin, say, heard } = newCensus()
  expect(packets(begin())).toEqual([DEVICE_PACKET.serverAnnounce])
  expect(say('client', REPLY).client).toEqual([])
  expect(packets(say('client', NAME).client)).toEqual([
    DEVICE_PACKET.serverCapability,
    DEVICE_PACKET.clientIdConfirm,
    DEVICE_PACKET.userLoggedOn,
  ])
  const { client, target } = say('client', announce())
  expect(heard).toEqual(DEVICES.map(([type, , name]) => ['denied', { type, name }]))
  const answers = client.map((text) => {
    const reader = new ByteReader(parseDeviceMessage(Buffer.from(text, 'hex')).body, 'reply')
    return [reader.uint32(), reader.uint32()]
  })
  expect(answers).toEqual(DEVICES.map(([, id]) => [id, 0xc0000022]))
  expect(target).toEqual([])
})

test('are heard of only in their order, and not without end', () => {
  const { begin, say, heard } = newCensus()
  say('client', announce())
  expect(heard, 'nobody has asked').toEqual([])
  begin()
  expect(begin(), 'asked once').toEqual([])
  expect(say('client', NAME).client, 'out of order').toEqual([])
  say('client', announce())
  expect(heard).toEqual([])
  say('client', REPLY)
  say('client', NAME)
  for (let time = 0; time < 100; time++) say('client', announce())
  expect(heard).toHaveLength(16 * DEVICES.length)
  expect(say('target', announce()).client, 'no target is there').toEqual([])
})
