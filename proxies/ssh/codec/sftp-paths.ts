/** The exact bytes of the paths in SFTP's requests, for checks. */
import { latin1 } from '../../bytes/text.ts'
import { Reader } from './reader.ts'
import { FXP } from './sftp.ts'

/** Requests whose first field after the id is a path, and requests with two paths. */
const ONE: readonly number[] = [
  FXP.open,
  FXP.setstat,
  FXP.mkdir,
  FXP.lstat,
  FXP.stat,
  FXP.opendir,
  FXP.remove,
  FXP.rmdir,
  FXP.realpath,
  FXP.readlink,
]
const TWO: readonly number[] = [FXP.rename, FXP.symlink]
const EXTENSIONS: Readonly<Record<string, number>> = {
  'posix-rename@openssh.com': 2,
  'hardlink@openssh.com': 2,
  'lsetstat@openssh.com': 1,
  'statvfs@openssh.com': 1,
  'expand-path@openssh.com': 1,
}

/** Returns views of the paths in `body` (after the type), in the order of the wire. */
export function pathsOf(type: number, body: Uint8Array): Uint8Array[] {
  const reader = new Reader(body, `sftp request ${type}`, 4)
  let count = ONE.includes(type) ? 1 : TWO.includes(type) ? 2 : 0
  if (type === FXP.extended) {
    const name = latin1(reader.string())
    count = Object.hasOwn(EXTENSIONS, name) ? EXTENSIONS[name]! : 0
  }
  return Array.from({ length: count }, () => reader.string())
}
