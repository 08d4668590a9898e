/**
 * Maps SFTP requests to rights. SFTP_SESSION allows all; each SCP right allows the requests needed to copy
 * files in its direction, so that scp, which uses SFTP since OpenSSH 9.0, works one way.
 */
import type { Right } from '../../../src/model/rights.ts'
import { FXF, FXP, type SftpRequest } from '../codec/sftp.ts'

type Need = 'nothing' | 'up' | 'down' | 'both' | 'session'

const REQUESTS: Readonly<Record<number, Need>> = {
  [FXP.close]: 'nothing',
  [FXP.lstat]: 'nothing',
  [FXP.fstat]: 'nothing',
  [FXP.stat]: 'nothing',
  [FXP.realpath]: 'nothing',
  [FXP.read]: 'down',
  [FXP.opendir]: 'down',
  [FXP.readdir]: 'down',
  [FXP.readlink]: 'down',
  [FXP.write]: 'up',
  [FXP.mkdir]: 'up',
  [FXP.setstat]: 'up',
  [FXP.fsetstat]: 'up',
}

/** Extensions not listed here need SFTP_SESSION. */
const EXTENSIONS: Readonly<Record<string, Need>> = {
  'limits@openssh.com': 'nothing',
  'expand-path@openssh.com': 'nothing',
  'home-directory': 'nothing',
  'users-groups-by-id@openssh.com': 'nothing',
  'statvfs@openssh.com': 'nothing',
  'fstatvfs@openssh.com': 'nothing',
  'fsync@openssh.com': 'up',
  'lsetstat@openssh.com': 'up',
}

/** The flags of an OPEN: a file not opened for writing is opened for reading. */
export function reads(flags: number): boolean {
  return (flags & FXF.read) !== 0 || (flags & FXF.write) === 0
}

export function writes(flags: number): boolean {
  return (flags & ~FXF.read) !== 0
}

function needOf({ type, flags = 0, extension }: SftpRequest): Need {
  if (extension !== undefined) return extensionNeed(extension)
  if (type !== FXP.open) return REQUESTS[type] ?? 'session'
  if (flags === FXF.read) return 'down'
  return reads(flags) ? 'both' : 'up'
}

function extensionNeed(extension: string): Need {
  return Object.hasOwn(EXTENSIONS, extension) ? EXTENSIONS[extension]! : 'session'
}

function lacking(need: Need, rights: ReadonlySet<Right>): Right | undefined {
  if (need === 'nothing' || rights.has('SFTP_SESSION')) return undefined
  if (need === 'session') return 'SFTP_SESSION'
  if (need !== 'up' && !rights.has('SSH_SCP_DOWN')) return 'SSH_SCP_DOWN'
  return need === 'down' || rights.has('SSH_SCP_UP') ? undefined : 'SSH_SCP_UP'
}

/** Returns the right that a request lacks, or undefined if it is allowed. */
export function rightLacking(request: SftpRequest, rights: ReadonlySet<Right>): Right | undefined {
  return lacking(needOf(request), rights)
}

/** Returns the right under which an SFTP channel is opened. Users that may only copy have an SCP right. */
export function leastRight(rights: ReadonlySet<Right>): Right {
  const known: readonly Right[] = ['SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN']
  return known.find((right) => rights.has(right)) ?? 'SFTP_SESSION'
}

/** Whether an extension that the target offers may be offered to the client. */
export function mayOffer(extension: string, rights: ReadonlySet<Right>): boolean {
  return lacking(extensionNeed(extension), rights) === undefined
}
