/** The SSH proxy that the broker starts: one listener and its front. */
import type { Gate } from '../../src/contract/gate.ts'
import { Listener } from '../net/listener.ts'
import { IDENT, type SshConnections } from './begin.ts'
import { type HostCertificate, SshFront } from './front/front.ts'

export interface SshProxyOptions {
  gate: Gate
  /** Serves clients after sign-in. */
  sshConnections: SshConnections
  /** Private host keys in OpenSSH's PEM form, one per type, in order of preference. */
  hostKeys: string[]
  /** Future host keys, announced to clients before they are used. */
  nextHostKeys?: string[]
  /** Certificates for some of `hostKeys`. */
  hostCertificates?: readonly HostCertificate[]
  /** Shown to every client before sign-in. */
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
        options.sshConnections.begin({ identity, source, protocol: 'SSH', client })
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

  /** Applies to new connections. */
  set hostCertificates(certificates: readonly HostCertificate[]) {
    this.#front.hostCertificates = certificates
  }

  /** Applies to new connections. */
  set banner(banner: string | undefined) {
    this.#front.banner = banner
  }

  /** Accepts no more connections, and destroys those that have not signed in. */
  close(): void {
    this.#listener.close()
  }

  /** Destroys all remaining connections. */
  destroy(): void {
    this.#listener.destroy()
  }
}
