/** The SSH proxy: its connections before sign-in, and its front. */
import type { Socket } from 'node:net'
import type { HostCertificate } from '../../src/contract/front-settings.ts'
import type { Gate } from '../../src/contract/gate.ts'
import { Arrivals } from '../net/arrivals.ts'
import { IDENT, type SshConnections } from './begin.ts'
import { SshFront } from './front/front.ts'

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
  readonly #arrivals: Arrivals

  constructor(options: SshProxyOptions) {
    this.#front = new SshFront({
      gate: options.gate,
      hostKeys: options.hostKeys,
      ...(options.nextHostKeys && { nextHostKeys: options.nextHostKeys }),
      ...(options.hostCertificates && { hostCertificates: options.hostCertificates }),
      ...(options.banner !== undefined && { banner: options.banner }),
      ident: IDENT,
      onWaiting: (socket, milliseconds) => this.#arrivals.waits(socket, milliseconds),
      onSignedIn: (identity, source, client, socket) => {
        this.#arrivals.signedIn(socket)
        options.sshConnections.begin({ identity, source, protocol: 'SSH', client })
      },
    })
    this.#arrivals = new Arrivals({
      graceMs: options.loginGraceMs,
      onSocket: (socket) => this.#front.accept(socket),
    })
  }

  /** Takes over an accepted connection, of which nothing has been read, and returns its socket. */
  accept(handle: object): Socket {
    return this.#arrivals.accept(handle)
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
    this.#arrivals.close()
  }

  /** Destroys all remaining connections. */
  destroy(): void {
    this.#arrivals.destroy()
  }
}
