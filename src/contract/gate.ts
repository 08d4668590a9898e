/**
 * The gate in the form of its messages: everything that a proxy may ask of the broker, and everything it is
 * told (invariant 1). All of it is plain data that `structuredClone` takes, both ways, because a proxy runs in
 * a process of its own; a function, a class or a socket never crosses.
 *
 * A proxy never decides who somebody is: it passes on what the client proved, and holds an opaque identity
 * token afterwards. It does apply the rights of the session that `open` answered, message by message.
 */

import type { FrameType } from '../../recordings/container/frames.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import type { EventCode, FieldsOf } from '../audit/events/catalogue.ts'
import type { LoginOptions } from '../model/login-options.ts'
import type { NtlmProof as NtlmClientProof } from '../model/ntlm-auth.ts'
import type { RdpOptions } from '../model/rdp-options.ts'
import type { Protocol, Right } from '../model/rights.ts'
import type { SshOptions } from '../model/ssh-options.ts'
import type { VncOptions } from '../model/vnc-options.ts'

/** Where a client comes from, as the accepting socket saw it. */
export interface Source {
  address: string
  port: number
}

export interface AuthenticateRequest {
  protocol: Protocol
  source: Source
  /** The client's user-name field, whole: `USER SEP TARGET [SEP SERVICE]` (contract.md, Login string). */
  login: string
  proof: NoProof | PasswordProof | AnswersProof | PublicKeyProof | TicketProof | NtlmProof
}

/** The client asks which methods there are (RFC 4252 5.2). Never signs in; a malformed login string is answered as such. */
export interface NoProof {
  method: 'none'
}

export interface PasswordProof {
  method: 'password' | 'keyboard-interactive'
  password: string
}

/** What the person said to a challenge, in the order of its prompts. */
export interface AnswersProof {
  method: 'keyboard-interactive'
  /** The challenge's id. */
  challenge: string
  answers: string[]
}

export interface PublicKeyProof {
  method: 'publickey'
  /** The blob as offered: of a public key (RFC 4253 6.6) or of an OpenSSH certificate. */
  key: Uint8Array
  /**
   * What the client signed (RFC 4252 7) and the signature field as it came. Absent: the client only asks whether the
   * key would do; such a question never authenticates.
   */
  signed?: { data: Uint8Array; signature: Uint8Array }
}

/** A one-time ticket as the password of VNC authentication (RFC 6143 7.2.2): there is no name, so the login is not read. */
export interface TicketProof {
  method: 'ticket'
  /** 16 bytes each: what the front has sent, and what came back. */
  challenge: Uint8Array
  response: Uint8Array
}

/**
 * A one-time ticket as the password of NTLM (MS-NLMP 3.3.2), which proves it for the user name in the proof itself: that is
 * the login string, and `login` is not read.
 */
export interface NtlmProof {
  method: 'ntlm'
  proof: NtlmClientProof
}

export type AuthenticateAnswer =
  /** `key`: of a proof by NTLM, the session's base key (MS-NLMP 3.4.5.1). */
  | { result: 'accepted'; identity: Identity; key?: Uint8Array }
  /** The key is one of the user's: the client may go on and sign. */
  | { result: 'key_acceptable' }
  /** There is more to ask before it is decided; a front that cannot ask refuses. */
  | { result: 'challenge'; challenge: Challenge }
  /** Wrong, unknown, disabled, locked, expired: one answer for all of them (invariant 7). */
  | { result: 'rejected' }
  /** The login string itself is malformed; `message` shows the syntax and is for the user. */
  | { result: 'malformed'; message: string }

/** One round of questions. */
export interface Challenge {
  /** Opaque: the answers name it. */
  id: string
  title: string
  instructions: string
  prompts: { text: string; echo: boolean }[]
}

/** A signed-in person. `token` is what later requests show; it dies with `leave`. */
export interface Identity {
  token: string
  user: string
  displayName: string
  /** The login string asks for a target, or the ticket is for one; false: offer a menu, or an error text where there is no terminal. */
  hasTarget: boolean
  /** No user, but the guest of a running session: nothing else is open to them. */
  guest?: GuestIdentity
}

export interface GuestIdentity {
  session: string
  invitation: string
  /** How the others see them. */
  name: string
  mode: 'view' | 'control'
}

export interface TargetsRequest {
  identity: string
  protocol: Protocol
}

/** One line of the menu. `target` is the canonical name: `ACCOUNT@DOMAIN:DEVICE:SERVICE` (contract.md). */
export interface TargetEntry {
  target: string
  description: string
}

export interface TargetsAnswer {
  targets: TargetEntry[]
  /** How many there are in all, when the list was cut at `MAX_TARGETS`. */
  total: number
}

export interface OpenRequest {
  identity: string
  protocol: Protocol
  source: Source
  /** The canonical name that the user chose from the menu; absent: the target in the login string. */
  target?: string
  /** What the person typed, after the answer `logon_needed`. */
  logon?: Logon
}

/** Where no stored account is used: what somebody logs in with at the target. It goes there and nowhere else. */
export interface Logon {
  /** Absent: the gate knows it already. */
  login?: string
  password: string
}

export type OpenAnswer =
  | { result: 'opened'; session: OpenSession }
  | { result: 'denied'; message: string }
  /** Nothing is open: the person has to say more, where there is somebody to ask. */
  | { result: 'logon_needed'; question: LogonQuestion }

export interface LogonQuestion {
  /** The target's name as the person reads it. */
  target: string
  /** Known already: only the password is asked. */
  login?: string
  /** What was wrong with the last answer. */
  flaw?: string
}

export interface OpenSession {
  id: string
  user: string
  target: {
    canonical: string
    protocol: Protocol
    host: string
    port: number
    /** Empty: the person types it at the target. */
    login: string
    device: string
    service: string
  }
  /** Of the methods in `options.authenticationMethods`, in the order to try them. */
  credentials: SessionCredential[]
  /** The person types at the target what it asks for (TELNET, RLOGIN). */
  isPersonal?: true
  /** They are the person's own, who may be asked again when the target refuses them. */
  question?: LogonQuestion
  /** Types of the target's host keys that are accepted (`ssh-ed25519`, …, `x509`): one of these is what it is asked to show. */
  hostKeyTypes: string[]
  /** It is to show a certificate about its host key; only then may it be asked for one. */
  wantsHostCertificate: boolean
  rights: Right[]
  /** Of a sign-in by certificate. */
  limits?: SessionLimits
  options: SshOptions
  /** Of TELNET and RLOGIN. */
  loginOptions: LoginOptions
  /** Of VNC; `securityTypes` has those only that may be used with this target and these credentials. */
  vncOptions: VncOptions
  rdpOptions: RdpOptions
  /** undefined: the authorization says that this session is not recorded. */
  recording?: RecordingGrant
  /** Nothing goes to the client before what was recorded of it is on the disk under a checkpoint. */
  isStrict?: true
}

/** What the certificate of the sign-in holds a session to, beside the rights that it withholds. */
export interface SessionLimits {
  /** Runs instead of any shell, command or subsystem that the client asks for: exact bytes. */
  forcedCommand?: Uint8Array
  noTerminal: boolean
}

export type SessionCredential =
  | { type: 'password'; password: string }
  | { type: 'enable'; password: string }
  | { type: 'ssh_key'; privateKey: string; passphrase?: string }
  /** A key that was made for this session, PKCS#8 in PEM, and the certificate about it (PROTOCOL.certkeys). */
  | { type: 'ssh_certificate'; privateKey: string; certificate: Uint8Array }

export interface HostKeyRequest {
  session: string
  /** What the target has proved to hold, or is about to by what is encrypted to it. */
  key: Uint8Array
  /**
   * What `key` is. `ssh`, the default: the blob of a host key (RFC 4253 6.6), or of a certificate about it. `x509`: the
   * certificate (RFC 5280 4.1) of TLS, in DER. `rsa`: a SubjectPublicKeyInfo, in DER.
   */
  kind?: 'ssh' | 'x509' | 'rsa'
}
export type HostKeyAnswer = { result: 'accepted' } | { result: 'refused'; message: string }

/** What a proxy reports: the broker tells the rest. */
export type ProxyEventCode = Extract<
  EventCode,
  | 'session.redirect'
  | 'channel.open'
  | 'channel.denied'
  | 'channel.unrecorded'
  | 'command'
  | 'file.transfer'
  | 'file.denied'
  | 'clipboard'
  | 'session.kill'
>

/** What a proxy says of what passes. Who acted, from where and upon what is the broker's to say, in every event. */
export type ProxyField =
  | 'subprotocol'
  | 'result'
  | 'reason'
  | 'object'
  | 'path'
  | 'direction'
  | 'size'
  | 'sha256'
  | 'format'
  | 'destination'
  | 'confidence'
  | 'rule'

/** The fields that a proxy may set in an event of the code. */
export type ProxyFields<C extends ProxyEventCode> = Pick<FieldsOf<C>, Extract<keyof FieldsOf<C>, ProxyField>>

/**
 * Resolves when the event is in the audit log: until then the action that it tells of has to wait. A code or a field
 * that is not the proxy's to tell rejects, and ends the session.
 */
export interface EventRequest<C extends ProxyEventCode = ProxyEventCode> {
  session: string
  code: C
  fields: ProxyFields<C>
}

/** Something that a signed-in client asked for without a session, and that was refused. */
export interface DeniedRequest {
  identity: string
  protocol: Protocol
  /** A channel's type or a request's name. */
  what: string
  reason: string
}

/** A recording's checkpoint to be signed: the bytes are defined in docs/recording-format.md. */
export interface SignRequest {
  session: string
  statement: Uint8Array
}

export interface CloseRequest {
  session: string
  result: 'success' | 'failure' | 'killed'
  reason?: string
  /** Bytes of channel data: from the client toward the target, and back. */
  bytesIn: number
  bytesOut: number
  rightsUsed: Right[]
}

/** A frame of a recording (recordings/container/frames.ts) as those who watch the session get it. */
export interface LiveFrame {
  type: FrameType
  channel: number
  /** Microseconds since the recording began. */
  time: number
  payload: Uint8Array
  /** Frames in the recording, this one included. */
  after: number
}

/** What somebody watches: sent only after a `watch` notice. */
export interface LiveRequest {
  session: string
  /** In order, those since the request before. */
  frames: LiveFrame[]
  /** The notice `sync` has come: the recording on the disk has all frames up to this number, and later ones follow here. */
  synced?: { sync: number; frames: number }
  /** Frames after the ones here were left out, and no more come until the next notice: it was too much. */
  lost?: true
}

/** false: nobody watches any more, so nothing more is to be sent. */
export interface LiveAnswer {
  watched: boolean
}

/** What the broker tells a proxy on its own account. */
export type GateNotice =
  /** End the session now and show the reason to the user. */
  | { type: 'stop'; session: string; reason: string }
  /** Somebody is signed in no longer: end their connection, and show the reason. `identity` is their token. */
  | { type: 'leave'; identity: string; reason: string }
  /** Show this line in the user's terminals, where there are any. */
  | { type: 'tell'; session: string; text: string }
  /** Somebody watches: send the frames from now on, and say where the recording is (`LiveRequest.synced`). */
  | { type: 'watch'; session: string; sync: number }
  /** What the guest of an invitation may do from now on, or that they have to leave, and why; `by`: who says so. */
  | {
      type: 'guest'
      session: string
      invitation: string
      change: { mode: 'view' | 'control'; by: string } | { out: string; by?: string }
    }

export interface Gate {
  authenticate(request: AuthenticateRequest): Promise<AuthenticateAnswer>
  targets(request: TargetsRequest): Promise<TargetsAnswer>
  open(request: OpenRequest): Promise<OpenAnswer>
  hostKey(request: HostKeyRequest): Promise<HostKeyAnswer>
  event<C extends ProxyEventCode>(request: EventRequest<C>): Promise<void>
  denied(request: DeniedRequest): Promise<void>
  /** Answers with the Ed25519 signature over the statement. */
  sign(request: SignRequest): Promise<Uint8Array>
  close(request: CloseRequest): Promise<void>
  live(request: LiveRequest): Promise<LiveAnswer>
  /** The connection is gone: its identity, or the challenge that it has not answered, is no longer valid. */
  leave(request: { identity: string }): Promise<void>
  /** One listener a proxy; a notice for a session that it does not know is ignored. */
  onNotice(listener: (notice: GateNotice) => void): void
}

export const MAX_TARGETS = 10_000
