/**
 * The gate as messages: all requests of a proxy to the broker, and all answers and notices of the broker
 * (invariant 1). Messages are plain data that `structuredClone` copies, because a proxy is written to run in
 * a process of its own; a function, a class or a socket never crosses.
 *
 * A proxy never decides who a client is: it forwards the client's proof, and afterwards holds an opaque
 * identity token. It does apply the session's rights, which `open` returns, message by message.
 */

import type { FrameType } from '../../recordings/container/frames.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import type { Appended } from '../../recordings/container/recording-file.ts'
import type { EventCode, FieldsOf } from '../audit/events/catalogue.ts'
import type { LoginOptions } from '../model/login-options.ts'
import type { NtlmProof as NtlmClientProof } from '../model/ntlm-auth.ts'
import type { RdpOptions } from '../model/rdp-options.ts'
import type { Protocol, Right } from '../model/rights.ts'
import type { SshOptions } from '../model/ssh-options.ts'
import type { VncOptions } from '../model/vnc-options.ts'

/** Address of a client as the accepting socket reports it. */
export interface Source {
  address: string
  port: number
}

export interface AuthenticateRequest {
  protocol: Protocol
  source: Source
  /** The client's user-name field, whole: `USER SEP TARGET [SEP SERVICE]` (docs/clients.md). */
  login: string
  proof:
    | NoProof
    | BrowserProof
    | PasswordProof
    | AnswersProof
    | PublicKeyProof
    | GssapiTokenProof
    | GssapiMicProof
    | TicketProof
    | NtlmProof
}

/**
 * A request for the available methods (RFC 4252 5.2). Never signs in. A malformed login string gets
 * `malformed`.
 */
export interface NoProof {
  method: 'none'
}

/**
 * Begins a sign-in in a browser: `challenge` for names of domains whose persons sign in there only, and `rejected` for all
 * others, which is no failure.
 */
export interface BrowserProof {
  method: 'browser'
}

export interface PasswordProof {
  method: 'password' | 'keyboard-interactive'
  password: string
}

/** The user's answers to a challenge, in the order of its prompts. */
export interface AnswersProof {
  method: 'keyboard-interactive'
  /** Id of the challenge. */
  challenge: string
  answers: string[]
}

export interface PublicKeyProof {
  method: 'publickey'
  /** Blob of a public key (RFC 4253 6.6) or of an OpenSSH certificate, as the client offered it. */
  key: Uint8Array
  /**
   * The signed data (RFC 4252 7) and the signature field, unchanged. Absent if the client only queries
   * whether the key is acceptable; such a query never authenticates.
   */
  signed?: { data: Uint8Array; signature: Uint8Array }
}

/** A client's first token of Kerberos over SSH (RFC 4462 3.4). Never signs in: the client has to sign by it. */
export interface GssapiTokenProof {
  method: 'gssapi-with-mic'
  token: Uint8Array
}

/** The client's signature under the context that its token has begun (RFC 4462 3.5). */
export interface GssapiMicProof {
  method: 'gssapi-with-mic'
  /** Id of the context. */
  context: string
  /** The signed data: the session identifier of the connection, and the request. */
  data: Uint8Array
  mic: Uint8Array
}

/**
 * A one-time ticket as the password of VNC authentication (RFC 6143 7.2.2). It carries no name, so `login` is
 * ignored.
 */
export interface TicketProof {
  method: 'ticket'
  /** 16 bytes each: the front's challenge and the client's response. */
  challenge: Uint8Array
  response: Uint8Array
}

/**
 * A one-time ticket as the password of NTLM (MS-NLMP 3.3.2). The user name inside the proof is the login
 * string; `login` is ignored.
 */
export interface NtlmProof {
  method: 'ntlm'
  proof: NtlmClientProof
}

export type AuthenticateAnswer =
  /** `key`: the session base key (MS-NLMP 3.4.5.1) of an NTLM proof. */
  | { result: 'accepted'; identity: Identity; key?: Uint8Array }
  /** The key belongs to the user: the client may send a signature. */
  | { result: 'key_acceptable' }
  /** More answers are needed first; a front that cannot prompt rejects. */
  | { result: 'challenge'; challenge: Challenge }
  /** A token of Kerberos is taken: `token` goes to the client, and its signature is awaited. */
  | { result: 'context'; context: string; token?: Uint8Array }
  /**
   * Wrong, unknown, disabled, locked or expired: the same answer for all (invariant 7). `takesTickets`: tickets of Kerberos
   * are taken over SSH, whoever asks; only for `none`.
   */
  | { result: 'rejected'; takesTickets?: true }
  /** The login string is malformed; `message` shows the user the syntax. */
  | { result: 'malformed'; message: string }
  /** No proof can be judged at the moment; `message` is for the user. */
  | { result: 'unavailable'; message: string }

/** Milliseconds within which a person decides in a browser. */
export const WAIT_MS = 180_000

/** One round of prompts. */
export interface Challenge {
  /** Opaque id that the answers repeat. */
  id: string
  title: string
  instructions: string
  /** An URI for an authenticator, shown as a QR code, too. */
  uri?: string
  /**
   * Address of a page where the person goes on. There are no prompts: the answers are sent at once, and their verdict comes
   * when the person has decided, or within `WAIT_MS`. A client that leaves has to leave the challenge, too.
   */
  link?: string
  prompts: { text: string; echo: boolean }[]
  /** For clients that cannot be prompted: how they get on without. */
  hint?: string
}

/** A signed-in user or guest. Later requests carry `token`, which is valid until `leave`. */
export interface Identity {
  token: string
  user: string
  displayName: string
  /**
   * Whether the login string names a target, or the ticket is for one. If not: offer a menu, or an error text
   * if there is no terminal.
   */
  hasTarget: boolean
  /** Set for a guest of a running session, which is no user and can do nothing else. */
  guest?: GuestIdentity
}

export interface GuestIdentity {
  session: string
  invitation: string
  /** The guest's name as the other participants see it. */
  name: string
  mode: 'view' | 'control'
}

export interface TargetsRequest {
  identity: string
  protocol: Protocol
}

/** One line of the menu. `target` is the canonical name `ACCOUNT@DOMAIN:DEVICE:SERVICE` (docs/clients.md). */
export interface TargetEntry {
  target: string
  description: string
}

export interface TargetsAnswer {
  targets: TargetEntry[]
  /** Number of all targets, even if `targets` was cut at `MAX_TARGETS`. */
  total: number
}

export interface OpenRequest {
  identity: string
  protocol: Protocol
  source: Source
  /** Canonical name of the target chosen from the menu. Absent for the target in the login string. */
  target?: string
  /** The user's input after the answer `logon_needed`. */
  logon?: Logon
  /** The user's input after the answer `reason_needed`. */
  reason?: Reason
  /** Id of the accepted approval for which the client waited on this connection. */
  approval?: string
  /** The user's input after the answer `factor_needed`. */
  factor?: FactorAnswers
}

/** Answers to a round of prompts for a second factor, in the order of its prompts. */
export interface FactorAnswers {
  /** Id of the challenge. */
  challenge: string
  answers: string[]
}

/** Why a user opens a session. */
export interface Reason {
  comment: string
  ticket: string
  /** Seconds that the user asks for. */
  duration?: number
}

/**
 * Credentials that the user types because the target has no stored account. They are sent to the target only.
 */
export interface Logon {
  /** Absent if the gate knows the login already. */
  login?: string
  password: string
}

export type OpenAnswer =
  | { result: 'opened'; session: OpenSession }
  | { result: 'denied'; message: string }
  /** No session is open: the user has to enter credentials, if the front can prompt. */
  | { result: 'logon_needed'; question: LogonQuestion }
  /** No session is open: the user has to give a reason, if the front can prompt. */
  | { result: 'reason_needed'; question: ReasonQuestion }
  /** No session is open: the user has to prove a second factor, if the front can prompt; maybe in several rounds. */
  | { result: 'factor_needed'; target: string; challenge: Challenge }
  /**
   * No session is open: approvers were asked. The front shows `wait.lines` and waits for the notice `approval`,
   * then opens again with `approval`.
   */
  | { result: 'approval_pending'; wait: ApprovalWait }

export type Wanted = 'none' | 'optional' | 'mandatory'

export interface ReasonQuestion {
  /** Name of the target as shown to the user. */
  target: string
  comment: Wanted
  ticket: Wanted
  /** The user may say for how long, because approvers are asked. */
  asksDuration?: boolean
  /** Error in the previous answer. */
  flaw?: string
}

export interface ApprovalWait {
  /** Id of the request. */
  approval: string
  target: string
  /** The approvers asked, how many must agree, and until when. */
  lines: string[]
  /** Milliseconds since the epoch. */
  expires: number
}

export interface LogonQuestion {
  /** Name of the target as shown to the user. */
  target: string
  /** A login that is known already: only the password is prompted for. */
  login?: string
  /** Error in the previous answer. */
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
    /** Empty if the user types the login at the target. */
    login: string
    device: string
    service: string
  }
  /**
   * Credentials for `options.authenticationMethods`, in the order to try them. Those of a stored account of SSH
   * come with the accepted host key instead.
   */
  credentials: SessionCredential[]
  /** The user logs in at the target's own prompts (TELNET, RLOGIN). */
  isPersonal?: true
  /** Set if the credentials are the user's own: the user may be prompted again if the target rejects them. */
  question?: LogonQuestion
  /**
   * Accepted types of the target's host key (`ssh-ed25519`, …, `x509`); the target is asked for one of these.
   */
  hostKeyTypes: string[]
  /**
   * Whether the target has to show a certificate for its host key. If false, the handshake must not offer
   * certificate types.
   */
  wantsHostCertificate: boolean
  rights: Right[]
  /** Limits set by the certificate of the sign-in. */
  limits?: SessionLimits
  options: SshOptions
  /** Options for TELNET and RLOGIN. */
  loginOptions: LoginOptions
  /** Options for VNC; `securityTypes` holds only those usable with this target and these credentials. */
  vncOptions: VncOptions
  rdpOptions: RdpOptions
  /** The account's domain has a Kerberos realm, and the policy allows Kerberos: ask for a ticket (RDP). */
  hasKerberos?: true
  /** Absent if the authorization says that this session is not recorded. */
  recording?: RecordingGrant
  /** Output is held back from the client until its recording is on the disk under a checkpoint. */
  isStrict?: true
  /** The session begins suspended: no input of its client reaches the target before the notice `resume`. */
  isSuspended?: { reason: string }
}

/** Limits that the certificate of the sign-in sets for a session, besides the rights that it withholds. */
export interface SessionLimits {
  /** Command, as exact bytes, that replaces any shell, command or subsystem requested by the client. */
  forcedCommand?: Uint8Array
  noTerminal: boolean
}

export type SessionCredential =
  | { type: 'password'; password: string }
  | { type: 'enable'; password: string }
  | { type: 'ssh_key'; privateKey: string; passphrase?: string }
  /** A private key made for this session (PKCS#8 in PEM) and its certificate (PROTOCOL.certkeys). */
  | { type: 'ssh_certificate'; privateKey: string; certificate: Uint8Array }

export interface HostKeyRequest {
  session: string
  /** Key that the target has proved to hold, or will prove by decrypting what is sent next. */
  key: Uint8Array
  /**
   * Form of `key`. `ssh`, the default: blob of a host key (RFC 4253 6.6), or of its certificate. `x509`: TLS
   * certificate (RFC 5280 4.1), in DER. `rsa`: SubjectPublicKeyInfo, in DER.
   */
  kind?: 'ssh' | 'x509' | 'rsa'
}
export type HostKeyAnswer =
  /** `credentials`: those that `open` withheld until now, once. */
  { result: 'accepted'; credentials?: SessionCredential[] } | { result: 'refused'; message: string }

export type ServiceTicketAnswer =
  | { result: 'issued'; ticket: ServiceTicket }
  /**
   * There is none; `message` is for the user. `isFinal`: the KDC has judged the account, and another way to sign in would
   * only be refused again.
   */
  | { result: 'failed'; message: string; isFinal?: true }

/** A Kerberos ticket for the session's target, with its key. */
export interface ServiceTicket {
  realm: string
  client: string[]
  ticket: Uint8Array
  key: { type: number; bytes: Uint8Array }
}

/**
 * A step of the sign-in at a session's target by the ticket that the user has forwarded: first without `answer`, then, once,
 * with the target's.
 */
export interface TargetGssapiRequest {
  session: string
  /** The target's token, and the data to be signed (RFC 4462 3.5). */
  answer?: { token: Uint8Array; data: Uint8Array }
}

export type TargetGssapiAnswer =
  | { result: 'token'; token: Uint8Array }
  | { result: 'signed'; mic: Uint8Array }
  /** `message` is for the user. */
  | { result: 'unusable'; message: string }

/** The broker connects to the session's target from a port that proxies may not use. */
export type DialAnswer =
  /** The number of the connection (sockets/dialled.ts). */
  | { result: 'connected'; connection: number }
  /** The system's code, if there is one. */
  | { result: 'failed'; message: string; code?: string }

/** Events that a proxy reports; the broker writes all others. */
export type ProxyEventCode = Extract<
  EventCode,
  | 'session.redirect'
  | 'session.fallback'
  | 'channel.open'
  | 'channel.denied'
  | 'channel.unrecorded'
  | 'command'
  | 'file.transfer'
  | 'file.denied'
  | 'file.failed'
  | 'clipboard'
  | 'session.kill'
>

/**
 * Fields that a proxy may set. The broker sets the actor, the client's address and the target in every event.
 */
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

/** Fields that a proxy may set in an event of this code. */
export type ProxyFields<C extends ProxyEventCode> = Pick<FieldsOf<C>, Extract<keyof FieldsOf<C>, ProxyField>>

/**
 * Resolves when the event is in the audit log; the action that it reports has to wait until then. Rejects a
 * code or a field that proxies may not set, and ends the session.
 */
export interface EventRequest<C extends ProxyEventCode = ProxyEventCode> {
  session: string
  code: C
  fields: ProxyFields<C>
}

/** A refused request of a signed-in client that has no session. */
export interface DeniedRequest {
  identity: string
  protocol: Protocol
  /** Type of a channel or name of a request. */
  what: string
  reason: string
}

/** A statement of a recording's checkpoint to be signed; docs/recording-format.md defines its bytes. */
export interface SignRequest {
  session: string
  statement: Uint8Array
}

/** The first bytes of a recording's file: its header and its first checkpoint. */
export interface BeginRecordingRequest {
  session: string
  parts: readonly Uint8Array[]
}

/**
 * Bytes for the end of a recording's file, at most MAX_APPEND in MAX_APPEND_PARTS. A session has one append at
 * a time, each at the `offset` that the previous one reached.
 */
export interface AppendRecordingRequest {
  session: string
  offset: number
  parts: readonly Uint8Array[]
}

export interface CloseRequest {
  session: string
  result: 'success' | 'failure' | 'killed'
  reason?: string
  /** Bytes of channel data from the client to the target. */
  bytesIn: number
  bytesOut: number
  rightsUsed: Right[]
}

/** Bytes of channel data so far, as in `CloseRequest`. */
export type CountedRequest = Pick<CloseRequest, 'session' | 'bytesIn' | 'bytesOut'>

/** A frame of a recording (recordings/container/frames.ts) as watchers get it. */
export interface LiveFrame {
  type: FrameType
  channel: number
  /** Microseconds since the start of the recording. */
  time: number
  payload: Uint8Array
  /** Number of frames in the recording, this one included. */
  after: number
}

/** Frames for watchers; sent only after a `watch` notice. */
export interface LiveRequest {
  session: string
  /** Frames since the previous request, in order. */
  frames: LiveFrame[]
  /**
   * Acknowledges the notice `sync`: the recording on the disk has all frames up to number `frames`, and later
   * frames follow here.
   */
  synced?: { sync: number; frames: number }
  /** Later frames were dropped because there were too many; none follow until the next notice. */
  lost?: true
}

/** `watched` is false if no watcher is left: the proxy stops sending frames. */
export interface LiveAnswer {
  watched: boolean
}

/** A command line that waits for the answer of approvers. */
export interface AskCommandRequest {
  session: string
  /** Number of the question in the session. */
  ask: number
  line: string
  /** The rule that asks. */
  rule: string
  /** The user's screen, from the top. */
  screen: string[]
}

export interface AskCommandAnswer {
  result: 'accepted' | 'refused'
  /** For the user. */
  message: string
}

/** State of an approval in the notice to a waiting client. */
export type WaitState = 'pending' | 'accepted' | 'rejected' | 'cancelled' | 'expired'

/** Messages that the broker sends to a proxy without a request. */
export type GateNotice =
  /** End the session now and show the reason to the user. */
  | { type: 'stop'; session: string; reason: string }
  /**
   * The user's sign-in is no longer valid: end the connection and show the reason. `identity` is the token.
   */
  | { type: 'leave'; identity: string; reason: string }
  /** Targets that the user was shown are none of the user's any more: show the list anew, below this line. */
  | { type: 'targets'; identity: string; text: string }
  /**
   * New state of the approval that this connection waits for. `pending`: an answer came, or the quorum changed.
   * `identity` is the token.
   */
  | { type: 'approval'; identity: string; approval: string; state: WaitState; text: string }
  /** Hold all input of the session's client from now on, and show the reason; output goes on. */
  | { type: 'suspend'; session: string; reason: string }
  | { type: 'resume'; session: string }
  /** Report the octets so far (`counted`). */
  | { type: 'count'; session: string }
  /** Show this line in the user's terminals, if there are any. */
  | { type: 'tell'; session: string; text: string }
  /**
   * A watcher has come: send frames from now on, and report the state of the recording
   * (`LiveRequest.synced`).
   */
  | { type: 'watch'; session: string; sync: number }
  /**
   * Changes the rights of an invitation's guest, or makes the guest leave for the reason `out`; `by` is the
   * actor.
   */
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
  /** For a session with `hasKerberos`. The KDC is asked by the broker, which has the account's password. */
  serviceTicket(request: { session: string }): Promise<ServiceTicketAnswer>
  /** For a target whose policy signs in by the user's forwarded ticket. */
  targetGssapi(request: TargetGssapiRequest): Promise<TargetGssapiAnswer>
  /** For a target whose policy asks for a privileged port. */
  dial(request: { session: string }): Promise<DialAnswer>
  event<C extends ProxyEventCode>(request: EventRequest<C>): Promise<void>
  denied(request: DeniedRequest): Promise<void>
  /** Returns the Ed25519 signature of the statement. */
  sign(request: SignRequest): Promise<Uint8Array>
  /** Creates the file of the session's recording. Resolves when the parts are on the disk. */
  beginRecording(request: BeginRecordingRequest): Promise<void>
  /** Resolves when the parts are on the disk. On rejection nothing of them is kept. */
  appendRecording(request: AppendRecordingRequest): Promise<Appended>
  /** Closes the file: nothing is appended any more. */
  endRecording(request: { session: string }): Promise<void>
  close(request: CloseRequest): Promise<void>
  live(request: LiveRequest): Promise<LiveAnswer>
  /** Answers a notice `count`. */
  counted(request: CountedRequest): Promise<void>
  /** Asks approvers whether a held command line may run. Resolves when they have answered, or it is denied. */
  askCommand(request: AskCommandRequest): Promise<AskCommandAnswer>
  /** Reports that the user gave up the question: it is answered with a refusal. */
  giveUpCommand(request: { session: string; ask: number }): Promise<void>
  /** Reports that the client no longer waits for the approval. */
  withdraw(request: { identity: string; approval: string }): Promise<void>
  /** Reports that the connection is closed: its identity, unanswered challenge or context is no longer valid. */
  leave(request: { identity: string }): Promise<void>
  /** Adds a proxy's only listener. A proxy ignores a notice for a session that it does not know. */
  onNotice(listener: (notice: GateNotice) => void): void
}

export const MAX_TARGETS = 10_000
/** Lengths of a reason, in characters: a comment may have several lines, a ticket has one. */
export const MAX_REASON = 1_000
export const MAX_TICKET = 100
/** Lines of the screen that go with a held command line, and the characters of each. */
export const MAX_SCREEN_LINES = 300
export const MAX_SCREEN_COLUMNS = 1_000
