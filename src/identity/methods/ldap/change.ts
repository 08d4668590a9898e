/** Change of a password that has expired or was reset, by the user at the sign-in. */
import { Buffer } from 'node:buffer'
import { Attribute, BerWriter, Change } from 'ldapts'
import type { LdapOptions } from '../../../model/external-auths.ts'
import type { Secret } from '../../../model/secret.ts'
import type { DirectoryConnection } from './connection.ts'

/** Password Modify (RFC 3062). */
const PASSWORD_MODIFY = '1.3.6.1.4.1.4203.1.11.1'
const MAX_PASSWORD = 256

/** Returns why a text cannot be the new password, or undefined. */
export function passwordFlaw(next: Secret, again: Secret, old: Secret): string | undefined {
  if (next.length === 0 || next.length > MAX_PASSWORD) return `a password has 1 to ${MAX_PASSWORD} bytes`
  if (!next.equals(again)) return 'the two are not the same'
  if (next.equals(old)) return 'the new password is the old one'
  return undefined
}

/**
 * Changes the password of `dn`, which the old one proves. @throws ResultCodeError if the directory refuses, DirectoryError
 */
export async function changePassword(
  connection: DirectoryConnection,
  { directory }: Pick<LdapOptions, 'directory'>,
  dn: string,
  old: Secret,
  next: Secret,
  signal: AbortSignal,
): Promise<void> {
  if (directory === 'active_directory') {
    const values = (secret: Secret) => [Buffer.from(`"${secret.revealText()}"`, 'utf16le')]
    const changes = (['delete', 'add'] as const).map(
      (operation) =>
        new Change({
          operation,
          modification: new Attribute({
            type: 'unicodePwd',
            values: values(operation === 'add' ? next : old),
          }),
        }),
    )
    await connection.run((client) => client.modify(dn, changes), signal)
    return
  }
  await connection.run((client) => client.exop(PASSWORD_MODIFY, passwordModify(dn, old, next)), signal)
}

/** PasswdModifyRequestValue (RFC 3062 2). */
function passwordModify(dn: string, old: Secret, next: Secret): Buffer {
  const writer = new BerWriter()
  writer.startSequence()
  writer.writeString(dn, 0x80)
  writer.writeString(old.revealText(), 0x81)
  writer.writeString(next.revealText(), 0x82)
  writer.endSequence()
  return writer.buffer
}
