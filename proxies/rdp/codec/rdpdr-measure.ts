/**
 * Measures messages about devices: the bytes that belong to the message, and how many of those are user data
 * (contents of files, print jobs, data of ports and cards). Goes by the bytes carried, not by the status they
 * report. Bytes after the end are ignored by every peer, so two peers could use them as a hidden channel.
 */
import { DEVICE_PACKET, IO, type IoRequest, QUERY_DIRECTORY } from './rdpdr.ts'
import { ByteReader } from './reader.ts'

export interface Measure {
  /** Bytes of the details that belong to the message. */
  length: number
  /** Bytes of data among them. Paths count too, unless they are logged as paths. */
  content: number
}

/** Bytes of a request's fixed part, before a field of variable length (MS-RDPEFS 2.2.1.4 and 2.2.3.3). */
const REQUEST_HEAD = 32
/** Bytes of a response without data: one number and a byte of padding. */
const SHORT_ANSWER = 5
/** Bytes of a response's length field. */
const ANSWER_HEAD = 4
/** Most bytes for names, sizes and dates of one file or volume. Any excess counts as data. */
export const PLAIN_LIMIT = 1024

/** Bytes per locked range of a file, and the most ranges in one request. */
const LOCK = { count: 8, length: 16, most: 64 } as const
/** Most bytes of a change of a file: dates and attributes, or a size. Any excess counts as data. */
const CHANGE_LENGTH = 40

/** Offset, per request, of the length of the data after the fixed part. */
const LENGTH_AT: Readonly<Record<number, number>> = {
  [IO.create]: 28,
  [IO.write]: 0,
  [IO.queryInformation]: 4,
  [IO.setInformation]: 4,
  [IO.queryVolume]: 4,
  [IO.setVolume]: 4,
  [IO.deviceControl]: 4,
}

/** Reports whether this is a request that devices support. */
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

/** Bytes per request that are not data. */
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

/** `major` is that of the request it responds to. */
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

/** Returns the meaningful bytes of a packet's body, or undefined if the packet's length is not known. */
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

/** Returns 0 if the details end before the field. */
function uint32At(details: Uint8Array, at: number): number {
  return details.length < at + 4 ? 0 : new ByteReader(details, 'device message', at).uint32()
}
