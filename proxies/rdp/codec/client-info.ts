/** The Client Info PDU (MS-RDPBCGR 2.2.1.11): login, password and the session's start settings. */
import { Buffer } from 'node:buffer'
import { latin1 } from '../../bytes/text.ts'
import { ByteReader } from './reader.ts'
import { untilNul, utf16Bytes, utf16Text } from './utf16.ts'
import { ByteWriter } from './writer.ts'

/** Bytes of one text, including its terminator. */
export const INFO_TEXT_LIMIT = 512
/** Bytes of time zone, addresses, cookie and the fields added by newer clients. */
export const EXTENDED_INFO_LIMIT = 4096
const TIME_ZONE = 172

/** TS_INFO_PACKET's flags. */
export const INFO_FLAG = {
  mouse: 0x1,
  disableCtrlAltDel: 0x2,
  autologon: 0x8,
  unicode: 0x10,
  maximizeShell: 0x20,
  logonNotify: 0x40,
  compression: 0x80,
  enableWindowsKey: 0x100,
  compressionType: 0x1e00,
  remoteConsoleAudio: 0x2000,
  rail: 0x8000,
  logonErrors: 0x10000,
  mouseHasWheel: 0x20000,
  passwordIsSmartCardPin: 0x40000,
  noAudioPlayback: 0x80000,
  usingSavedCredentials: 0x100000,
  audioCapture: 0x200000,
  videoDisable: 0x400000,
  hidefRail: 0x2000000,
} as const

export interface ClientInfo {
  codePage: number
  flags: number
  domain: string
  login: string
  password: string
  /** The program requested instead of the desktop. */
  alternateShell: string
  workingFolder: string
  /** TS_EXTENDED_INFO_PACKET as received; empty if there is none. */
  extended: Uint8Array
}

/** Parses the bytes after the security header. The result is a copy. */
export function parseClientInfo(bytes: Uint8Array): ClientInfo {
  const reader = new ByteReader(bytes, 'client info')
  const codePage = reader.uint32()
  const flags = reader.uint32()
  const isUnicode = (flags & INFO_FLAG.unicode) !== 0
  const lengths = Array.from({ length: 5 }, () => reader.uint16())
  const terminator = isUnicode ? 2 : 1
  const texts = lengths.map((length) => {
    if (INFO_TEXT_LIMIT - terminator < length) {
      reader.fail(`a text of at most ${INFO_TEXT_LIMIT - terminator} bytes was expected, found ${length}`)
    }
    const text = reader.bytes(length)
    reader.skip(terminator)
    return untilNul(isUnicode ? utf16Text(text) : latin1(text))
  })
  const [domain, login, password, alternateShell, workingFolder] = texts as [
    string,
    string,
    string,
    string,
    string,
  ]
  if (EXTENDED_INFO_LIMIT < reader.remaining) {
    reader.fail(
      `extended information of at most ${EXTENDED_INFO_LIMIT} bytes was expected, found ${reader.remaining}`,
    )
  }
  const extended = Buffer.from(reader.rest())
  return { codePage, flags, domain, login, password, alternateShell, workingFolder, extended }
}

/** Always encodes as Unicode. Throws RangeError if a text is too long to be sent. */
export function buildClientInfo(info: ClientInfo): Buffer {
  const texts = [info.domain, info.login, info.password, info.alternateShell, info.workingFolder].map(
    utf16Bytes,
  )
  const writer = new ByteWriter(256).uint32(info.codePage).uint32((info.flags | INFO_FLAG.unicode) >>> 0)
  for (const text of texts) {
    if (INFO_TEXT_LIMIT - 2 < text.length) {
      throw new RangeError(
        `client info has texts of at most ${INFO_TEXT_LIMIT - 2} bytes, not ${text.length}`,
      )
    }
    writer.uint16(text.length)
  }
  for (const text of texts) writer.bytes(text).zeros(2)
  return writer.bytes(info.extended).finish()
}

export interface TargetLogon {
  domain: string
  login: string
  password: string
}

/** Returns the reason, for a user, why the logon cannot be sent, or undefined if it can. */
export function logonFlaw({ domain, login, password }: TargetLogon): string | undefined {
  const limit = INFO_TEXT_LIMIT / 2 - 1
  // Lengths count UTF-16 code units, as JavaScript's do.
  const isLong = Math.max(domain.length, login.length, password.length) > limit
  return isLong ? `RDP accepts logins and passwords of at most ${limit} characters` : undefined
}

/** xrdp refuses a client that lacks any of these. */
const EVERY_CLIENT =
  INFO_FLAG.mouse | INFO_FLAG.disableCtrlAltDel | INFO_FLAG.unicode | INFO_FLAG.maximizeShell

/**
 * Returns the client's information with the target's account: automatic logon, and no compression, smart
 * card, earlier session or program.
 */
export function forTarget(info: ClientInfo, logon: TargetLogon): ClientInfo {
  const cleared =
    INFO_FLAG.compression |
    INFO_FLAG.compressionType |
    INFO_FLAG.passwordIsSmartCardPin |
    INFO_FLAG.rail |
    INFO_FLAG.hidefRail |
    INFO_FLAG.usingSavedCredentials
  const set = EVERY_CLIENT | INFO_FLAG.autologon | INFO_FLAG.logonNotify | INFO_FLAG.logonErrors
  return {
    ...info,
    ...logon,
    flags: ((info.flags & ~cleared) | set) >>> 0,
    alternateShell: '',
    workingFolder: '',
    extended: withoutCookie(info.extended),
  }
}

/** Returns the extended information with an auto-reconnect cookie of length 0. */
function withoutCookie(extended: Uint8Array): Uint8Array {
  if (extended.length === 0) return extended
  const reader = new ByteReader(extended, 'client info, extended')
  reader.skip(2)
  reader.skip(reader.uint16())
  reader.skip(reader.uint16())
  // Old clients end the packet after any of these fields.
  if (reader.remaining < TIME_ZONE + 4 + 4) return extended
  reader.skip(TIME_ZONE + 4 + 4)
  if (reader.remaining < 2) return extended
  const before = extended.subarray(0, reader.offset)
  reader.skip(reader.uint16())
  return Buffer.concat([before, Uint8Array.of(0, 0), reader.rest()])
}
