/** The SSH proxy as the broker starts it: one listener and its front. */
import type { Gate } from '../../src/contract/gate.ts'
import { Listener } from '../net/listener.ts'
import { IDENT, type SshConnections } from './begin.ts'
import { type HostCertificate, SshFront } from './front/front.ts'

export interface SshProxyOptions {
  gate: Gate
  /** Where those who have signed in go on. */
  signedIn: SshConnections
  /** Private host keys in OpenSSH's PEM form, one of a type, in the order of preference. */
  hostKeys: string[]
  /** Keys that clients are told of before they are used. */
  nextHostKeys?: string[]
  /** Certificates about some of `hostKeys`. */
  hostCertificates?: readonly HostCertificate[]
  /** What every client is shown before it signs in. */
  banner?: string
  loginGraceMs: number
}

export class SshProxy {
  readonly #front: SshFront
  readonly #listener: Listener

  constructor(options: SshProxyOptions) {
    this.#front = new SshFront({
      gate: options.gate,
      hostKeys: options.hostKeys,
      ...(options.nextHostKeys && { nextHostKeys: options.nextHostKeys }),
      ...(options.hostCertificates && { hostCertificates: options.hostCertificates }),
      ...(options.banner !== undefined && { banner: options.banner }),
      ident: IDENT,
      onSignedIn: (identity, source, client, socket) => {
        this.#listener.signedIn(socket)
        options.signedIn.begin({ identity, source, protocol: 'SSH', client })
      },
    })
    this.#listener = new Listener({
      graceMs: options.loginGraceMs,
      onSocket: (socket) => this.#front.accept(socket),
    })
  }

  /** Resolves when the port is bound; rejects with the system's error. */
  listen(host: string, port: number): Promise<{ address: string; port: number }> {
    return this.#listener.listen(host, port)
  }

  /** For connections from now on. */
  set hostCertificates(certificates: readonly HostCertificate[]) {
    this.#front.hostCertificates = certificates
  }

  /** For connections from now on. */
  set banner(banner: string | undefined) {
    this.#front.banner = banner
  }

  /** Takes no more connections, and drops those that have not signed in. */
  close(): void {
    this.#listener.close()
  }

  /** Drops every connection that is left. */
  destroy(): void {
    this.#listener.destroy()
  }
}
