/**
 * The channel of redirected devices (MS-RDPEFS): the devices a client announces and the target's operations
 * on its drives, as far as rights and audit need them.
 */
import { Buffer } from 'node:buffer'
import { ByteReader } from './reader.ts'
import { ansiText, utf16Text } from './utf16.ts'
import { ByteWriter } from './writer.ts'

/** Name of the static channel. */
export const RDPDR = 'rdpdr'
/** Bytes of one message: a read or write, which clients limit to a megabyte. */
export const DEVICE_MESSAGE_LIMIT = 4 * 1024 * 1024
/** Devices per announcement. */
export const DEVICE_LIMIT = 256
const DEVICE_DATA_LIMIT = 64 * 1024
const PATH_LIMIT = 32 * 1024
const DOS_NAME = 8

/** Component and packet id as one number: packets of the core component end in 0x4472. */
const CORE = 0x4472
const PRINTER = 0x5052
/** Packets of the printer component, sent by servers only (MS-RDPEPC): settings to keep, and the XPS flag. */
export const PRINTER_PACKET = { cacheData: 0x5043, usingXps: 0x5543 } as const
export const DEVICE_PACKET = {
  serverAnnounce: 0x496e,
  clientIdConfirm: 0x4343,
  clientName: 0x434e,
  serverCapability: 0x5350,
  clientCapability: 0x4350,
  userLoggedOn: 0x554c,
  deviceListAnnounce: 0x4441,
  deviceListRemove: 0x444d,
  deviceReply: 0x6472,
  ioRequest: 0x4952,
  ioCompletion: 0x4943,
} as const

export const DEVICE_TYPE = { serial: 1, parallel: 2, printer: 4, drive: 8, smartCard: 0x20 } as const

export interface DeviceMessage {
  component: 'core' | 'printer' | 'unknown'
  /** One of DEVICE_PACKET (core component) or PRINTER_PACKET (printer component), or an unknown packet. */
  packet: number
  body: Uint8Array
}

/** Parses a whole message. */
export function parseDeviceMessage(bytes: Uint8Array): DeviceMessage {
  const reader = new ByteReader(bytes, 'device redirection')
  const component = reader.uint16()
  const packet = reader.uint16()
  const name = component === CORE ? 'core' : component === PRINTER ? 'printer' : 'unknown'
  return { component: name, packet, body: reader.rest() }
}

export function buildDeviceMessage(packet: number, body: Uint8Array): Buffer {
  return new ByteWriter(4 + body.length).uint16(CORE).uint16(packet).bytes(body).finish()
}

/** Version of MS-RDPEFS announced by a server: 1.12. */
const VERSION = { major: 1, minor: 12 } as const
/** An arbitrary id: a server has one client per channel. */
const CLIENT_ID = 1

/** Builds a server's Announce Request (2.2.2.2), or its Client ID Confirm (2.2.2.6). */
export function buildOwnAnnouncement(packet: number = DEVICE_PACKET.serverAnnounce): Buffer {
  const body = new ByteWriter(8).uint16(VERSION.major).uint16(VERSION.minor).uint32(CLIENT_ID).finish()
  return buildDeviceMessage(packet, body)
}

/** Capability sets of printers, ports, drives and smart cards (2.2.2.7.2 to 2.2.2.7.5): type and version. */
const KINDS = [
  [2, 1],
  [3, 1],
  [4, 2],
  [5, 1],
] as const
const GENERAL = { type: 1, length: 44, version: 2 } as const
const KIND_LENGTH = 8
/** All requests; and the packets that remove devices, name clients and report a user's logon. */
const ALL_REQUESTS = 0xffff
const ALL_PACKETS = 0x7

/** Builds a server's capabilities (2.2.2.7): every kind of device. */
export function buildOwnCapabilities(): Buffer {
  const writer = new ByteWriter(4 + GENERAL.length + KINDS.length * KIND_LENGTH)
    .uint16(1 + KINDS.length)
    .zeros(2)
    .uint16(GENERAL.type)
    .uint16(GENERAL.length)
    .uint32(GENERAL.version)
    .zeros(8)
    .uint16(VERSION.major)
    .uint16(VERSION.minor)
    .uint32(ALL_REQUESTS)
    .zeros(4)
    .uint32(ALL_PACKETS)
    .zeros(12)
  for (const [type, version] of KINDS) writer.uint16(type).uint16(KIND_LENGTH).uint32(version)
  return buildDeviceMessage(DEVICE_PACKET.serverCapability, writer.finish())
}

/** Builds a server's response to an announced device (2.2.2.1): an NTSTATUS. */
export function buildDeviceReply(device: number, status: number): Buffer {
  const body = new ByteWriter(8).uint32(device).uint32(status).finish()
  return buildDeviceMessage(DEVICE_PACKET.deviceReply, body)
}

export interface Device {
  type: number
  id: number
  /** At most seven characters. */
  name: string
  /** The device as encoded in the announcement. */
  bytes: Uint8Array
  /** Bytes that count as data: its full name, a printer's driver and settings. */
  data: number
}

/** Parses a packet of type `deviceListAnnounce`. */
export function parseDevices(body: Uint8Array): Device[] {
  const reader = new ByteReader(body, 'device list announce')
  const count = reader.uint32()
  if (DEVICE_LIMIT < count) reader.fail(`at most ${DEVICE_LIMIT} devices were expected, found ${count}`)
  return Array.from({ length: count }, () => {
    const begin = reader.offset
    const type = reader.uint32()
    const id = reader.uint32()
    const name = ansiText(reader.bytes(DOS_NAME))
    const length = reader.uint32()
    if (DEVICE_DATA_LIMIT < length) {
      reader.fail(`a device's data of at most ${DEVICE_DATA_LIMIT} bytes was expected, found ${length}`)
    }
    reader.skip(length)
    return { type, id, name, bytes: body.subarray(begin, reader.offset), data: length }
  })
}

/** Builds a whole message that announces these devices. */
export function buildDevices(devices: readonly Device[]): Buffer {
  const count = new ByteWriter(4).uint32(devices.length).finish()
  return buildDeviceMessage(
    DEVICE_PACKET.deviceListAnnounce,
    Buffer.concat([count, ...devices.map(({ bytes }) => bytes)]),
  )
}

/** MajorFunction of a request. */
export const IO = {
  create: 0x0,
  close: 0x2,
  read: 0x3,
  write: 0x4,
  queryInformation: 0x5,
  setInformation: 0x6,
  queryVolume: 0xa,
  setVolume: 0xb,
  directory: 0xc,
  deviceControl: 0xe,
  lock: 0x11,
} as const

/** FsInformationClass of `setInformation`: the classes that change names and contents. */
export const SET_INFORMATION = {
  basic: 4,
  rename: 10,
  disposition: 13,
  allocation: 19,
  endOfFile: 20,
} as const

export interface IoRequest {
  device: number
  file: number
  /** CompletionId, repeated by the response. */
  completion: number
  /** One of IO, or an unknown function. */
  major: number
  minor: number
  details: Uint8Array
}

/** Parses a packet of type `ioRequest`, which the target sends. */
export function parseIoRequest(body: Uint8Array): IoRequest {
  const reader = new ByteReader(body, 'device request')
  const device = reader.uint32()
  const file = reader.uint32()
  const completion = reader.uint32()
  const major = reader.uint32()
  return { device, file, completion, major, minor: reader.uint32(), details: reader.rest() }
}

/** Bits of DesiredAccess for changes: write, append, attributes, delete, permissions, owner, generic all. */
const WRITING =
  0x2 | 0x4 | 0x10 | 0x40 | 0x100 | 0x10000 | 0x40000 | 0x80000 | 0x02000000 | 0x10000000 | 0x40000000
/** CreateDisposition FILE_OPEN: any other may create a file. */
const OPEN_EXISTING = 1
const CREATE_FOLDER = 0x1
const DELETE_ON_CLOSE = 0x1000

export interface CreateRequest {
  /** Path from the drive's root, with backslashes. Absent if it is malformed. */
  path: string | undefined
  isFolder: boolean
  /** The request changes the drive or opens a file for writing. */
  isWriting: boolean
  /** The file is deleted when it is closed. */
  isRemoved: boolean
}

/** Parses the details of a request of type `create`. */
export function parseCreate(details: Uint8Array): CreateRequest {
  const reader = new ByteReader(details, 'device create request')
  const access = reader.uint32()
  reader.skip(8 + 4 + 4)
  const disposition = reader.uint32()
  const options = reader.uint32()
  const length = reader.uint32()
  if (PATH_LIMIT < length) reader.fail(`a path of at most ${PATH_LIMIT} bytes was expected, found ${length}`)
  return {
    path: pathOf(reader.bytes(length)),
    isFolder: (options & CREATE_FOLDER) !== 0,
    isRemoved: (options & DELETE_ON_CLOSE) !== 0,
    isWriting: (access & WRITING) !== 0 || disposition !== OPEN_EXISTING || (options & DELETE_ON_CLOSE) !== 0,
  }
}

/** Returns the path, or undefined if bytes follow its end: only a peer looking for them would see those. */
function pathOf(bytes: Uint8Array): string | undefined {
  const text = utf16Text(bytes)
  const path = text.endsWith('\0') ? text.slice(0, -1) : text
  return bytes.length % 2 === 1 || path.includes('\0') ? undefined : path
}

/** Minor function of `directory`: list names. */
export const QUERY_DIRECTORY = 1

/** Parses a `directory` request for names. Returns the path with wildcards, or undefined if malformed. */
export function parseDirectoryQuery(details: Uint8Array): string | undefined {
  const reader = new ByteReader(details, 'device directory request')
  reader.skip(4 + 1)
  const length = reader.uint32()
  if (PATH_LIMIT < length) return undefined
  reader.skip(23)
  return pathOf(reader.bytes(length))
}

/** Most bytes of a change other than a rename. */
const CHANGE_LIMIT = 1024
/** Bytes of a rename before its path, and the most zeros after it, up to the next multiple of eight. */
const RENAME = { head: 6, padding: 7 } as const

export interface SetInformation {
  class: number
  /** Set if the class is `rename`. */
  newPath?: string
}

/** Parses a `setInformation` request, or returns undefined if it carries extra bytes or no path. */
export function parseSetInformation(details: Uint8Array): SetInformation | undefined {
  const reader = new ByteReader(details, 'device set information request')
  const fsClass = reader.uint32()
  const length = reader.uint32()
  reader.skip(24)
  const content = reader.bytes(length)
  if (fsClass !== SET_INFORMATION.rename) return length <= CHANGE_LIMIT ? { class: fsClass } : undefined
  const buffer = new ByteReader(content, 'device rename request')
  buffer.skip(2)
  const pathLength = buffer.uint32()
  if (PATH_LIMIT < pathLength)
    buffer.fail(`a path of at most ${PATH_LIMIT} bytes was expected, found ${pathLength}`)
  const newPath = pathOf(buffer.bytes(pathLength))
  const isPadded =
    length <= RENAME.head + pathLength + RENAME.padding && buffer.rest().every((byte) => byte === 0)
  return newPath !== undefined && isPadded ? { class: fsClass, newPath } : undefined
}

export interface IoCompletion {
  device: number
  completion: number
  /** NTSTATUS. */
  status: number
  details: Uint8Array
}

/** Parses a packet of type `ioCompletion`, which the client sends. */
export function parseIoCompletion(body: Uint8Array): IoCompletion {
  const reader = new ByteReader(body, 'device completion')
  const device = reader.uint32()
  const completion = reader.uint32()
  return { device, completion, status: reader.uint32(), details: reader.rest() }
}

const STATUS_ACCESS_DENIED = 0xc0000022

/** Builds a whole message that refuses the request, as the client would. */
export function buildIoRefusal({ device, completion, major }: IoRequest): Buffer {
  const writer = new ByteWriter(24).uint32(device).uint32(completion).uint32(STATUS_ACCESS_DENIED).uint32(0)
  // Adds a byte: a create's response ends with Information, and a write's with padding.
  if (major === IO.create || major === IO.write) writer.uint8(0)
  return buildDeviceMessage(DEVICE_PACKET.ioCompletion, writer.finish())
}
