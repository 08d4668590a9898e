/** Share data that is neither picture nor input: a session's start, its errors and its end. */
import type { Buffer } from 'node:buffer'
import { ByteReader } from './reader.ts'
import { DATA_PDU, type ShareData } from './share.ts'
import { ByteWriter } from './writer.ts'

/** TS_CONTROL_PDU's action. */
export const CONTROL_ACTION = { requestControl: 1, grantedControl: 2, detach: 3, cooperate: 4 } as const

const SYNCHRONIZE_MESSAGE = 1
/** FONTLIST_FIRST and FONTLIST_LAST: the whole list in one PDU. */
const FIRST_AND_LAST = 3
const FONT_LIST_ENTRY = 50
const FONT_MAP_ENTRY = 4

/** Builds the PDU of either side; `target` is the user at the other end. */
export function buildSynchronize(shareId: number, target: number): ShareData {
  const body = new ByteWriter(4).uint16(SYNCHRONIZE_MESSAGE).uint16(target).finish()
  return { shareId, type: DATA_PDU.synchronize, body }
}

/** `grantee` and `control` are 0, except when control is granted: then the user's id and SERVER_USER. */
export function buildControl(shareId: number, action: number, grantee = 0, control = 0): ShareData {
  const body = new ByteWriter(8).uint16(action).uint16(grantee).uint32(control).finish()
  return { shareId, type: DATA_PDU.control, body }
}

export function parseControlAction(body: Uint8Array): number {
  return new ByteReader(body, 'control').uint16()
}

/** Builds a client's empty font list. */
export function buildFontList(shareId: number): ShareData {
  return { shareId, type: DATA_PDU.fontList, body: fonts(0, FONT_LIST_ENTRY) }
}

/** Builds a server's font map; the server may draw after it. */
export function buildFontMap(shareId: number): ShareData {
  return { shareId, type: DATA_PDU.fontMap, body: fonts(0, FONT_MAP_ENTRY) }
}

function fonts(count: number, entry: number): Buffer {
  return new ByteWriter(8).uint16(count).uint16(count).uint16(FIRST_AND_LAST).uint16(entry).finish()
}

/** Requests that this part of the desktop, in pixels, be redrawn (MS-RDPBCGR 2.2.11.2). */
export function buildRefreshRectangle(
  shareId: number,
  { left, top, width, height }: { left: number; top: number; width: number; height: number },
): ShareData {
  const body = new ByteWriter(12).uint8(1).zeros(3)
  // right and bottom are inclusive.
  body
    .uint16(left)
    .uint16(top)
    .uint16(left + width - 1)
    .uint16(top + height - 1)
  return { shareId, type: DATA_PDU.refreshRectangle, body: body.finish() }
}

/** Requests drawing of the whole desktop of this size (MS-RDPBCGR 2.2.11.3). */
export function buildAllowOutput(
  shareId: number,
  { width, height }: { width: number; height: number },
): ShareData {
  const body = new ByteWriter(12).uint8(1).zeros(3).zeros(4)
  body.uint16(width - 1).uint16(height - 1)
  return { shareId, type: DATA_PDU.suppressOutput, body: body.finish() }
}

/** Codes of Set Error Info (MS-RDPBCGR 2.2.5.1.1) that the bastion sends or has messages for. */
export const ERROR_INFO = {
  none: 0x0,
  administratorDisconnect: 0x1,
  administratorLogoff: 0x2,
  idleTimeout: 0x3,
  logonTimeout: 0x4,
  otherConnection: 0x5,
  outOfMemory: 0x6,
  serverDenied: 0x7,
  insufficientPrivileges: 0x9,
  freshCredentialsRequired: 0xa,
  disconnectedByUser: 0xb,
  loggedOffByUser: 0xc,
  winlogonCrash: 0x17,
  csrssCrash: 0x18,
  serverShutdown: 0x19,
  serverReboot: 0x1a,
  noLicenseServer: 0x101,
  noLicense: 0x102,
  noRemoteConnections: 0x10a,
  destinationNotFound: 0x400,
  noServerFree: 0x408,
  graphicsModeNotSupported: 0x112d,
} as const

export function buildErrorInfo(shareId: number, code: number): ShareData {
  return { shareId, type: DATA_PDU.setErrorInfo, body: new ByteWriter(4).uint32(code).finish() }
}

export function parseErrorInfo(body: Uint8Array): number {
  return new ByteReader(body, 'set error info').uint32()
}

/** Parses suppressOutput: true allows drawing, and false suppresses it until the next such PDU. */
export function allowsOutput(body: Uint8Array): boolean {
  return new ByteReader(body, 'suppress output').uint8() === 1
}

/** infoType of Save Session Info. */
const LOGON_INFO = { short: 0, long: 1, plain: 2, extended: 3 } as const
const EXTENDED_FIELD = { autoReconnect: 0x1, logonErrors: 0x2 } as const
const EXTENDED_PADDING = 570
/** Bytes of a field: a cookie has 28, and only the length of other fields is read. */
const FIELD_LIMIT = 4096

export type SessionInfo =
  /** A user has logged on. */
  | { kind: 'logon' }
  /** A logon in progress or failed: LOGON_NOTIFICATION and its data. */
  | { kind: 'logon-error'; type: number; data: number }
  /** Not about a logon: an auto-reconnect cookie, or an unknown type. */
  | { kind: 'other' }

/** LOGON_MSG_…: ErrorNotificationType of a logon error (MS-RDPBCGR 2.2.10.1.1.4.1.1). */
export const LOGON_NOTIFICATION = {
  disconnectRefused: 0xfffffff9,
  noPermission: 0xfffffffa,
  bumpOptions: 0xfffffffb,
  reconnectOptions: 0xfffffffc,
  sessionTerminate: 0xfffffffd,
  continueLogon: 0xfffffffe,
} as const

/** LOGON_…: ErrorNotificationData, or a session id if the type is about a session. */
export const LOGON_ERROR = {
  failedBadPassword: 0,
  failedUpdatePassword: 1,
  failedOther: 2,
  warning: 3,
} as const

/** Parses share data of type saveSessionInfo, without its names: the bastion has sent them itself. */
export function parseSessionInfo(body: Uint8Array): SessionInfo {
  const reader = new ByteReader(body, 'save session info')
  const type = reader.uint32()
  if (type === LOGON_INFO.short || type === LOGON_INFO.long || type === LOGON_INFO.plain)
    return { kind: 'logon' }
  if (type !== LOGON_INFO.extended) return { kind: 'other' }
  reader.skip(2)
  const fields = reader.uint32()
  if (fields & EXTENDED_FIELD.autoReconnect) readField(reader)
  if (!(fields & EXTENDED_FIELD.logonErrors)) return { kind: 'other' }
  const error = new ByteReader(readField(reader), 'logon error')
  return { kind: 'logon-error', type: error.uint32(), data: error.uint32() }
}

function readField(reader: ByteReader): Uint8Array {
  const length = reader.uint32()
  if (FIELD_LIMIT < length)
    reader.fail(`a field of at most ${FIELD_LIMIT} bytes was expected, found ${length}`)
  return reader.bytes(length)
}

/**
 * Removes the auto-reconnect cookie from Save Session Info, since a client could use it to log on to the
 * target without the bastion. Returns undefined if nothing is left.
 */
export function withoutReconnectCookie(body: Uint8Array): Uint8Array | undefined {
  const reader = new ByteReader(body, 'save session info')
  const type = reader.uint32()
  if (type !== LOGON_INFO.extended) return body
  reader.skip(2)
  const fields = reader.uint32()
  if (!(fields & EXTENDED_FIELD.autoReconnect)) return body
  readField(reader)
  if (!(fields & EXTENDED_FIELD.logonErrors)) return undefined
  const error = readField(reader)
  const writer = new ByteWriter().uint32(type).uint16(6 + 4 + error.length)
  return writer
    .uint32(EXTENDED_FIELD.logonErrors)
    .uint32(error.length)
    .bytes(error)
    .zeros(EXTENDED_PADDING)
    .finish()
}
