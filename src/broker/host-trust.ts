/** The authorities for the host keys of targets, from the configuration. */
import type { Config } from '../config/config.ts'
import { Resolver } from '../dns/resolver.ts'
import type { HostTrust } from '../gate/host-trust.ts'
import { RevocationFile } from '../identity/authorities.ts'

/** Throws, with the file's name, if the list of revoked keys cannot be read or is invalid. */
export function openHostTrust({ ssh, dns }: Pick<Config, 'ssh' | 'dns'>): HostTrust {
  const revokedKeys = ssh.revokedHostKeys === undefined ? undefined : new RevocationFile(ssh.revokedHostKeys)
  revokedKeys?.current()
  const resolver = dns.servers.length === 0 ? undefined : new Resolver(dns)
  return {
    ...(revokedKeys && { revokedKeys }),
    ...(resolver && { sshfp: (host) => resolver.sshfp(host) }),
  }
}
