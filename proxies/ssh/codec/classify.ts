/**
 * Classifies channel requests by their exact bytes, and names the right that each needs.
 *
 * A command counts as SCP, rsync or git only if a strict grammar matches and no POSIX shell can read anything
 * else into it: those streams are recorded by operation, so a shell must not hide there. Other shells may
 * read more into it; therefore users without SSH_REMOTE_COMMAND only get `forwarded` sent. Everything else is
 * a plain command, needs SSH_REMOTE_COMMAND and is recorded whole. Nothing is normalised towards SCP:
 * `/usr/bin/scp`, `env scp` or `s''cp` are commands. A name's program on the target (the user's own `rsync`,
 * say) cannot be seen from here; the recorders check that the stream looks like the protocol.
 */
import { Buffer } from 'node:buffer'
import type { Right } from '../../../src/model/rights.ts'
import { displayText, latin1 } from '../../bytes/text.ts'
import { portable, type Word, words } from './word.ts'

/** `up` is toward the target. */
export type Direction = 'up' | 'down'

export interface ScpCommand {
  kind: 'scp'
  direction: Direction
  recursive: boolean
  /** For display and recordings: UTF-8 with replacement. */
  path: string
  /**
   * The last name of the path, if the target's shell does not compute it: a download may deliver this name
   * and no other (CVE-2019-6111).
   */
  name?: string
  /**
   * The command rebuilt so that every shell reads the same, sent for users without SSH_REMOTE_COMMAND. Absent
   * if a shell could read something else into its path. Users that hold SSH_REMOTE_COMMAND too have their own
   * text sent.
   */
  forwarded?: Uint8Array
}
export interface RsyncCommand {
  kind: 'rsync'
  direction: Direction
  paths: string[]
}
export const GIT_OPERATIONS = ['git-upload-pack', 'git-receive-pack', 'git-upload-archive'] as const
export type GitOperation = (typeof GIT_OPERATIONS)[number]
export interface GitCommand {
  kind: 'git'
  operation: GitOperation
  direction: Direction
  path: string
}
export interface PlainCommand {
  kind: 'command'
}
export type ExecCommand = ScpCommand | RsyncCommand | GitCommand | PlainCommand

const COMMAND: PlainCommand = { kind: 'command' }

/** Classifies the command of an `exec` request. Never throws. */
export function classifyExec(command: Uint8Array): ExecCommand {
  const line = words(command)
  if (line === undefined) return COMMAND
  const program = latin1(line[0]!.source)
  if (program === 'scp') return classifyScp(line) ?? COMMAND
  if (program === 'rsync') return classifyRsync(line) ?? COMMAND
  return classifyGit(program, line) ?? COMMAND
}

/**
 * `scp( -[rpdvq])*( -[rpdvq]*[tf][rpdvq]*)( -[rpdvq])*( --)? PATH`: exactly one of t and f; the path is one
 * word and begins with "-" only after "--".
 */
function classifyScp(line: readonly Word[]): ScpCommand | undefined {
  const path = line.at(-1)!
  let options = line.slice(1, -1).map((word) => latin1(word.source))
  const ended = options.at(-1) === '--'
  if (ended) options = options.slice(0, -1)
  const mode = options.find((option) => /^-[rpdvq]*[tf][rpdvq]*$/.test(option))
  if (mode === undefined) return undefined
  if (!options.every((option) => option === mode || /^-[rpdvq]$/.test(option))) return undefined
  if (options.indexOf(mode) !== options.lastIndexOf(mode)) return undefined
  if (path.value.length === 0 || (path.value[0] === 0x2d && !ended)) return undefined
  // The shell expands a leading glob to names that may begin with "-".
  const mayBeOption =
    path.value[0] === 0x2d || (path.expands && path.value[0] !== 0x2f && path.value[0] !== 0x7e)
  const name = path.expands ? undefined : nameOf(displayText(path.value))
  const direction = mode.includes('t') ? 'up' : 'down'
  const head = `scp ${options.join(' ')} ${mayBeOption ? '-- ' : ''}`
  const operand = portable(path, direction === 'down')
  return {
    kind: 'scp',
    direction,
    recursive: options.some((option) => option.includes('r')),
    path: displayText(path.value),
    ...(name !== undefined && { name }),
    ...(operand && { forwarded: Buffer.concat([Buffer.from(head, 'latin1'), operand]) }),
  }
}

/** Returns the name behind the last "/", as scp does, or undefined if other systems may read another name. */
function nameOf(path: string): string | undefined {
  const name = path.replace(/\/+$/, '').split('/').at(-1)
  return name === '' || /[\\:]/.test(path) ? undefined : name
}

/** Server-side options whose value rsync passes as the next word (options.c, server_options). */
const RSYNC_VALUED = new Set([
  '--backup-dir',
  '--compare-dest',
  '--copy-dest',
  '--files-from',
  '--link-dest',
  '--partial-dir',
  '--temp-dir',
])
/** Options that make the server side a program other than a receiver or sender. */
const RSYNC_REFUSED = /^--(daemon|config|rsh|rsync-path|server|sender|log-file|dparam)/
const RSYNC_OPTION = /^(-[A-Za-z0-9.,]+|--[a-z0-9][a-z0-9-]*(=.*)?)$/s

/** `rsync --server( --sender)?( OPTION)* .( PATH)+`, as rsync itself builds it. */
function classifyRsync(line: readonly Word[]): RsyncCommand | undefined {
  const text = line.map((word) => latin1(word.source))
  if (text[1] !== '--server') return undefined
  const down = text[2] === '--sender'
  const options = down ? 3 : 2
  const dot = text.indexOf('.', options)
  if (dot === -1 || dot === text.length - 1) return undefined
  for (let index = options; index < dot; index++) {
    const valued = RSYNC_VALUED.has(text[index - 1]!)
    const option = text[index]!
    if (line[index]!.expands || (!valued && !RSYNC_OPTION.test(option)) || RSYNC_REFUSED.test(option))
      return undefined
  }
  const paths = line.slice(dot + 1)
  if (paths.some((path) => path.value.length === 0 || path.value[0] === 0x2d)) return undefined
  return {
    kind: 'rsync',
    direction: down ? 'down' : 'up',
    paths: paths.map((path) => displayText(path.value)),
  }
}

/** `git-…-pack PATH`. A path that begins with "-" would be an option: `--help` starts a pager. */
function classifyGit(program: string, line: readonly Word[]): GitCommand | undefined {
  const operation = GIT_OPERATIONS.find((name) => name === program)
  const path = line[1]
  if (operation === undefined || path === undefined || line.length !== 2) return undefined
  if (path.value.length === 0 || path.value[0] === 0x2d || (path.expands && path.value[0] !== 0x7e))
    return undefined
  return {
    kind: 'git',
    operation,
    direction: operation === 'git-receive-pack' ? 'up' : 'down',
    path: displayText(path.value),
  }
}

/** Classifies a subsystem: only the exact bytes `sftp` are SFTP, as sshd compares. */
export function classifySubsystem(name: Uint8Array): 'sftp' | 'subsystem' {
  return latin1(name) === 'sftp' ? 'sftp' : 'subsystem'
}

/** Returns the right that a command needs. */
export function rightFor(command: ExecCommand): Right {
  if (command.kind !== 'scp') return 'SSH_REMOTE_COMMAND'
  return command.direction === 'up' ? 'SSH_SCP_UP' : 'SSH_SCP_DOWN'
}
