/** New secrets by a policy: passwords, and key pairs of SSH in OpenSSH's form. */
import { generateKeyPair, randomInt } from 'node:crypto'
import { promisify } from 'node:util'
import type { NewSecret } from '../contract/change.ts'
import type { ChangePluginKind } from '../model/change-plugins.ts'
import type { CredentialType } from '../model/objects.ts'
import {
  generatePassword,
  type PasswordChangePolicy,
  type PasswordRules,
  passwordRulesFlaw,
  SSH_KEY_SIZES,
} from '../model/password-change.ts'
import { generatedKey } from '../vault/formats/generated.ts'

const generate = promisify(generateKeyPair)
const CURVES: Readonly<Record<number, string>> = { 256: 'P-256', 384: 'P-384', 521: 'P-521' }

/** Returns the policy's rules with those of the kind of target. */
export function rulesFor(
  policy: PasswordRules,
  kind: Pick<ChangePluginKind, 'forbidden' | 'maxLength'>,
): PasswordRules {
  return {
    length: Math.min(policy.length, kind.maxLength),
    minimums: policy.minimums,
    excluded: policy.excluded + kind.forbidden,
  }
}

/** Returns why the policy makes no passwords for such targets, or undefined if it does. */
export function policyFlaw(
  policy: PasswordRules,
  kind: Pick<ChangePluginKind, 'forbidden' | 'maxLength'>,
): string | undefined {
  return passwordRulesFlaw(rulesFor(policy, kind))
}

/** Returns a new secret. @throws RangeError if no password meets the rules */
export async function newSecret(
  type: CredentialType,
  policy: PasswordChangePolicy,
  kind: Pick<ChangePluginKind, 'forbidden' | 'maxLength'>,
): Promise<NewSecret> {
  if (type === 'ssh_key') return newKey(policy, 'sallyport')
  return { type, password: generatePassword(rulesFor(policy, kind), (n) => randomInt(n)) }
}

async function newKey(
  { keyType, keySize }: Pick<PasswordChangePolicy, 'keyType' | 'keySize'>,
  comment: string,
): Promise<NewSecret> {
  const size = keySize ?? SSH_KEY_SIZES[keyType][0] ?? 256
  const { privateKey } =
    keyType === 'ed25519'
      ? await generate('ed25519')
      : keyType === 'rsa'
        ? await generate('rsa', { modulusLength: size })
        : await generate('ec', { namedCurve: CURVES[size] ?? 'P-256' })
  return { type: 'ssh_key', ...generatedKey(privateKey, comment) }
}

/** Returns a secret of that type that no account has, to find out whether a target takes any. */
export async function wrongSecret(type: CredentialType): Promise<NewSecret> {
  if (type === 'ssh_key') return newKey({ keyType: 'ed25519' }, 'wrong')
  const rules = { length: 20, minimums: { lower: 1, upper: 1, digit: 1 }, excluded: '' }
  return { type, password: generatePassword(rules, (n) => randomInt(n)) }
}
