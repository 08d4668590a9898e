/**
 * The main request of a session channel, the one that gives it its purpose (RFC 4254 6.5): what it is, the
 * right it needs, and the words in which a refusal is explained.
 */
import type { FileJudge } from '../../src/model/file-judge.ts'
import type { Right } from '../../src/model/rights.ts'
import { classifyExec, classifySubsystem, type ExecCommand, rightFor } from './codec/classify.ts'
import type { ChannelRequest } from './codec/messages.ts'
import { displayText, latin1 } from './codec/reader.ts'
import { parseExec, parseSubsystem } from './codec/requests.ts'
import type { Recorded } from './recorder/factory.ts'
import { leastRight } from './sftp/permits.ts'

export interface MainRequest {
  right: Right
  /** What it runs; an exec's command is the bytes that the client sent. */
  program: Recorded
}

/** A request that no right opens: the text names it for the user and the audit. */
export interface RefusedRequest {
  refused: string
}

export const MAIN_REQUESTS: ReadonlySet<string> = new Set(['shell', 'exec', 'subsystem'])

/**
 * `request.type` is one of MAIN_REQUESTS. On a terminal every exec is a plain command: what a transfer sends there
 * cannot be told from keys, so it would go around the record of its files. Throws MalformedError.
 */
export function mainRequest(
  request: ChannelRequest,
  onTerminal: boolean,
  rights: ReadonlySet<Right>,
): MainRequest | RefusedRequest {
  if (request.type === 'shell') return { right: 'SSH_SHELL', program: { kind: 'shell' } }
  if (request.type === 'subsystem') {
    const name = parseSubsystem(request.data)
    if (classifySubsystem(name) === 'sftp') {
      return { right: leastRight(rights), program: { kind: 'sftp' } }
    }
    return { refused: `subsystem ${JSON.stringify(latin1(name).slice(0, 64))}` }
  }
  const command = parseExec(request.data)
  const classified: ExecCommand = onTerminal ? { kind: 'command' } : classifyExec(command)
  const right = rightFor(classified.kind, classified.kind === 'scp' ? classified.direction : undefined)
  if (right === undefined) return { refused: `command of kind ${classified.kind}` }
  return { right, program: { kind: 'exec', command, classified } }
}

/** The command for people and recordings. */
export function commandText({ program }: MainRequest): string | undefined {
  return program.kind === 'exec' ? displayText(program.command) : undefined
}

/**
 * The request as it goes to the target: who may not run commands has only the rebuilt scp command sent, not the
 * text that was typed.
 */
export function asSent(request: MainRequest, rights: ReadonlySet<Right>): MainRequest {
  const { program } = request
  if (program.kind !== 'exec' || program.classified.kind !== 'scp' || rights.has('SSH_REMOTE_COMMAND'))
    return request
  return { ...request, program: { ...program, command: program.classified.forwarded } }
}

/**
 * Why the rules for files cannot be applied to an scp command: it cannot be asked where a path leads on the target,
 * so a rule that depends on that would be no rule. undefined: they can, or it is none.
 */
export function unjudgedScp({ program }: MainRequest, rules: FileJudge): string | undefined {
  if (program.kind !== 'exec' || program.classified.kind !== 'scp' || !rules.asksPath) return undefined
  return 'there are rules on paths here, and old scp cannot be held to them: use sftp, or scp without -O'
}

const MEANING: Record<Right, string> = {
  SSH_SHELL: 'open a shell',
  SSH_REMOTE_COMMAND: 'run commands',
  SSH_SCP_UP: 'copy files to it with scp',
  SSH_SCP_DOWN: 'copy files from it with scp',
  SFTP_SESSION: 'use SFTP',
  SSH_X11: 'show windows of programs that run',
  SSH_DIRECT_TCPIP: 'forward connections',
  SSH_REVERSE_TCPIP: 'listen for connections',
  SSH_DIRECT_UNIXSOCK: 'connect to Unix sockets',
  SSH_REVERSE_UNIXSOCK: 'listen on Unix sockets',
  SSH_AUTH_AGENT: 'use an agent',
}

/** The one line that the user reads when a right is missing. */
export function missingRight(right: Right, device: string): string {
  return `you may not ${MEANING[right]} on ${device}: the right ${right} is missing`
}
