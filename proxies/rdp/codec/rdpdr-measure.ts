/**
 * How much of a message about a device is what the message says it is, and how much of that is somebody's data: contents of
 * files, jobs of printers, what goes to a port or a card. By what it carries, not by what it says of its success. What is
 * behind that means nothing to anybody, but for two that have agreed to use it.
 */
import { DEVICE_PACKET, IO, type IoRequest, QUERY_DIRECTORY } from './rdpdr.ts'
import { ByteReader } from './reader.ts'

export interface Measure {
  /** Bytes of the details that belong to it. */
  length: number
  /** Of those, bytes of data; paths among them, which are told of as such or count. */
  content: number
}

/** Numbers and padding of any request, before what has a length of its own (MS-RDPEFS 2.2.1.4 and 2.2.3.3). */
const REQUEST_HEAD = 32
/** Answers without data: one number and a byte of padding. */
const SHORT_ANSWER = 5
/** An answer's length of what follows. */
const ANSWER_HEAD = 4
/** Names, sizes and dates of one file, or of a volume, have less; what is more than that is data. */
export const PLAIN_LIMIT = 1024

/** A lock of a range of a file, and the most that one request has. */
const LOCK = { count: 8, length: 16, most: 64 } as const
/** What a change of a file has: dates and attributes, or a size. What is more than that is data. */
const CHANGE_LENGTH = 40

/** Where a request's details have the length of what is behind their head. */
const LENGTH_AT: Readonly<Record<number, number>> = {
  [IO.create]: 28,
  [IO.write]: 0,
  [IO.queryInformation]: 4,
  [IO.setInformation]: 4,
  [IO.queryVolume]: 4,
  [IO.setVolume]: 4,
  [IO.deviceControl]: 4,
}

/** Whether a request is one of those that devices are asked by. */
export function isKnownRequest(major: number): boolean {
  return KNOWN.has(major)
}
const KNOWN: ReadonlySet<number> = new Set(Object.values(IO))

export function measureRequest({ major, minor, details }: IoRequest): Measure {
  const behind = behindHead(major, minor, details)
  const length = Math.min(details.length, REQUEST_HEAD + behind)
  const carried = Math.max(0, length - REQUEST_HEAD)
  return { length, content: Math.max(0, carried - (PLAIN[major] ?? PLAIN_LIMIT)) }
}

/** Bytes that are no data, by request. */
const PLAIN: Readonly<Record<number, number>> = {
  [IO.create]: 0,
  [IO.write]: 0,
  [IO.directory]: 0,
  [IO.deviceControl]: 0,
  [IO.setInformation]: CHANGE_LENGTH,
}

function behindHead(major: number, minor: number, details: Uint8Array): number {
  if (major === IO.directory) return minor === QUERY_DIRECTORY ? uint32At(details, 5) : 0
  if (major === IO.lock) return LOCK.length * Math.min(LOCK.most, uint32At(details, LOCK.count))
  const at = LENGTH_AT[major]
  return at === undefined ? 0 : uint32At(details, at)
}

/** `major`: of the request that it answers. */
export function measureAnswer(major: number, details: Uint8Array): Measure {
  switch (major) {
    case IO.read:
    case IO.deviceControl:
    case IO.queryInformation:
    case IO.queryVolume:
    case IO.directory: {
      const length = Math.min(details.length, ANSWER_HEAD + Math.max(1, uint32At(details, 0)))
      const carried = Math.max(0, Math.min(length - ANSWER_HEAD, uint32At(details, 0)))
      const isData = major === IO.read || major === IO.deviceControl
      return { length, content: isData ? carried : Math.max(0, carried - PLAIN_LIMIT) }
    }
    default:
      return { length: Math.min(details.length, SHORT_ANSWER), content: 0 }
  }
}

/** Bytes of a packet's body that mean anything; undefined: of others it is not known here. */
export function lengthOfPacket(packet: number, body: Uint8Array): number | undefined {
  switch (packet) {
    case DEVICE_PACKET.serverAnnounce:
    case DEVICE_PACKET.clientIdConfirm:
    case DEVICE_PACKET.deviceReply:
      return 8
    case DEVICE_PACKET.userLoggedOn:
      return 0
    case DEVICE_PACKET.clientName:
    case DEVICE_PACKET.serverCapability:
    case DEVICE_PACKET.clientCapability:
      return PLAIN_LIMIT
    case DEVICE_PACKET.deviceListRemove:
      return 4 + 4 * uint32At(body, 0)
    default:
      return undefined
  }
}

/** 0 where the details end before. */
function uint32At(details: Uint8Array, at: number): number {
  return details.length < at + 4 ? 0 : new ByteReader(details, 'device message', at).uint32()
}
