/** The certificates that listeners are configured to show: whether they can be, with their keys, and still count. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Config, TlsListen } from '../config/config.ts'
import type { Finding } from './check.ts'

/** Self-signed ones are made where none is named. `now` in milliseconds since the epoch. */
export function certificates({ listen }: Pick<Config, 'listen'>, now: number): Finding[] {
  return (['https', 'telnets', 'vnc', 'rdp'] as const).flatMap((name) => {
    const listener = listen[name]
    return listener?.certificate === undefined ? [] : [finding(name, listener, listener.certificate, now)]
  })
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
