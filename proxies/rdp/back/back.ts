/**
 * Connects to an RDP target: the socket, TLS with a key that the gate knows, CredSSP if the target has it,
 * and the connection sequence up to the session.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { Gate, OpenSession, ServiceTicket } from '../../../src/contract/gate.ts'
import { encryptionType } from '../../../src/kerberos/encryption.ts'
import type { HeldTicket } from '../../../src/kerberos/requests.ts'
import { EndedError } from '../../bytes/ended.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import type { ByteStream } from '../../net/byte-stream.ts'
import { dial } from '../../net/dial.ts'
import { handshake } from '../../net/handshake.ts'
import { certificateOptions } from '../../net/tls.ts'
import { CredentialRefusedError, TargetError } from '../../wording/errors.ts'
import { CHANNEL_LIMIT, type ChannelDefinition, type ClientData } from '../codec/client-data.ts'
import { type ClientInfo, forTarget, logonFlaw, type TargetLogon } from '../codec/client-info.ts'
import { CLIPRDR } from '../codec/cliprdr.ts'
import type { Redirection } from '../codec/redirection.ts'
import { SECURITY_PROTOCOL } from '../codec/x224.ts'
import { BackConnection } from '../connection/back-connection.ts'
import { BackNegotiation, type BackProtocol } from '../connection/back-negotiation.ts'
import { ACCOUNT_REASONS, CredSspError, type RefusalReason } from '../gss/errors.ts'
import { LicenseClient } from '../licensing/client.ts'
import { type Destination, destinationOf } from './destination.ts'
import { LogonWatch } from './logon-watch.ts'
import { OWN_NAME } from './own-name.ts'
import { RdpTarget } from './target.ts'
import { TargetNla } from './target-nla.ts'

const TPKT_HEADER = 4
/** 0xc0200000: INITIALIZED, ENCRYPT_RDP and SHOW_PROTOCOL (2.2.1.3.4.1). */
const CLIPBOARD: ChannelDefinition = { name: CLIPRDR, options: 0xc0200000 }

export interface RdpBackOptions {
  gate: Pick<Gate, 'hostKey' | 'serviceTicket'>
  /** Writes the event that NTLM is used instead of Kerberos, before it is. */
  onFallback: (reason: string) => Promise<void>
  /** Aborts the attempt; its reason is a text for the user. */
  signal: AbortSignal
  client: ClientData
  info: ClientInfo
  /** Channels requested from the target, by the client's indexes. */
  channels: readonly ChannelDefinition[]
  /** `relayed`: connecting resolves at the first licensing message, which the client answers. */
  licensing: 'answered' | 'relayed'
  /** A redirection received from the target. */
  redirection?: Redirection
}

/** Throws TargetError, or CredentialRefusedError if the target refuses the account. */
export async function openRdpTarget(session: OpenSession, options: RdpBackOptions): Promise<RdpTarget> {
  return await new Attempt(session, options).run()
}

/** Terms of one connection. */
interface Way {
  logon: TargetLogon
  destination: Destination
  protocols: BackProtocol[]
  hasKerberos: boolean
}

/** The target did not accept the Kerberos ticket. */
class KerberosRefusedError extends Error {}

const ABOUT_ACCOUNT: ReadonlySet<RefusalReason> = new Set(ACCOUNT_REASONS)

class Attempt {
  readonly #session: OpenSession
  readonly #options: RdpBackOptions
  readonly #name: string

  constructor(session: OpenSession, options: RdpBackOptions) {
    const { device, host, port } = session.target
    this.#session = session
    this.#options = options
    this.#name = `${device} (${host}:${port})`
  }

  async run(): Promise<RdpTarget> {
    const logon = this.#logon()
    const destination = await this.#destination()
    const hasKerberos = this.#session.hasKerberos === true && destination.host === this.#session.target.host
    const way: Way = { logon, destination, hasKerberos, protocols: this.#protocols(hasKerberos) }
    try {
      return await this.#connect(way)
    } catch (error) {
      if (!(error instanceof KerberosRefusedError)) throw this.#explained(error)
      await this.#fallBack(error.message)
      return await this.#connect({ ...way, hasKerberos: false }).catch((again) => {
        throw this.#explained(again)
      })
    }
  }

  /** Throws KerberosRefusedError if NTLM may be tried on another connection. */
  async #connect({ logon, destination, protocols, hasKerberos }: Way): Promise<RdpTarget> {
    const { signal } = this.#options
    const name = this.#name
    const socket = await dial(destination.host, destination.port, { name, signal })
    return await handshake(socket, { name, signal }, async (stream) => {
      const negotiation = new BackNegotiation({ protocols, login: logon.login, ...destination })
      const protocol = await negotiate(stream, negotiation)
      const certificate = await this.#startTls(stream, destination.host)
      let nla: TargetNla | undefined
      if (protocol === 'credssp') {
        const ticket = hasKerberos ? await this.#ticket() : undefined
        nla = new TargetNla(stream, { logon, host: destination.host, certificate, ticket })
        await this.#signIn(nla)
      }
      const target = this.#target(stream, protocol, logon)
      await begin(target, nla)
      return target
    })
  }

  /** Returns a ticket for the target, or undefined if there is none and NTLM may be used. */
  async #ticket(): Promise<HeldTicket | undefined> {
    const answer = await this.#options.gate.serviceTicket({ session: this.#session.id })
    if (answer.result === 'issued') return heldTicket(answer.ticket)
    if (answer.isFinal) throw new CredentialRefusedError(`${this.#name}: ${answer.message}`)
    await this.#fallBack(answer.message)
    return undefined
  }

  async #signIn(nla: TargetNla): Promise<void> {
    try {
      await nla.run()
    } catch (error) {
      const isRefused = nla.isKerberosRefused && error instanceof CredSspError
      // A target that is not the one of the ticket gets no other proof either, nor is an account tried twice.
      if (!isRefused || error.reason === 'altered' || ABOUT_ACCOUNT.has(error.reason)) throw error
      throw new KerberosRefusedError(`Kerberos: ${error.message}`)
    }
  }

  /** Throws TargetError if the policy does not allow NTLM. */
  async #fallBack(reason: string): Promise<void> {
    if (!this.#session.rdpOptions.ntlm) {
      throw new TargetError(`${this.#name}: ${reason}; the connection policy does not allow NTLM instead`)
    }
    await this.#options.onFallback(reason)
  }

  #logon(): TargetLogon {
    const found = this.#session.credentials.find(({ type }) => type === 'password')
    if (!found || !('password' in found)) {
      throw new TargetError(`${this.#name} requires a password, and the account has none here`)
    }
    const logon = { ...splitLogin(this.#session.target.login), password: found.password }
    const flaw = logonFlaw(logon)
    if (flaw !== undefined) throw new TargetError(`${this.#name} cannot be signed in to: ${flaw}`)
    return logon
  }

  #protocols(hasKerberos: boolean): BackProtocol[] {
    const { security, ntlm } = this.#session.rdpOptions
    const usable = security.filter((protocol) => protocol !== 'credssp' || ntlm || hasKerberos)
    if (usable.length > 0) return usable
    throw new TargetError(
      `${this.#name} may be signed in to by network level authentication alone, and the connection policy does not allow NTLM for it; there is no Kerberos for this account and target`,
    )
  }

  async #destination(): Promise<Destination> {
    const { target, rdpOptions } = this.#session
    const { redirection } = this.#options
    if (!redirection) return { host: target.host, port: target.port }
    return await destinationOf(redirection, {
      name: this.#name,
      target,
      redirectTo: rdpOptions.redirectTo,
    })
  }

  async #startTls(stream: ByteStream, host: string): Promise<Uint8Array> {
    const certificate = await stream.startTls(certificateOptions(host))
    if (!certificate) throw new TargetError(`${this.#name} shows no certificate for its TLS`)
    const { gate } = this.#options
    const answer = await gate.hostKey({ session: this.#session.id, key: certificate, kind: 'x509' })
    if (answer.result === 'refused') throw new TargetError(answer.message)
    return certificate
  }

  #target(stream: ByteStream, protocol: BackProtocol, logon: TargetLogon): RdpTarget {
    const { client, info, channels, licensing } = this.#options
    const { colourDepth, logonWait } = this.#session.rdpOptions
    // 0 disables the watch: for targets that have no logon or do not report it.
    const isWatched = protocol === 'tls' && logonWait > 0
    const asked = isWatched ? withClipboard(channels) : channels
    const clipboard = asked.findIndex(({ name }) => name === CLIPRDR)
    const target = new RdpTarget({
      stream,
      protocol,
      watch: isWatched ? new LogonWatch({ name: this.#name, seconds: logonWait }) : undefined,
      clipboard: clipboard < 0 ? undefined : clipboard,
      channels: channels.length,
    })
    target.connection = new BackConnection({
      client,
      view: {
        selectedProtocol: SECURITY_PROTOCOL[protocol],
        channels: asked,
        colourDepth: client.core.colourDepth < 24 ? 16 : colourDepth,
      },
      info: forTarget(info, logon),
      licensing: licensing === 'relayed' ? licensing : licenseeOf(logon),
      visitor: target.listener,
      write: (bytes) => target.send(bytes),
    })
    return target
  }

  /** Converts an error to one with a text for the user. */
  #explained(error: unknown): unknown {
    const name = this.#name
    if (error instanceof MalformedError) {
      return new TargetError(`${name} broke the RDP protocol: ${error.message}`)
    }
    if (error instanceof EndedError) {
      return new TargetError(`${name} ended the connection before the session had begun: ${error.message}`)
    }
    if (error instanceof CredSspError) {
      const words = `${name}: ${error.message}`
      return ABOUT_ACCOUNT.has(error.reason) ? new CredentialRefusedError(words) : new TargetError(words)
    }
    const isNamed = !(error instanceof TargetError) || error.message.startsWith(name)
    return isNamed ? error : new TargetError(`${name}: ${error.message}`)
  }
}

/** Splits `DOMAIN\user`. A login with @ stays whole, and the target finds its domain. */
function splitLogin(login: string): { domain: string; login: string } {
  const at = login.indexOf('\\')
  return { domain: at < 0 ? '' : login.slice(0, at), login: login.slice(at + 1) }
}

/** @throws TargetError for a type of key that is not spoken here */
function heldTicket({ realm, client, ticket, key }: ServiceTicket): HeldTicket {
  const type = encryptionType(key.type)
  if (!type)
    throw new TargetError(`a key of type ${key.type} came with the Kerberos ticket, and AES was expected`)
  return {
    realm,
    client,
    ticket,
    key: { type, bytes: Buffer.from(key.bytes.buffer, key.bytes.byteOffset, key.bytes.length) },
  }
}

function licenseeOf({ login }: TargetLogon): LicenseClient {
  return new LicenseClient({ userName: login, machineName: OWN_NAME, random: randomBytes })
}

function withClipboard(channels: readonly ChannelDefinition[]): readonly ChannelDefinition[] {
  const isThere = channels.some(({ name }) => name === CLIPRDR)
  return isThere || channels.length === CHANNEL_LIMIT ? channels : [...channels, CLIPBOARD]
}

async function negotiate(stream: ByteStream, negotiation: BackNegotiation): Promise<BackProtocol> {
  stream.write(negotiation.request)
  const header = await stream.read(TPKT_HEADER)
  // Throws on a length that no response can have, before the rest is read.
  negotiation.receive(header)
  const chosen = negotiation.receive(await stream.read(header.readUInt16BE(2) - TPKT_HEADER))
  return chosen!
}

/** Runs the sequence until the target has an event for the client; rejects if the connection ends first. */
async function begin(target: RdpTarget, nla: TargetNla | undefined): Promise<void> {
  const { stream, connection } = target
  connection.start()
  if (nla) target.receive(await nla.first())
  await new Promise<void>((resolve, reject) => {
    stream.onClosed = () => reject(new EndedError(stream.failure?.message ?? 'the connection was closed'))
    stream.onData = (chunk) => {
      try {
        target.receive(chunk)
      } catch (error) {
        reject(error)
      }
      if (target.hasEnded) reject(new EndedError('it said that this is the end, and gave no reason'))
      if (target.hasKept) resolve()
      stream.paused = target.hasEnded || target.hasKept
    }
    if (stream.closed) stream.onClosed()
    else stream.paused = false
  }).finally(() => {
    stream.onClosed = undefined
    stream.onData = undefined
  })
}
