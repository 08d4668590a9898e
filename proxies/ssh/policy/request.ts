/**
 * The main request of a session channel, the one that gives it its purpose (RFC 4254 6.5): what it is, the
 * right it needs, and the words in which a refusal is explained.
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
  /** What it runs; an exec's command is the bytes that the client sent. */
  program: Recorded
  /** The command that goes to the target instead: of who may not run commands, only a rebuilt scp. */
  rebuilt?: Uint8Array
}

/** What decides about a main request. */
export interface Allowed {
  rights: ReadonlySet<Right>
  options: { readonly subsystems: readonly string[] }
  target: { readonly protocol: Protocol; readonly device: string }
}

/** A request that no right opens: the text names it for the user and the audit. */
export interface RefusedRequest {
  refused: string
  /** Why, where it is not just that it is not allowed. */
  reason?: string
}

export const MAIN_REQUESTS: ReadonlySet<string> = new Set(['shell', 'exec', 'subsystem'])

/**
 * `request.type` is one of MAIN_REQUESTS. On a terminal every exec is a plain command: what a transfer sends there
 * cannot be told from keys, so it would go around the record of its files. Nor is there SFTP: by the modes that the
 * client names a terminal drops and changes bytes, so the server would read other packets than the filter and the
 * recorder have read. Throws MalformedError.
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

/** How an scp begins that is refused to who may copy files but not run commands: the words say what to use instead. */
const SCP = 'scp '
const COPIES: readonly Right[] = ['SSH_SCP_UP', 'SSH_SCP_DOWN', 'SFTP_SESSION']

/** Where there is nothing but a terminal, a shell is what goes on in it. */
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

/** The forced command that is the SFTP subsystem, by its bytes; with options it is a command that no target has. */
const INTERNAL_SFTP = 'internal-sftp'

/** A main request on its way to the target. */
export interface Asked {
  request: ChannelRequest
  /** The whole message; its recipient is set when it goes. */
  payload: Buffer
  /** A message that goes before it. */
  before?: Buffer
}

/**
 * What a client's main request asks for: itself, or under a forced command that, which finds the client's command or
 * subsystem in SSH_ORIGINAL_COMMAND if the target accepts the variable. `payload` is kept.
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

/** The command for people and recordings. A rule for commands can name a subsystem so too. */
export function commandText({ program }: MainRequest): string | undefined {
  if (program.kind === 'subsystem') return `subsystem ${program.name}`
  return program.kind === 'exec' ? displayText(program.command) : undefined
}

/** The request as it goes to the target, and into the recording. */
export function asSent(request: MainRequest): MainRequest {
  const { program, rebuilt } = request
  if (program.kind !== 'exec' || rebuilt === undefined) return request
  return { ...request, program: { ...program, command: rebuilt } }
}

/**
 * Why the rules for files cannot be applied to an scp command: it cannot be asked where a path leads on the target, nor
 * what a link or a glob of the shell stands for, so a rule that depends on a name would be no rule. undefined: they can,
 * or it is none.
 */
export function unjudgedScp({ program }: MainRequest, rules: FileJudge): string | undefined {
  if (program.kind !== 'exec' || program.classified.kind !== 'scp' || !rules.asksName) return undefined
  return 'there are rules on names of files here, and old scp cannot be held to them: use sftp, or scp without -O'
}
