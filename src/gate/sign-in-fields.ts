/** Sign-ins in the words of events and of the fronts. */
import type { Audit, FieldsOf } from '../audit/events/catalogue.ts'
import type { AuthenticateRequest, Challenge } from '../contract/gate.ts'
import { apiKeyOf } from '../identity/basis.ts'
import type { OfferedKey } from '../identity/certificate.ts'
import { fingerprintOf } from '../identity/public-key.ts'
import type { Outcome, Proved } from '../identity/sign-in.ts'
import type { SignedIn } from './signed-in.ts'

/** For the user: which server it is stands in the audit log. */
export const UNAVAILABLE =
  'the servers that know your password cannot be reached at the moment: try again in a few minutes'

/** Returns the fields that identify the user. */
export function whoFields({ user, source, basis }: SignedIn): FieldsOf<'session.denied'> {
  const apiKey = apiKeyOf(basis)
  return {
    user,
    ...(apiKey !== undefined && { api_key: apiKey }),
    client_ip: source.address,
    client_port: source.port,
  }
}

/** Returns the key's fields; for a certificate also its key id, serial, and the authority's fingerprint. */
export function keyFields({ key, certificate }: OfferedKey): FieldsOf<'auth.success'> {
  const digest = fingerprintOf(key.blob)
  if (!certificate) return { digest }
  const { keyId, serial, authority } = certificate
  return {
    digest,
    object_type: 'certificate',
    object: `${keyId.toString('utf8')} (serial ${serial}, CA ${fingerprintOf(authority.blob)})`,
  }
}

/** Names the servers that have judged a sign-in, or could not. */
export function serverFields(names: readonly string[]): FieldsOf<'auth.unavailable'> {
  return { object_type: 'external authentication', object: names.join(', ') }
}

/** Names the servers that have judged, if any have. */
export function judgesOf({ by = [], second = [] }: Pick<Proved, 'by' | 'second'>): FieldsOf<'auth.success'> {
  const names = [...by, ...second]
  return names.length === 0 ? {} : serverFields(names)
}

/** Records a sign-in, and the recovery code that it used up, or the one-time code that it did without. */
export async function recordSuccess(
  audit: Audit,
  fields: FieldsOf<'auth.success'>,
  proved: Proved,
): Promise<void> {
  const { userName, profile } = proved.user
  await audit.record('auth.success', { ...fields, ...judgesOf(proved), user: userName, profile })
  const same = clientOf(fields, userName)
  if (proved.isOffline) await audit.record('auth.offline', { ...same, ...judgesOf(proved) })
  await recordDetails(audit, same, proved)
}

/** Records the second factor of a user that had signed in without, or what counts for one. */
export async function recordFactor(
  audit: Audit,
  fields: FieldsOf<'factor.proved'>,
  proved: Proved,
): Promise<void> {
  const same = clientOf(fields, proved.user.userName)
  if (proved.hasFactor) await audit.record('factor.proved', same)
  await recordDetails(audit, same, proved)
}

async function recordDetails(
  audit: Audit,
  fields: ReturnType<typeof clientOf>,
  { recoveryCodesLeft: count, isFactorRemembered }: Proved,
): Promise<void> {
  if (count !== undefined) await audit.record('factor.recovery', { ...fields, count })
  if (isFactorRemembered) await audit.record('factor.remembered', fields)
}

function clientOf({ client_ip, client_port, protocol }: FieldsOf<'factor.proved'>, user: string) {
  return {
    user,
    ...(client_ip !== undefined && { client_ip }),
    ...(client_port !== undefined && { client_port }),
    ...(protocol !== undefined && { protocol }),
  }
}

/** Names what a dialogue belongs to: the connection, and the login string on it. */
export function ownerOf({ login, protocol, source }: AuthenticateRequest): string {
  return `${protocol} ${source.address} ${source.port} ${login}`
}

/** Converts a round of prompts to the fronts' form. */
export function roundOf({
  challenge: id,
  message: instructions,
  uri,
  link,
  hint,
  prompts,
}: Extract<Outcome, { result: 'challenge' }>): Challenge {
  return {
    id,
    title: '',
    instructions,
    ...(uri !== undefined && { uri }),
    ...(link !== undefined && { link }),
    ...(hint !== undefined && { hint }),
    prompts: prompts.map(({ text, echo }) => ({ text, echo })),
  }
}
