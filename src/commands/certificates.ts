/** Checks the certificates of the listeners: whether they can be read, match their keys, and are valid. */
import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Config, TlsListen } from '../config/config.ts'
import type { Finding } from './finding.ts'

/** Listeners without a certificate get a self-signed one. `now` in milliseconds since the epoch. */
export function certificates(
  { listen, dataDir }: Pick<Config, 'listen' | 'dataDir'>,
  now: number,
): Finding[] {
  const configured = (['https', 'telnets', 'vnc', 'rdp'] as const).flatMap((name) => {
    const listener = listen[name]
    return listener?.certificate === undefined ? [] : [finding(name, listener, listener.certificate, now)]
  })
  return [...configured, ...ownAuthority(dataDir)]
}

/** Warns of a self-signed certificate from an older release, which is also an authority. */
function ownAuthority(dataDir: string): Finding[] {
  const file = join(dataDir, 'tls', 'cert.pem')
  if (!existsSync(file) || !new X509Certificate(readFileSync(file)).ca) return []
  const text =
    `${file} is an authority: a thief of its key can vouch for any host to clients that trust it; ` +
    'remove it and its key, start again, and distribute the new one'
  return [{ level: 'warning', subject: 'own cert', text }]
}

function finding(name: string, { key: keyFile }: TlsListen, file: string, now: number): Finding {
  const subject = `${name} cert`
  try {
    const cert = readFileSync(file)
    createSecureContext({ cert, ...(keyFile !== undefined && { key: readFileSync(keyFile) }) })
    const { validFromDate, validToDate } = new X509Certificate(cert)
    if (now < validFromDate.getTime() || now > validToDate.getTime()) {
      const time = `${validFromDate.toISOString()} to ${validToDate.toISOString()}`
      return { level: 'warning', subject, text: `${file} is not valid now, but from ${time}` }
    }
    return { level: 'ok', subject, text: file }
  } catch (error) {
    return { level: 'error', subject, text: `${file}: ${(error as Error).message}` }
  }
}
