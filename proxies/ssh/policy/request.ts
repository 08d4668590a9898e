/**
 * The main request of a session channel, which gives the channel its purpose (RFC 4254 6.5): its kind, the
 * right it needs, and the text of a refusal.
 */
import type { Buffer } from 'node:buffer'
import type { FileJudge } from '../../../src/model/file-judge.ts'
import {
  isTerminalProtocol,
  type Protocol,
  type Right,
  type TerminalProtocol,
} from '../../../src/model/rights.ts'
import { MAX_SUBSYSTEM_NAME } from '../../../src/model/ssh-options.ts'
import { displayText, latin1 } from '../../bytes/text.ts'
import { missingRight } from '../../wording/missing-right.ts'
import { buildEnv, buildExec, buildSubsystem } from '../codec/build.ts'
import { classifyExec, classifySubsystem, type ExecCommand, rightFor } from '../codec/classify.ts'
import { type ChannelRequest, parseChannelRequest } from '../codec/messages.ts'
import { parseExec, parseSubsystem } from '../codec/requests.ts'
import type { Recorded } from '../recorder/factory.ts'
import { leastRight } from '../sftp/permits.ts'

export interface MainRequest {
  right: Right
  /** The requested program; an exec's command is the client's exact bytes. */
  program: Recorded
  /** The command sent to the target instead. Without SSH_REMOTE_COMMAND, only a rebuilt scp is sent. */
  rebuilt?: Uint8Array
}

/** The rights and options that decide about a main request. */
export interface Allowed {
  rights: ReadonlySet<Right>
  options: { readonly subsystems: readonly string[] }
  target: { readonly protocol: Protocol; readonly device: string }
}

/** A request that no right allows. The text names it for the user and the audit log. */
export interface RefusedRequest {
  refused: string
  /** The reason, if there is more to report than that it is not allowed. */
  reason?: string
}

export const MAIN_REQUESTS: ReadonlySet<string> = new Set(['shell', 'exec', 'subsystem'])

/**
 * Parses a main request; `request.type` is one of MAIN_REQUESTS. On a terminal, every exec is a plain
 * command: a transfer's data cannot be distinguished from keys there, so its files would escape the records.
 * SFTP is refused on a terminal: with the client's terminal modes, a terminal drops and changes bytes, so the
 * server would read other packets than the filter and the recorder. Throws MalformedError.
 */
export function mainRequest(
  request: ChannelRequest,
  onTerminal: boolean,
  { rights, options, target }: Allowed,
): MainRequest | RefusedRequest {
  if (isTerminalProtocol(target.protocol)) return terminalRequest(request, onTerminal, target.protocol)
  if (request.type === 'shell') return { right: 'SSH_SHELL', program: { kind: 'shell' } }
  if (request.type === 'subsystem') {
    const name = parseSubsystem(request.data)
    if (classifySubsystem(name) === 'sftp') {
      if (onTerminal) return { refused: 'SFTP on a terminal' }
      return { right: leastRight(rights), program: { kind: 'sftp' } }
    }
    const text = latin1(name)
    if (!options.subsystems.includes(text))
      return { refused: `subsystem ${JSON.stringify(text.slice(0, MAX_SUBSYSTEM_NAME))}` }
    return { right: 'SSH_REMOTE_COMMAND', program: { kind: 'subsystem', name: text } }
  }
  const command = parseExec(request.data)
  const classified: ExecCommand = onTerminal ? { kind: 'command' } : classifyExec(command)
  const main: MainRequest = { right: rightFor(classified), program: { kind: 'exec', command, classified } }
  if (onTerminal || rights.has('SSH_REMOTE_COMMAND')) return main
  if (classified.kind === 'scp' && classified.forwarded !== undefined)
    return { ...main, rebuilt: classified.forwarded }
  if (latin1(command.subarray(0, SCP.length)) !== SCP || !COPIES.some((right) => rights.has(right)))
    return main
  return {
    refused: 'SSH_REMOTE_COMMAND',
    reason: `${missingRight('SSH_REMOTE_COMMAND', target.device)}, and a shell could take this for more than a copy: use scp without -O`,
  }
}

/** Begin of an scp that is refused without the right to run commands: the text names the alternative. */
const SCP = 'scp '
const COPIES: readonly Right[] = ['SSH_SCP_UP', 'SSH_SCP_DOWN', 'SFTP_SESSION']

/** On a target that only has a terminal, the one program is a shell. */
function terminalRequest(
  { type }: ChannelRequest,
  onTerminal: boolean,
  protocol: TerminalProtocol,
): MainRequest | RefusedRequest {
  const speaks = `the target speaks ${protocol === 'TELNET' ? 'Telnet' : 'rlogin'}`
  if (type !== 'shell')
    return { refused: type, reason: `${speaks}: it shows a terminal, and takes no commands and files` }
  if (!onTerminal)
    return { refused: 'shell without a terminal', reason: `${speaks}: it needs a terminal, as by ssh -tt` }
  return { right: protocol, program: { kind: 'shell' } }
}

/** The forced command for the SFTP subsystem, by its bytes. With options it would be a plain command. */
const INTERNAL_SFTP = 'internal-sftp'

/** A main request to be sent to the target. */
export interface Asked {
  request: ChannelRequest
  /** The whole message. Its recipient is set when it is sent. */
  payload: Buffer
  /** A message to be sent before it. */
  before?: Buffer
}

/**
 * Returns a client's main request, or the forced command in its place. A forced command finds the client's
 * command or subsystem in SSH_ORIGINAL_COMMAND, if the target accepts the variable. `payload` is kept.
 */
export function askedOf(payload: Buffer, forced: Uint8Array | undefined): Asked {
  const request = parseChannelRequest(payload)
  if (forced === undefined) return { request, payload }
  const instead =
    latin1(forced) === INTERNAL_SFTP
      ? buildSubsystem(0, request.wantReply, 'sftp')
      : buildExec(0, request.wantReply, forced)
  const original = request.type === 'shell' ? undefined : parseExec(request.data)
  return {
    request: parseChannelRequest(instead),
    payload: instead,
    ...(original && { before: buildEnv(0, false, 'SSH_ORIGINAL_COMMAND', original) }),
  }
}

/** Returns the command for display and recordings. Rules for commands can match a subsystem by it too. */
export function commandText({ program }: MainRequest): string | undefined {
  if (program.kind === 'subsystem') return `subsystem ${program.name}`
  return program.kind === 'exec' ? displayText(program.command) : undefined
}

/** Returns the request as it is sent to the target and recorded. */
export function asSent(request: MainRequest): MainRequest {
  const { program, rebuilt } = request
  if (program.kind !== 'exec' || rebuilt === undefined) return request
  return { ...request, program: { ...program, command: rebuilt } }
}

/**
 * Returns why file rules cannot be applied to an scp command, or undefined if they can or it is none. The
 * target cannot be asked where an scp's path leads, nor what a link or a glob of the shell stands for, so a
 * rule that depends on a name would have no effect.
 */
export function unjudgedScp({ program }: MainRequest, rules: FileJudge): string | undefined {
  if (program.kind !== 'exec' || program.classified.kind !== 'scp' || !rules.asksName) return undefined
  return 'there are rules on names of files here, and old scp cannot be held to them: use sftp, or scp without -O'
}
