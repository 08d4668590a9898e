/** Host keys that targets of changed secrets show: judged like those of sessions, where an authority or the DNS vouches. */
import type { Buffer } from 'node:buffer'
import type { ChangeTarget } from '../contract/change.ts'
import { flawOf, keyType } from '../gate/host-keys.ts'
import {
  certifiedKey,
  doubtOfCertificate,
  doubtOfDns,
  doubtOfRevocation,
  type HostTrust,
} from '../gate/host-trust.ts'
import { isCertificateType } from '../identity/certificate.ts'
import { PublicKeyError } from '../identity/public-key.ts'

/** Returns why the host key is not trusted, or undefined if it is. */
export async function judgeHostKey(
  hostTrust: HostTrust,
  { host, port, trust }: ChangeTarget,
  key: Buffer,
  now: number,
): Promise<string | undefined> {
  const type = keyType(key)
  if (type === undefined) return 'it is malformed'
  const isCertificate = isCertificateType(type)
  if (isCertificate && trust.hostKeyPolicy !== 'ca')
    return 'it came with a certificate that was not requested'
  try {
    const shown = isCertificate ? certifiedKey(key) : { type, blob: key }
    const weak = shown.type === 'ssh-rsa' ? flawOf(shown.blob) : undefined
    if (weak !== undefined) return weak
    const hostCaKeys = trust.hostAuthorities ?? []
    const doubt =
      doubtOfRevocation(hostTrust, shown) ??
      (trust.hostKeyPolicy === 'ca'
        ? doubtOfCertificate(shown, { target: { host, port }, hostCaKeys }, now)
        : await doubtOfDns(shown, host, hostTrust))
    return doubt?.reason
  } catch (error) {
    if (error instanceof PublicKeyError) return error.message
    throw error
  }
}
