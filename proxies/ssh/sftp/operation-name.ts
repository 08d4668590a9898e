/** Names a refused request for the audit log and the recording. */
import { FXP, type SftpRequest } from '../codec/sftp.ts'

const NAMES = new Map<number, string>(Object.entries(FXP).map(([name, type]) => [type, name]))

export function operationName({ type, extension }: SftpRequest): string {
  return extension ?? NAMES.get(type) ?? `request ${type}`
}
