/** Reads the files of the configuration that the fronts need, and makes their settings of them. */
import type { Config } from '../config/config.ts'
import { FRONT_NAMES, type FrontSettings, type SshFrontSettings } from '../contract/front-settings.ts'
import { nextHostKeys } from '../host/front-files.ts'
import type { FrontKeys } from './front-keys.ts'
import { openHostCertificates, validityOf } from './own-certificates.ts'

/** `warn` gets faults that do not prevent the start. Throws if a file is missing or wrong. */
export async function frontSettings(
  config: Config,
  keys: FrontKeys,
  warn: (message: string) => void,
): Promise<FrontSettings> {
  const { hostname, loginGrace, listen } = config
  const { banner, motd } = config.ssh
  const { telnet, rlogin, telnets, vnc, rdp } = listen
  return {
    hostname,
    loginGraceMs: loginGrace,
    ...(banner !== undefined && { banner }),
    ...(motd !== undefined && { motd }),
    ...(listen.ssh && { ssh: await sshSettings(config, keys, warn) }),
    ...(telnet && { telnet: { allow: telnet.allow } }),
    ...(rlogin && { rlogin: { allow: rlogin.allow } }),
    ...(telnets && { telnets: { tls: await keys.tls('telnets', hostname, telnets) } }),
    ...(vnc && {
      vnc: {
        tls: await keys.tls('vnc', hostname, vnc),
        rsaKey: await keys.vncKey(),
        types: vnc.securityTypes,
        allowClear: vnc.allowClear,
      },
    }),
    ...(rdp && { rdp: { tls: await keys.tls('rdp', hostname, rdp), nla: rdp.nla } }),
  }
}

/**
 * Returns the settings of a changed configuration for fronts that run with `begun`: which fronts there are, SSH's host
 * keys and what else a front reads only at its start stay. A worker that is started later has to present the same
 * keys as the others.
 */
export function changedSettings(begun: FrontSettings, changed: FrontSettings): FrontSettings {
  const { hostname, loginGraceMs } = begun
  const { banner, motd } = changed
  const fronts = FRONT_NAMES.flatMap((name) => (begun[name] ? [[name, changed[name] ?? begun[name]]] : []))
  const settings: FrontSettings = {
    hostname,
    loginGraceMs,
    ...(banner !== undefined && { banner }),
    ...(motd !== undefined && { motd }),
    ...Object.fromEntries(fronts),
  }
  if (!settings.ssh || !begun.ssh) return settings
  const { hostKeys, nextHostKeys } = begun.ssh
  return { ...settings, ssh: { ...settings.ssh, hostKeys, nextHostKeys } }
}

/** Only certificates that are valid now. */
async function sshSettings(
  { ssh, dataDir }: Config,
  keys: FrontKeys,
  warn: (message: string) => void,
): Promise<SshFrontSettings> {
  const hostKeys = await keys.hostKeys()
  const certificates = openHostCertificates(
    ssh.hostCertificates,
    hostKeys.map((key) => key.public),
  )
  if (certificates.length === 0) keys.ends.delete('ssh')
  else keys.ends.set('ssh', Math.min(...certificates.map(({ validBefore }) => validBefore)) / 1000)
  const valid = certificates.filter((certificate) => {
    const { isValid, warning } = validityOf(certificate, Date.now())
    if (warning !== undefined) warn(warning)
    return isValid
  })
  return {
    hostKeys: hostKeys.map((key) => key.private),
    nextHostKeys: nextHostKeys(dataDir),
    hostCertificates: valid.map(({ blob, key, validBefore }) => ({ blob, key, validBefore })),
  }
}
