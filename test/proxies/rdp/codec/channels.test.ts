/** Messages of the filtered channels, from the examples of their specifications if there are any. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { FORMAT, kindOfFormat } from '../../../../proxies/rdp/codec/clipboard-formats.ts'
import {
  buildClipboardCapabilities,
  buildFileRefusal,
  buildFormatList,
  CLIPBOARD_CAPABILITY,
  CLIPBOARD_MESSAGE,
  clipboardText,
  parseClipboard,
  parseClipboardCapabilities,
  parseFileContentsRequest,
  parseFileList,
  parseFormatList,
  parseFormatRequest,
} from '../../../../proxies/rdp/codec/cliprdr.ts'
import { parseMonitorLayout } from '../../../../proxies/rdp/codec/display-control.ts'
import {
  buildDynamicRefusal,
  type DynamicMessage,
  limitVersion,
  parseDynamic,
} from '../../../../proxies/rdp/codec/drdynvc.ts'
import {
  buildDevices,
  buildIoRefusal,
  DEVICE_PACKET,
  DEVICE_TYPE,
  IO,
  parseCreate,
  parseDeviceMessage,
  parseDevices,
  parseIoCompletion,
  parseIoRequest,
  parseSetInformation,
} from '../../../../proxies/rdp/codec/rdpdr.ts'
import { measureRequest } from '../../../../proxies/rdp/codec/rdpdr-measure.ts'
import { ByteWriter } from '../../../../proxies/rdp/codec/writer.ts'
import { hex } from '../../stream-events.ts'

const bytes = (text: string) => Buffer.from(text.replace(/\s+/g, ''), 'hex')
const utf16 = (text: string) => Buffer.from(`${text}\0`, 'utf16le')

describe('the clipboard (MS-RDPECLIP, section 4)', () => {
  test('capabilities, with files and without', () => {
    const { type, body } = parseClipboard(
      bytes('07 00 00 00 10 00 00 00 01 00 00 00 01 00 0c 00 02 00 00 00 0e 00 00 00'),
    )
    expect(type).toBe(CLIPBOARD_MESSAGE.capabilities)
    const capabilities = parseClipboardCapabilities(body)
    expect(capabilities).toEqual({ version: 2, flags: 0xe })
    const built = (files: boolean) =>
      parseClipboardCapabilities(parseClipboard(buildClipboardCapabilities(capabilities, files)).body)
    expect(built(true)).toEqual(capabilities)
    expect(built(false)).toEqual({ version: 2, flags: CLIPBOARD_CAPABILITY.longNames })
    const none = parseClipboardCapabilities(bytes('00 00 00 00'))
    expect(none).toBeUndefined()
    expect(buildClipboardCapabilities(none, true)).toEqual(bytes('07 00 00 00 04 00 00 00 00 00 00 00'))
  })

  const list = bytes(
    '02 00 00 00 24 00 00 00 04 c0 00 00 4e 00 61 00 74 00 69 00 76 00 65 00 00 00' +
      '03 00 00 00 00 00 08 00 00 00 00 00 11 00 00 00 00 00',
  )

  test('formats with long names, and some of them again', () => {
    const formats = parseFormatList(parseClipboard(list), true)
    expect(formats.map(({ id, name }) => [id, name])).toEqual([
      [0xc004, 'Native'],
      [3, ''],
      [FORMAT.dib, ''],
      [FORMAT.dibV5, ''],
    ])
    expect(hex(buildFormatList(formats, true, 0))).toBe(hex(list))
    const some = parseFormatList(parseClipboard(buildFormatList(formats.slice(2), true, 0)), true)
    expect(some.map(({ id }) => id)).toEqual([FORMAT.dib, FORMAT.dibV5])
  })

  test.each([
    [0, utf16('FileGroupDescriptorW').subarray(0, 32), 'FileGroupDescrip'],
    [4, Buffer.from('FileContents'.padEnd(32, '\0')), 'FileContents'],
  ])('formats with short names, flags %i', (flags, name, read) => {
    const body = Buffer.concat([bytes('05 c0 00 00'), name])
    const formats = parseFormatList({ type: CLIPBOARD_MESSAGE.formatList, flags, body }, false)
    expect(formats).toEqual([{ id: 0xc005, name: read }])
    expect(hex(parseClipboard(buildFormatList(formats, false, flags)).body)).toBe(hex(body))
  })

  test('formats of files', () => {
    expect(kindOfFormat({ id: 0xc0bc, name: 'FileGroupDescriptorW' })).toBe('files')
    expect(kindOfFormat({ id: FORMAT.files, name: '' })).toBe('files')
    expect(kindOfFormat({ id: FORMAT.unicodeText, name: '' })).toBe('text')
  })

  test('text', () => {
    expect(parseFormatRequest(parseClipboard(bytes('04 00 00 00 04 00 00 00 0d 00 00 00')).body)).toBe(13)
    const { body } = parseClipboard(
      bytes(
        '05 00 01 00 18 00 00 00 68 00 65 00 6c 00 6c 00 6f 00 20 00 77 00 6f 00 72 00 6c 00 64 00 00 00',
      ),
    )
    expect(clipboardText(FORMAT.unicodeText, body)).toBe('hello world')
    expect(clipboardText(FORMAT.text, Buffer.from('caf\xe9\0', 'latin1'))).toBe('café')
    expect(clipboardText(FORMAT.dib, body)).toBeUndefined()
  })

  test('files: their names and sizes, what is asked of them, and a refusal', () => {
    const descriptor = Buffer.alloc(592)
    descriptor.writeUInt32LE(0x10, 36)
    descriptor.writeUInt32LE(1, 64)
    descriptor.writeUInt32LE(2, 68)
    descriptor.set(utf16('reports\\März.txt'), 72)
    const body = Buffer.concat([bytes('01 00 00 00'), descriptor])
    expect(parseFileList(body)).toEqual([{ name: 'reports\\März.txt', size: 0x100000002, isFolder: true }])
    const size = bytes('02 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 08 00 00 00')
    expect(parseFileContentsRequest(size)).toEqual({ kind: 'size', stream: 2, index: 1 })
    const range = bytes('02 00 00 00 01 00 00 00 02 00 00 00 10 00 00 00 01 00 00 00 00 00 01 00')
    expect(parseFileContentsRequest(range)).toEqual({
      kind: 'range',
      stream: 2,
      index: 1,
      offset: 0x100000010,
      length: 0x10000,
    })
    expect(hex(buildFileRefusal(2))).toBe('090002000400000002000000')
  })

  test.each([
    [
      'more formats than any program has',
      () => parseFormatList({ type: 2, flags: 0, body: Buffer.alloc(6 * 513) }, true),
    ],
    [
      'a name without an end',
      () => parseFormatList({ type: 2, flags: 0, body: Buffer.alloc(4096, 1) }, true),
    ],
    ['more files than come', () => parseFileList(bytes('02 00 00 00'))],
    ['four milliards of files', () => parseFileList(bytes('ff ff ff ff'))],
    ['a length beyond the message', () => parseClipboard(bytes('01 00 00 00 01 00 00 00'))],
    ['a set without a length', () => parseClipboardCapabilities(bytes('01 00 00 00 01 00 00 00'))],
  ])('%s is malformed', (_, read) => {
    expect(read).toThrow(MalformedError)
  })
})

describe('dynamic channels (MS-RDPEDYC, section 4)', () => {
  test.each<[string, string, 'client' | 'server', DynamicMessage]>([
    ['capabilities', '50 00 02 00 33 33 11 11 3d 0a a7 04', 'server', { kind: 'capabilities', version: 2 }],
    [
      'a channel that the server opens',
      '10 03 74 65 73 74 64 76 63 00',
      'server',
      { kind: 'create', channel: 3, name: 'testdvc' },
    ],
    ['the client’s answer', '10 03 00 00 00 00', 'client', { kind: 'created', channel: 3, status: 0 }],
    [
      'the begin of a message',
      '24 03 7b 0c 71 71',
      'server',
      { kind: 'data-first', channel: 3, length: 0xc7b, data: bytes('71 71') },
    ],
    ['data', '31 03 01 71', 'server', { kind: 'data', channel: 0x103, data: bytes('71') }],
    ['the end', '42 03 00 00 00', 'client', { kind: 'close', channel: 3 }],
  ])('%s', (_, text, from, message) => {
    expect(parseDynamic(bytes(text), from)).toEqual(message)
  })

  test('version 3 is brought down, so that nothing comes compressed', () => {
    expect(hex(limitVersion(bytes('50 00 03 00 33 33 11 11 3d 0a a7 04')))).toBe(
      '500002003333111' + '13d0aa704',
    )
    expect(hex(limitVersion(bytes('50 00 01 00')))).toBe('50000100')
    expect(() => parseDynamic(bytes('60 03 01 02'), 'server')).toThrow(MalformedError)
    expect(() => parseDynamic(bytes('80 00 00 00'), 'server')).toThrow(MalformedError)
  })

  test('a refusal is what a client says that has no such channel', () => {
    expect(parseDynamic(buildDynamicRefusal(70_000), 'client')).toEqual({
      kind: 'created',
      channel: 70_000,
      status: 0x80070005,
    })
  })
})

test('a desktop of another size is asked for within bounds', () => {
  const layout = (width: number, height: number) => {
    const writer = new ByteWriter().uint32(2).uint32(56).uint32(40).uint32(1)
    writer
      .uint32(1)
      .uint32(0xffffffff)
      .uint32(0)
      .uint32(width)
      .uint32(height)
      .zeros(12)
      .uint32(150)
      .uint32(140)
    return writer.finish()
  }
  expect(parseMonitorLayout(layout(1280, 800))).toEqual([
    { isPrimary: true, left: -1, top: 0, width: 1280, height: 800, scales: [150, 140] },
  ])
  expect(parseMonitorLayout(bytes('05 00 00 00 14 00 00 00'))).toBeUndefined()
  expect(() => parseMonitorLayout(layout(65535, 65535))).toThrow(MalformedError)
  expect(() => parseMonitorLayout(layout(0, 800))).toThrow(MalformedError)
})

describe('devices (MS-RDPEFS)', () => {
  const device = (type: number, id: number, name: string, data: Uint8Array) =>
    new ByteWriter()
      .uint32(type)
      .uint32(id)
      .bytes(Buffer.from(name.padEnd(8, '\0')))
      .uint32(data.length)
      .bytes(data)
      .finish()
  const drive = device(DEVICE_TYPE.drive, 1, 'C:', utf16('share'))
  const printer = device(DEVICE_TYPE.printer, 2, 'PRN1', Buffer.alloc(24))
  const announced = Buffer.concat([bytes('72 44 41 44 02 00 00 00'), drive, printer])

  test('are announced, and some of them again', () => {
    const { packet, body } = parseDeviceMessage(announced)
    expect(packet).toBe(DEVICE_PACKET.deviceListAnnounce)
    const devices = parseDevices(body)
    expect(devices.map(({ type, id, name }) => [type, id, name])).toEqual([
      [DEVICE_TYPE.drive, 1, 'C:'],
      [DEVICE_TYPE.printer, 2, 'PRN1'],
    ])
    expect(hex(buildDevices(devices))).toBe(hex(announced))
    const left = buildDevices(devices.filter(({ type }) => type !== DEVICE_TYPE.drive))
    expect(hex(left)).toBe(hex(Buffer.concat([bytes('72 44 41 44 01 00 00 00'), printer])))
    expect(parseDeviceMessage(bytes('52 50 43 50'))).toMatchObject({ component: 'printer', packet: 0x5043 })
    expect(parseDeviceMessage(bytes('53 50 43 50')).component).toBe('unknown')
  })

  const create = (access: number, disposition: number, options: number, path: string) => {
    const name = utf16(path)
    const writer = new ByteWriter().uint32(access).zeros(8).uint32(0).uint32(7).uint32(disposition)
    return writer.uint32(options).uint32(name.length).bytes(name).finish()
  }

  test.each([
    ['reads', create(0x120089, 1, 0x60, '\\a.txt'), { path: '\\a.txt', isFolder: false, isWriting: false }],
    ['writes', create(0x120116, 1, 0x60, '\\a.txt'), { path: '\\a.txt', isFolder: false, isWriting: true }],
    ['makes a file', create(0x120089, 3, 0, '\\b'), { path: '\\b', isFolder: false, isWriting: true }],
    ['deletes', create(0x100080, 1, 0x1000, '\\b'), { path: '\\b', isFolder: false, isWriting: true }],
    ['lists a folder', create(0x100001, 1, 0x21, '\\d'), { path: '\\d', isFolder: true, isWriting: false }],
  ])('a file is opened by who %s', (name, details, request) => {
    expect(parseCreate(details)).toEqual({ ...request, isRemoved: name === 'deletes' })
  })

  test('requests, and their refusal', () => {
    const body = new ByteWriter().uint32(1).uint32(9).uint32(77).uint32(IO.write).uint32(0)
    body.uint32(4).uint32(5).uint32(0).zeros(20).bytes(Buffer.from('text'))
    const request = parseIoRequest(body.finish())
    expect(request).toMatchObject({ device: 1, file: 9, completion: 77, major: IO.write, minor: 0 })
    expect(measureRequest(request)).toEqual({ length: 36, content: 4 })
    const { packet, body: refusal } = parseDeviceMessage(buildIoRefusal(request))
    expect(packet).toBe(DEVICE_PACKET.ioCompletion)
    expect(parseIoCompletion(refusal)).toMatchObject({ device: 1, completion: 77, status: 0xc0000022 })
  })

  test('a file gets another name', () => {
    const path = utf16('\\new.txt')
    const rename = new ByteWriter()
      .uint32(10)
      .uint32(6 + path.length)
      .zeros(24)
      .uint8(0)
      .uint8(0)
    rename.uint32(path.length).bytes(path)
    expect(parseSetInformation(rename.finish())).toEqual({ class: 10, newPath: '\\new.txt' })
    expect(parseSetInformation(new ByteWriter().uint32(13).uint32(0).zeros(24).finish())).toEqual({
      class: 13,
    })
  })

  test.each([
    ['more devices than come', () => parseDevices(bytes('02 00 00 00'))],
    ['four milliards of devices', () => parseDevices(bytes('ff ff ff ff'))],
    [
      'a device with endless data',
      () => parseDevices(Buffer.concat([bytes('01 00 00 00'), Buffer.alloc(20, 0xff)])),
    ],
    ['a path beyond the message', () => parseCreate(Buffer.alloc(32, 1))],
  ])('%s: malformed', (_, read) => {
    expect(read).toThrow(MalformedError)
  })
})
