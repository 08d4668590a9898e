/** Shared devices, filtered by rights. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import {
  DeviceFilter,
  type DeviceRights,
  type DeviceVisitor,
} from '../../../../proxies/rdp/channels/device-filter.ts'
import {
  buildDeviceMessage,
  DEVICE_PACKET,
  DEVICE_TYPE,
  IO,
  parseDeviceMessage,
  parseDevices,
  parseIoCompletion,
} from '../../../../proxies/rdp/codec/rdpdr.ts'
import { ByteWriter } from '../../../../proxies/rdp/codec/writer.ts'
import { hex } from '../../stream-events.ts'
import { announce, DEVICES } from './devices.ts'
import { betweenEnds, type Ends } from './harness.ts'

const NONE: DeviceRights = { drives: false, printers: false, ports: false, smartCards: false }
const ALL: DeviceRights = { drives: true, printers: true, ports: true, smartCards: true }
function request(device: number, completion: number, major: number, details: Uint8Array, file = 0): Buffer {
  const writer = new ByteWriter().uint32(device).uint32(file).uint32(completion).uint32(major).uint32(0)
  return buildDeviceMessage(DEVICE_PACKET.ioRequest, writer.bytes(details).finish())
}
function completion(device: number, id: number, status: number, details: Uint8Array): Buffer {
  const writer = new ByteWriter().uint32(device).uint32(id).uint32(status)
  return buildDeviceMessage(DEVICE_PACKET.ioCompletion, writer.bytes(details).finish())
}
function create(path: string, access: number): Buffer {
  const name = Buffer.from(`${path}\0`, 'utf16le')
  const writer = new ByteWriter().uint32(access).zeros(16).uint32(1).uint32(0x40).uint32(name.length)
  return writer.bytes(name).finish()
}

const write = (count: number): Buffer =>
  new ByteWriter()
    .uint32(count)
    .zeros(28 + count)
    .finish()

const open = (rights: DeviceRights): Ends =>
  betweenEnds<DeviceVisitor>(
    ['denied', 'announced', 'opened', 'transferred', 'renamed', 'deleted'],
    (options) => new DeviceFilter({ ...options, rights }),
  )
const nothing = { client: [], target: [] }
const announced = (message: string) =>
  parseDevices(parseDeviceMessage(Buffer.from(message, 'hex')).body).map(({ name }) => name)

describe('devices', () => {
  test.each<[keyof DeviceRights, string[]]>([
    ['drives', ['home']],
    ['printers', ['PRN3']],
    ['ports', ['COM1', 'LPT1']],
    ['smartCards', ['SCARD']],
  ])('of the right to %s are announced, and no others', (right, names) => {
    const { say, heard } = open({ ...NONE, [right]: true })
    const { target } = say('client', announce())
    expect(target.map(announced)).toEqual([names])
    expect(heard.filter(([kind]) => kind === 'announced')).toHaveLength(names.length)
    expect(heard.filter(([kind]) => kind === 'denied')).toHaveLength(DEVICES.length - names.length)
  })

  test('that were not announced cannot be used', () => {
    const { say } = open({ ...NONE, printers: true })
    say('client', announce())
    const { client, target } = say('target', request(4, 9, IO.create, create('\\a', 1)))
    expect(client).toEqual([])
    const refusal = parseIoCompletion(parseDeviceMessage(Buffer.from(target[0]!, 'hex')).body)
    expect(refusal).toMatchObject({ device: 4, completion: 9, status: 0xc0000022 })
    const reply = (device: number) =>
      buildDeviceMessage(DEVICE_PACKET.deviceReply, new ByteWriter().uint32(device).uint32(0).finish())
    expect(say('target', reply(4))).toEqual(nothing)
    expect(say('target', reply(3)).client).toHaveLength(1)
    expect(say('client', completion(4, 9, 0, Buffer.alloc(5)))).toEqual(nothing)
  })

  test('that are gone cannot be used any more', () => {
    const { say } = open(ALL)
    say('client', announce())
    const gone = new ByteWriter().uint32(1).uint32(4).finish()
    expect(say('client', buildDeviceMessage(DEVICE_PACKET.deviceListRemove, gone)).target).toHaveLength(1)
    expect(say('target', request(4, 9, IO.read, Buffer.alloc(32))).client).toEqual([])
  })
})

test('what is done to files is told by their names', () => {
  const { say, heard } = open(ALL)
  say('client', announce())
  heard.length = 0
  const pass = (from: 'client' | 'target', message: Buffer) => {
    const to = from === 'client' ? 'target' : 'client'
    expect(say(from, message)).toEqual({ ...nothing, [to]: [hex(message)] })
  }
  const opened = new ByteWriter().uint32(77).uint8(0).finish()
  pass('target', request(4, 1, IO.create, create('\\plans.txt', 0x120116)))
  pass('client', completion(4, 1, 0, opened))
  pass('target', request(4, 2, IO.create, create('\\none.txt', 0x120089)))
  pass('client', completion(4, 2, 0xc0000034, opened))
  const path = Buffer.from('\\new.txt\0', 'utf16le')
  const rename = new ByteWriter()
    .uint32(10)
    .uint32(6 + path.length)
    .zeros(26)
    .uint32(path.length)
    .bytes(path)
  pass('target', request(4, 3, IO.setInformation, rename.finish(), 77))
  pass('target', request(4, 4, IO.setInformation, new ByteWriter().uint32(13).zeros(28).finish(), 77))
  pass('client', completion(4, 3, 0, Buffer.alloc(4)))
  pass('target', request(4, 5, IO.close, Buffer.alloc(32), 77))
  pass('client', completion(4, 5, 0, Buffer.alloc(4)))
  expect(heard).toEqual([
    ['opened', 'home', '\\plans.txt', true],
    ['renamed', 'home', '\\plans.txt', '\\new.txt'],
    ['deleted', 'home', '\\plans.txt'],
  ])
  expect(say('client', completion(4, 5, 0, Buffer.alloc(4)))).toEqual(nothing)
})

test.each([
  [DEVICE_TYPE.printer, 3, 'PRN3'],
  [DEVICE_TYPE.parallel, 2, 'LPT1'],
  [DEVICE_TYPE.serial, 1, 'COM1'],
])('what goes to a device of type %d is counted, whatever the client says of it', (type, id, name) => {
  const { say, heard } = open(ALL)
  say('client', announce())
  heard.length = 0
  expect(say('target', request(id, 1, IO.write, write(9), 7)).client, 'unopened').toEqual([])
  say('target', request(id, 2, IO.create, Buffer.alloc(32)))
  say('client', completion(id, 2, 0, new ByteWriter().uint32(7).finish()))
  for (const job of [3, 4]) {
    expect(say('target', request(id, job, IO.write, write(500), 7)).client).toHaveLength(1)
    say('client', completion(id, job, job === 3 ? 0 : 0xc0000001, Buffer.alloc(5)))
  }
  say('target', request(id, 5, IO.close, Buffer.alloc(32), 7))
  say('client', completion(id, 5, 0, Buffer.alloc(4)))
  expect(heard).toEqual([['transferred', { type, name }, '', 'down', 1000]])
})

describe('what would not be told of is refused', () => {
  const opened = (file: number) => new ByteWriter().uint32(file).uint8(0).finish()
  const isRefused = ({ client, target }: { client: string[]; target: string[] }, id: number): boolean => {
    if (client.length > 0) return false
    const answer = parseIoCompletion(parseDeviceMessage(Buffer.from(target[0]!, 'hex')).body)
    return answer.completion === id && answer.status === 0xc0000022
  }

  test('a device that becomes another one', () => {
    const { say, heard } = open(ALL)
    say('client', announce())
    heard.length = 0
    const other = say('client', announce([[DEVICE_TYPE.printer, 4, 'home']]))
    expect(other.target.map(announced)).toEqual([[]])
    expect(heard).toEqual([['denied', { type: DEVICE_TYPE.printer, name: 'home' }]])
    heard.length = 0
    const same = say('client', announce([[DEVICE_TYPE.drive, 4, 'home']]))
    expect(same.target.map(announced)).toEqual([['home']])
    expect(heard).toEqual([])
    say('target', request(4, 1, IO.create, create('\\plans.txt', 0x120116)))
    say('client', completion(4, 1, 0, opened(77)))
    say('target', request(4, 2, IO.write, write(500), 77))
    say('client', completion(4, 2, 0, new ByteWriter().uint32(500).uint8(0).finish()))
    say('target', request(4, 3, IO.create, create('\\late.txt', 0x120116)))
    heard.length = 0
    const gone = new ByteWriter().uint32(1).uint32(4).finish()
    say('client', buildDeviceMessage(DEVICE_PACKET.deviceListRemove, gone))
    expect(heard).toEqual([
      ['transferred', { type: DEVICE_TYPE.drive, name: 'home' }, '\\plans.txt', 'down', 500],
      // The name of a file that was never opened.
      ['transferred', { type: DEVICE_TYPE.drive, name: 'home' }, '', 'down', 20],
    ])
    expect(say('client', announce([[DEVICE_TYPE.printer, 4, 'PRN4']])).target.map(announced)).toEqual([
      ['PRN4'],
    ])
    expect(say('client', completion(4, 3, 0, opened(78)))).toEqual(nothing)
  })

  test('a file that was not opened here, and a request with the number of one that waits', () => {
    const { say } = open(ALL)
    say('client', announce())
    for (const major of [IO.read, IO.write, IO.setInformation, IO.directory]) {
      expect(isRefused(say('target', request(4, 9, major, Buffer.alloc(40), 77)), 9)).toBe(true)
    }
    say('target', request(4, 9, IO.create, create('\\a', 1)))
    expect(isRefused(say('target', request(4, 9, IO.create, create('\\b', 1))), 9)).toBe(true)
    expect(
      say('target', request(3, 9, IO.create, Buffer.alloc(32))).client,
      'of another device',
    ).toHaveLength(1)
  })

  test('more files than are counted, and paths that are longer than there are', () => {
    const { say, heard } = open(ALL)
    say('client', announce())
    heard.length = 0
    expect(isRefused(say('target', request(4, 1, IO.create, create('x'.repeat(3000), 1))), 1)).toBe(true)
    let count = 0
    let id = 1
    const path = '\\'.padEnd(2000, 'y')
    for (; ; id++) {
      const asked = say('target', request(4, id, IO.create, create(path, 1)))
      if (isRefused(asked, id)) break
      say('client', completion(4, id, 0, opened(id)))
      count++
    }
    expect(count * path.length).toBeLessThanOrEqual(1024 * 1024)
    expect(count).toBeGreaterThan(400)
    say('target', request(4, id, IO.close, Buffer.alloc(32), 1))
    say('client', completion(4, id, 0, Buffer.alloc(4)))
    for (const short of ['\\a', '\\b']) {
      say('target', request(4, id, IO.create, create(short, 1)))
      say('client', completion(4, id, 0, opened(++id)))
    }
    for (count++; ; count++, id++) {
      if (isRefused(say('target', request(4, id, IO.create, create('', 1))), id)) break
    }
    expect(count).toBe(4096)
    expect(heard.every(([kind]) => kind === 'opened')).toBe(true)
  })
})

test('packets of the wrong side, and of printers without the right, do not pass', () => {
  const { say } = open(NONE)
  expect(say('client', buildDeviceMessage(DEVICE_PACKET.ioRequest, Buffer.alloc(40)))).toEqual(nothing)
  expect(say('target', announce())).toEqual(nothing)
  expect(say('client', buildDeviceMessage(0x1234, Buffer.alloc(40)))).toEqual(nothing)
  expect(say('client', Buffer.from('52504350', 'hex'))).toEqual(nothing)
  expect(
    say('target', buildDeviceMessage(DEVICE_PACKET.serverAnnounce, Buffer.alloc(8))).client,
  ).toHaveLength(1)
})

describe('what passes is counted by what it carries', () => {
  const opened = (file: number) => new ByteWriter().uint32(file).uint8(0).finish()
  const isRefused = ({ client, target }: { client: string[]; target: string[] }): boolean =>
    client.length === 0 && target.length === 1
  /** Both ends, with a file of that name open as 77 on the drive. */
  function file(name = '\\plan.txt'): Ends {
    const ends = open(ALL)
    ends.say('client', announce())
    ends.say('target', request(4, 1, IO.create, create(name, 1)))
    ends.say('client', completion(4, 1, 0, opened(77)))
    ends.heard.length = 0
    return ends
  }
  const drive = { type: DEVICE_TYPE.drive, name: 'home' }
  const answer = (claimed: number, carried: number) =>
    new ByteWriter().uint32(claimed).bytes(Buffer.alloc(carried, 7)).finish()
  const asked = (claimed: number, carried: number) =>
    new ByteWriter().uint32(claimed).zeros(28).bytes(Buffer.alloc(carried, 7)).finish()
  const sizeOf = ([message]: string[]) => Buffer.from(message ?? '', 'hex').length

  test('a read that is said to have failed', () => {
    const { say, heard, close } = file()
    say('target', request(4, 2, IO.read, Buffer.alloc(32), 77))
    expect(sizeOf(say('client', completion(4, 2, 0xc0000022, answer(5000, 5000))).target)).toBe(16 + 4 + 5000)
    close()
    expect(heard).toEqual([['transferred', drive, '\\plan.txt', 'up', 5000]])
  })

  test('and what is behind what a message says that it has stays here', () => {
    const { say, heard, close } = file()
    say('target', request(4, 2, IO.read, Buffer.alloc(32), 77))
    expect(sizeOf(say('client', completion(4, 2, 0, answer(10, 5000))).target)).toBe(16 + 4 + 10)
    expect(sizeOf(say('target', request(4, 3, IO.write, asked(20, 5000), 77)).client)).toBe(24 + 32 + 20)
    expect(sizeOf(say('client', completion(4, 3, 0, Buffer.alloc(5000))).target)).toBe(16 + 5)
    expect(sizeOf(say('target', request(4, 4, IO.close, Buffer.alloc(5000), 77)).client)).toBe(24 + 32)
    expect(sizeOf(say('client', completion(4, 4, 0, Buffer.alloc(5000))).target)).toBe(16 + 5)
    const path = Buffer.concat([create('\\b', 1), Buffer.alloc(5000)])
    expect(sizeOf(say('target', request(4, 5, IO.create, path)).client)).toBe(24 + create('\\b', 1).length)
    close()
    expect(heard).toEqual([
      ['transferred', drive, '\\plan.txt', 'up', 10],
      ['transferred', drive, '\\plan.txt', 'down', 20],
      ['transferred', drive, '', 'down', 6],
    ])
  })

  test('a read that is answered once its file is closed, and its number another file’s', () => {
    const { say, heard, close } = file()
    say('target', request(4, 2, IO.read, Buffer.alloc(32), 77))
    say('target', request(4, 3, IO.close, Buffer.alloc(32), 77))
    say('client', completion(4, 3, 0, Buffer.alloc(4)))
    say('target', request(4, 4, IO.create, create('\\harmless', 1)))
    say('client', completion(4, 4, 0, opened(77)))
    heard.length = 0
    say('client', completion(4, 2, 0, answer(300, 300)))
    close()
    expect(heard).toEqual([
      ['transferred', drive, '\\plan.txt', 'up', 300],
      // The names of both files, which no event had shown when they were closed.
      ['transferred', drive, '', 'down', 40],
    ])
  })

  test('a control request, and more than any property of a file has', () => {
    const { say, heard, close } = file()
    const control = new ByteWriter().uint32(9000).uint32(700).zeros(24).bytes(Buffer.alloc(700)).finish()
    say('target', request(4, 2, IO.deviceControl, control, 77))
    say('client', completion(4, 2, 0xc0000010, answer(9000, 9000)))
    say('target', request(4, 3, IO.queryInformation, Buffer.alloc(32), 77))
    say('client', completion(4, 3, 0, answer(600, 600)))
    say('target', request(4, 4, IO.directory, Buffer.alloc(32), 77))
    say('client', completion(4, 4, 0, answer(1024 + 5, 1024 + 5)))
    close()
    expect(heard).toEqual([
      ['transferred', drive, '\\plan.txt', 'up', 9005],
      ['transferred', drive, '\\plan.txt', 'down', 700],
    ])
  })

  test('a card, which has no files', () => {
    const { say, heard, close } = open(ALL)
    say('client', announce())
    heard.length = 0
    const control = new ByteWriter().uint32(0).uint32(40).zeros(24).bytes(Buffer.alloc(40)).finish()
    say('target', request(5, 1, IO.deviceControl, control))
    say('client', completion(5, 1, 0, answer(60, 60)))
    expect(isRefused(say('target', request(5, 2, IO.write, write(900))))).toBe(true)
    close()
    const card = { type: DEVICE_TYPE.smartCard, name: 'SCARD' }
    expect(heard).toEqual([
      ['transferred', card, '', 'up', 60],
      ['transferred', card, '', 'down', 40],
    ])
  })

  test('what nobody knows is refused: requests, changes of a file, and packets', () => {
    const { say } = file()
    for (const major of [0x7, 0x8, 0x14, 0x15, 0x99]) {
      expect(isRefused(say('target', request(4, 9, major, Buffer.alloc(5000), 77)))).toBe(true)
    }
    for (const change of [11, 64, 65, 72]) {
      const details = new ByteWriter().uint32(change).zeros(28).finish()
      expect(isRefused(say('target', request(4, 9, IO.setInformation, details, 77)))).toBe(true)
    }
    expect(say('target', Buffer.from('53504350aabbccdd', 'hex'))).toEqual(nothing)
    expect(say('target', Buffer.from('52505a5aaabbccdd', 'hex'))).toEqual(nothing)
    expect(say('client', Buffer.from('52504350aabbccdd', 'hex'))).toEqual(nothing)
  })

  test('settings of printers, either way, and no more than a flag about XPS', () => {
    const { say, heard, close } = open(ALL)
    const printer = new ByteWriter().uint32(1).uint32(DEVICE_TYPE.printer).uint32(3)
    printer
      .bytes(Buffer.from('PRN3'.padEnd(8, '\0')))
      .uint32(3000)
      .zeros(3000)
    say('client', buildDeviceMessage(DEVICE_PACKET.deviceListAnnounce, printer.finish()))
    const cached = Buffer.concat([Buffer.from('52504350', 'hex'), Buffer.alloc(4000)])
    expect(say('target', cached).client).toHaveLength(1)
    const xps = Buffer.concat([Buffer.from('52504355', 'hex'), Buffer.alloc(4000)])
    expect(sizeOf(say('target', xps).client)).toBe(12)
    heard.length = 0
    close()
    const settings = { type: DEVICE_TYPE.printer, name: 'printer settings' }
    expect(heard).toEqual([
      ['transferred', settings, '', 'up', 3000 - 1024],
      ['transferred', settings, '', 'down', 4000],
    ])
  })

  test('what is behind the packets of a begin stays here, and a device whose name is none', () => {
    const { say, heard } = open(ALL)
    for (const [from, packet, length] of [
      ['target', DEVICE_PACKET.serverAnnounce, 8],
      ['client', DEVICE_PACKET.clientIdConfirm, 8],
      ['client', DEVICE_PACKET.clientName, 1024],
      ['target', DEVICE_PACKET.userLoggedOn, 0],
    ] as const) {
      const passed = say(from, buildDeviceMessage(packet, Buffer.alloc(5000)))
      expect(sizeOf(passed[from === 'client' ? 'target' : 'client'])).toBe(4 + length)
    }
    const large = new ByteWriter().uint32(1).uint32(DEVICE_TYPE.drive).uint32(4)
    large
      .bytes(Buffer.from('home'.padEnd(8, '\0')))
      .uint32(3000)
      .zeros(3000)
    say('client', buildDeviceMessage(DEVICE_PACKET.deviceListAnnounce, large.finish()))
    expect(heard).toEqual([['denied', drive]])
  })

  test('a file that is gone once it is closed is told of as removed', () => {
    const { say, heard } = open(ALL)
    say('client', announce())
    heard.length = 0
    const details = Buffer.from(create('\\gone.txt', 1))
    details.writeUInt32LE(0x1000, 24)
    say('target', request(4, 1, IO.create, details))
    say('client', completion(4, 1, 0, opened(78)))
    expect(heard).toEqual([
      ['opened', 'home', '\\gone.txt', true],
      ['deleted', 'home', '\\gone.txt'],
    ])
  })
})
