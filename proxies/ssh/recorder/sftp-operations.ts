/** What SFTP's requests are called in a recording. */
import { FXP, type SftpRequest } from '../codec/sftp.ts'

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

/** The name of what a request changes; undefined: it only asks. An extension that is not known may change anything. */
export function operationOf(request: SftpRequest): string | undefined {
  if (request.extension === undefined) return OPERATIONS[request.type]
  return Object.hasOwn(EXTENSIONS, request.extension) ? EXTENSIONS[request.extension] : 'extended'
}
