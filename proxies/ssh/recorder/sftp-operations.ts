/** The effects of SFTP's requests: names for a recording, and changes to a file's content or name. */
import { FXF, FXP, type SftpRequest } from '../codec/sftp.ts'

const OPERATIONS: Readonly<Record<number, string>> = {
  [FXP.open]: 'open',
  [FXP.setstat]: 'setstat',
  [FXP.fsetstat]: 'setstat',
  [FXP.opendir]: 'list',
  [FXP.remove]: 'remove',
  [FXP.mkdir]: 'mkdir',
  [FXP.rmdir]: 'rmdir',
  [FXP.rename]: 'rename',
  [FXP.symlink]: 'symlink',
}
const EXTENSIONS: Readonly<Record<string, string | undefined>> = {
  'posix-rename@openssh.com': 'rename',
  'hardlink@openssh.com': 'link',
  'lsetstat@openssh.com': 'setstat',
  'copy-data': 'copy',
  'limits@openssh.com': undefined,
  'expand-path@openssh.com': undefined,
  'home-directory': undefined,
  'users-groups-by-id@openssh.com': undefined,
  'statvfs@openssh.com': undefined,
  'fstatvfs@openssh.com': undefined,
  'fsync@openssh.com': undefined,
}

/**
 * Returns the name of a changing request's operation, or undefined if it only reads. An unknown extension may
 * change anything.
 */
export function operationOf(request: SftpRequest): string | undefined {
  if (request.extension === undefined) return OPERATIONS[request.type]
  return Object.hasOwn(EXTENSIONS, request.extension) ? EXTENSIONS[request.extension] : 'extended'
}

/** Requests after which a name may stand for another file, or a file may have other content. */
const CHANGING: readonly number[] = [FXP.write, FXP.remove, FXP.rename, FXP.symlink]

/**
 * Whether a request may change a file's content, or the file that a name stands for. WRITE counts; times and
 * permissions do not.
 */
export function changesFiles({ type, flags = 0, size, extension }: SftpRequest): boolean {
  if (type === FXP.open) return (flags & (FXF.creat | FXF.trunc)) !== 0
  if (type === FXP.setstat || type === FXP.fsetstat) return size !== undefined
  if (type !== FXP.extended) return CHANGING.includes(type)
  if (extension === 'lsetstat@openssh.com') return size !== undefined
  return (
    extension === undefined || !Object.hasOwn(EXTENSIONS, extension) || EXTENSIONS[extension] !== undefined
  )
}
