/**
 * The main request of a session channel, the one that gives it its purpose (RFC 4254 6.5): what it is, the
 * right it needs, and the words in which a refusal is explained.
 */
import type { Right } from '../../src/model/rights.ts'
import type { ChannelOpen as ChannelOpenFrame } from '../../recordings/frames.ts'
import { classifyExec, classifySubsystem, type ExecCommand, rightFor } from './codec/classify.ts'
import type { ChannelRequest } from './codec/messages.ts'
import { displayText, latin1 } from './codec/reader.ts'
import { parseExec, parseSubsystem } from './codec/requests.ts'

export interface MainRequest {
  kind: ChannelOpenFrame['kind']
  right: Right
  /** The exec's command as the client sent it. */
  command?: Uint8Array
  exec?: ExecCommand
}

/** A request that no right opens: `what` names it for the user and the audit. */
export interface RefusedRequest {
  kind: 'refused'
  what: string
}

export const MAIN_REQUESTS: ReadonlySet<string> = new Set(['shell', 'exec', 'subsystem'])

/** `request.type` is one of MAIN_REQUESTS. Throws MalformedError. */
export function mainRequest(request: ChannelRequest): MainRequest | RefusedRequest {
  if (request.type === 'shell') return { kind: 'shell', right: 'SSH_SHELL' }
  if (request.type === 'subsystem') {
    const name = parseSubsystem(request.data)
    if (classifySubsystem(name) === 'sftp') return { kind: 'sftp', right: 'SFTP_SESSION' }
    return { kind: 'refused', what: `subsystem ${JSON.stringify(latin1(name).slice(0, 64))}` }
  }
  const command = parseExec(request.data)
  const exec = classifyExec(command)
  const right = rightFor(exec.kind, exec.kind === 'scp' ? exec.direction : undefined)
  if (right === undefined) return { kind: 'refused', what: `command ${exec.kind}` }
  return { kind: exec.kind === 'command' ? 'exec' : exec.kind, right, command, exec }
}

/** The command for people and recordings. */
export function commandText(request: MainRequest): string | undefined {
  return request.command && displayText(request.command)
}

const MEANING: Record<Right, string> = {
  SSH_SHELL: 'open a shell',
  SSH_REMOTE_COMMAND: 'run commands',
  SSH_SCP_UP: 'copy files to it with scp',
  SSH_SCP_DOWN: 'copy files from it with scp',
  SFTP_SESSION: 'use SFTP',
}

/** The one line that the user reads when a right is missing. */
export function missingRight(right: Right, device: string): string {
  return `you may not ${MEANING[right]} on ${device}: the right ${right} is missing`
}
