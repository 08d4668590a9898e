/**
 * The client side toward a target with a desktop: the connection, the sign-in by the strongest security type
 * that the policy allows and the credential fits, and the target's ServerInit.
 */
import { Buffer } from 'node:buffer'
import type { Gate, OpenSession } from '../../src/contract/gate.ts'
import type { VncSecurityType } from '../../src/model/vnc-options.ts'
import { EndedError } from '../bytes/ended.ts'
import { MalformedError } from '../bytes/malformed.ts'
import type { ByteStream } from '../net/byte-stream.ts'
import { dial } from '../net/dial.ts'
import { handshake } from '../net/handshake.ts'
import { certificateOptions } from '../net/tls.ts'
import { CredentialRefusedError, TargetError, wordsOf } from '../wording/errors.ts'
import { parseServerInit, type ServerInit } from './codec/server-init.ts'
import type { ClientChannel } from './security/channel.ts'
import {
  type Container,
  RefusedError,
  type SecurityResult,
  type SignInOptions,
  signIn,
} from './security/client.ts'
import { skipTightInit } from './security/tight.ts'
import { anonymousOptions } from './tls.ts'

/** Characters of a desktop's name that are kept. */
const MAX_NAME = 256
/** Bytes of ServerInit before the name; the last four are its length. */
const INIT_HEAD = 24

export interface VncBackOptions {
  gate: Pick<Gate, 'hostKey'>
  /** Cancels; its reason is a text for the user. */
  signal: AbortSignal
  /** Allows other clients on the desktop at the same time. */
  isShared: boolean
}

/** The stream is paused, and begins with the bytes after ServerInit. */
export interface VncTarget {
  stream: ByteStream
  init: ServerInit
  security: VncSecurityType
}

/** Throws TargetError. */
export async function openVncTarget(session: OpenSession, options: VncBackOptions): Promise<VncTarget> {
  const attempt = new Attempt(session, options)
  const without = new Set<Container>()
  for (;;) {
    try {
      return await attempt.run(without)
    } catch (error) {
      const refusal = error instanceof RefusedError ? error.refusal : undefined
      // A client that has chosen a container cannot choose another type on the same connection.
      if (refusal?.kind !== 'no-type' || refusal.within === undefined || without.has(refusal.within)) {
        throw attempt.explained(error)
      }
      attempt.saw(refusal.offered)
      without.add(refusal.within)
    }
  }
}

class Attempt {
  readonly #session: OpenSession
  readonly #options: VncBackOptions
  readonly #name: string
  /** Types that were offered and could not be used, over all connections. */
  readonly #offered = new Set<string>()

  constructor(session: OpenSession, options: VncBackOptions) {
    const { device, host, port } = session.target
    this.#session = session
    this.#options = options
    this.#name = `${device} (${host}:${port})`
  }

  async run(without: ReadonlySet<Container>): Promise<VncTarget> {
    const { target } = this.#session
    const { signal } = this.#options
    const name = this.#name
    const socket = await dial(target.host, target.port, { name, signal })
    return await handshake(socket, { name, signal }, async (stream) => {
      const channel = channelOf(stream, target.host)
      const signedIn = await signIn(channel, this.#signIn(without))
      const init = await readInit(channel, signedIn)
      return { stream, init, security: signedIn.security }
    })
  }

  saw(offered: readonly string[]): void {
    for (const type of offered) this.#offered.add(type)
  }

  /** Returns the error for the user. */
  explained(error: unknown): unknown {
    if (error instanceof MalformedError) {
      return new TargetError(`${this.#name} broke the VNC protocol: ${error.message}`)
    }
    if (error instanceof EndedError) {
      return new TargetError(
        `${this.#name} ended the connection before the sign-in was over: ${error.message}`,
      )
    }
    return error instanceof RefusedError ? this.#refused(error) : error
  }

  #refused({ refusal }: RefusedError): TargetError {
    const name = this.#name
    switch (refusal.kind) {
      case 'busy':
        return new TargetError(`${name} takes no connection now${this.#said(refusal.reason)}`)
      case 'credential': {
        const why = refusal.isTooMany ? 'too many attempts have failed' : 'it did not take the credential'
        return new CredentialRefusedError(
          `${name} refused the sign-in by ${refusal.security}: ${why}${this.#said(refusal.reason)}`,
        )
      }
      case 'no-tls':
        return new TargetError(
          `${name} offers ${refusal.security} and cannot begin its TLS: see whether it has its certificate, or leave ${refusal.security} out of security_types in the connection policy`,
        )
      default: {
        this.saw(refusal.offered)
        const offered = [...this.#offered].join(', ') || 'nothing'
        return new TargetError(
          `${name} offers no way to sign in that the connection policy allows and the account fits: it has ${wordsOf(offered)}`,
        )
      }
    }
  }

  /** Returns the target's own text, without the password: a target that knows it may send it. */
  #said(reason: string | undefined): string {
    if (reason === undefined || reason.trim() === '') return ''
    const { password = '' } = this.#credential()
    return `, and says: ${wordsOf(password === '' ? reason : reason.replaceAll(password, '…'))}`
  }

  #credential(): { password: string | undefined } {
    const found = this.#session.credentials.find(({ type }) => type === 'password')
    return { password: found && 'password' in found ? found.password : undefined }
  }

  #signIn(without: ReadonlySet<Container>): SignInOptions {
    const { id, target, vncOptions } = this.#session
    return {
      allowed: vncOptions.securityTypes,
      without,
      user: target.login,
      ...this.#credential(),
      isShared: this.#options.isShared,
      judge: async (kind, key) => {
        const answer = await this.#options.gate.hostKey({ session: id, key, kind })
        if (answer.result === 'refused') throw new TargetError(answer.message)
      },
    }
  }
}

function channelOf(stream: ByteStream, host: string): ClientChannel {
  return {
    read: (bytes) => stream.read(bytes),
    write: (bytes) => stream.write(bytes),
    startFrames: (sealer, opener) => stream.startFrames(sealer, opener),
    startTls: (identity) =>
      stream.startTls(identity === 'anonymous' ? anonymousOptions() : certificateOptions(host)),
  }
}

async function readInit(channel: ClientChannel, { isTight }: SecurityResult): Promise<ServerInit> {
  const head = await channel.read(INIT_HEAD)
  // Checks the limits before the name is read.
  const { init } = parseServerInit(head) ?? (await readName(channel, head))
  if (isTight) await skipTightInit(channel)
  return { ...init, name: cleaned(init.name) }
}

async function readName(channel: ClientChannel, head: Buffer): Promise<{ init: ServerInit }> {
  const name = await channel.read(head.readUInt32BE(INIT_HEAD - 4))
  return parseServerInit(Buffer.concat([head, name]))!
}

/** Cleans a name for window titles and lists. */
function cleaned(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ').slice(0, MAX_NAME)
}
