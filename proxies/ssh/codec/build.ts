/**
 * Builders of the connection-layer messages (RFC 4254) that the bastion sends itself. Layouts stand above the
 * parsers in messages.ts and requests.ts. Strings are written as UTF-8, bytes unchanged.
 */
import type { Buffer } from 'node:buffer'
import type { ChannelOpen, ChannelOpenConfirmation, GlobalRequest, OpenFailureReason } from './messages.ts'
import { EXTENDED_DATA_STDERR, MSG } from './messages.ts'
import type { PtyRequest } from './requests.ts'
import { Writer } from './writer.ts'

const NOTHING = new Uint8Array(0)

export function buildGlobalRequest(request: GlobalRequest): Buffer {
  return new Writer(16 + request.name.length + request.data.length)
    .byte(MSG.globalRequest)
    .string(request.name)
    .boolean(request.wantReply)
    .raw(request.data)
    .finish()
}

/** `data` is the request-specific data of the reply; most requests have none. */
export function buildRequestSuccess(data: Uint8Array = NOTHING): Buffer {
  return new Writer(1 + data.length).byte(MSG.requestSuccess).raw(data).finish()
}

export function buildRequestFailure(): Buffer {
  return new Writer(1).byte(MSG.requestFailure).finish()
}

export function buildChannelOpen(open: ChannelOpen): Buffer {
  return new Writer(32 + open.type.length + open.typeData.length)
    .byte(MSG.channelOpen)
    .string(open.type)
    .uint32(open.sender)
    .uint32(open.window)
    .uint32(open.maxPacket)
    .raw(open.typeData)
    .finish()
}

export function buildChannelOpenConfirmation(
  confirmation: Omit<ChannelOpenConfirmation, 'typeData'> & { typeData?: Uint8Array },
): Buffer {
  const typeData = confirmation.typeData ?? NOTHING
  return new Writer(17 + typeData.length)
    .byte(MSG.channelOpenConfirmation)
    .uint32(confirmation.recipient)
    .uint32(confirmation.sender)
    .uint32(confirmation.window)
    .uint32(confirmation.maxPacket)
    .raw(typeData)
    .finish()
}

export function buildChannelOpenFailure(
  recipient: number,
  reason: OpenFailureReason,
  description: string,
): Buffer {
  return onChannel(MSG.channelOpenFailure, recipient).uint32(reason).string(description).string('').finish()
}

export function buildWindowAdjust(recipient: number, bytes: number): Buffer {
  return onChannel(MSG.channelWindowAdjust, recipient).uint32(bytes).finish()
}

export function buildData(recipient: number, data: string | Uint8Array): Buffer {
  return onChannel(MSG.channelData, recipient, data.length + 16)
    .string(data)
    .finish()
}

export function buildExtendedData(
  recipient: number,
  data: string | Uint8Array,
  type = EXTENDED_DATA_STDERR,
): Buffer {
  return onChannel(MSG.channelExtendedData, recipient, data.length + 16)
    .uint32(type)
    .string(data)
    .finish()
}

export function buildEof(recipient: number): Buffer {
  return onChannel(MSG.channelEof, recipient).finish()
}

export function buildClose(recipient: number): Buffer {
  return onChannel(MSG.channelClose, recipient).finish()
}

export function buildChannelSuccess(recipient: number): Buffer {
  return onChannel(MSG.channelSuccess, recipient).finish()
}

export function buildChannelFailure(recipient: number): Buffer {
  return onChannel(MSG.channelFailure, recipient).finish()
}

/** Builds any channel request. `data` is its type-specific part; `type` is ASCII. */
export function buildChannelRequest(
  recipient: number,
  type: string,
  wantReply: boolean,
  data: Uint8Array = NOTHING,
): Buffer {
  return onChannel(MSG.channelRequest, recipient, 16 + type.length + data.length)
    .string(type)
    .boolean(wantReply)
    .raw(data)
    .finish()
}

export function buildPtyRequest(recipient: number, wantReply: boolean, pty: PtyRequest): Buffer {
  const data = new Writer(64 + pty.modes.length)
    .uint32(pty.terminal.length)
    .raw(Uint8Array.from(pty.terminal, (character) => character.charCodeAt(0)))
    .uint32(pty.columns)
    .uint32(pty.rows)
    .uint32(pty.widthPixels)
    .uint32(pty.heightPixels)
    .string(pty.modes)
    .finish()
  return buildChannelRequest(recipient, 'pty-req', wantReply, data)
}

export function buildShell(recipient: number, wantReply: boolean): Buffer {
  return buildChannelRequest(recipient, 'shell', wantReply)
}

/** Builds an exec request, for example with a rebuilt SCP command. */
export function buildExec(recipient: number, wantReply: boolean, command: string | Uint8Array): Buffer {
  return buildChannelRequest(
    recipient,
    'exec',
    wantReply,
    new Writer(4 + command.length).string(command).finish(),
  )
}

export function buildSubsystem(recipient: number, wantReply: boolean, name: string | Uint8Array): Buffer {
  return buildChannelRequest(
    recipient,
    'subsystem',
    wantReply,
    new Writer(4 + name.length).string(name).finish(),
  )
}

export function buildEnv(
  recipient: number,
  wantReply: boolean,
  name: string,
  value: string | Uint8Array,
): Buffer {
  return buildChannelRequest(recipient, 'env', wantReply, new Writer(64).string(name).string(value).finish())
}

export function buildExitStatus(recipient: number, status: number): Buffer {
  return buildChannelRequest(recipient, 'exit-status', false, new Writer(4).uint32(status).finish())
}

function onChannel(number: number, recipient: number, size = 32): Writer {
  return new Writer(size).byte(number).uint32(recipient)
}
