/** Receivers of notifications in Python: an HTTPS server that proves signatures, and aiosmtpd with STARTTLS. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { freePort, startDaemon } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'

/** One delivery: a request has the first fields, a mail those from `mail` on. */
export interface Line {
  path: string
  /** Whether Python's hmac makes the same signature. */
  valid: boolean
  event: string
  delivery: string
  headers: string[]
  body: { user: { name: string } }
  mail: string
  sender: string
  recipients: string[]
  tls: boolean
  login: string | null
}

export interface Receivers {
  /** PEM of the certificate of both, for `localhost`. */
  ca: string
  port: number
  mailPort: number
  /** Returns all that has come. */
  lines(): Line[]
  stop(): Promise<void>
}

/** Starts them. The user `bastion` of the mail server has the password `mail-password`. */
export async function startReceivers(signingSecret: string): Promise<Receivers> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-receivers-'))
  const made = await generate([{ name: 'commonName', value: 'receiver' }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  })
  const [certificate, key] = [join(folder, 'own.pem'), join(folder, 'own.key')]
  writeFileSync(certificate, made.cert)
  writeFileSync(key, made.private)
  const [port, mailPort] = [await freePort(), await freePort()]
  const program = new URL('receivers.py', import.meta.url).pathname
  const args = [program, certificate, key, signingSecret, String(port), String(mailPort)]
  const daemon = await startDaemon(findProgram('python3'), args, /ready/)
  return {
    ca: made.cert,
    port,
    mailPort,
    lines: () =>
      daemon
        .log()
        .split('\n')
        .slice(0, -1)
        .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : [])),
    async stop() {
      await daemon.stop()
      rmSync(folder, { recursive: true })
    },
  }
}
