/** Dependencies of the API, supplied by the composition root. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  FastifyTypeProvider,
  FastifyTypeProviderDefault,
} from 'fastify'
import type { Audit, AuditEvent } from '../../audit/events/catalogue.ts'
import type { Contents } from '../../contents/contents.ts'
import type { Approvals } from '../../gate/approvals.ts'
import type { ReleaseAnswer } from '../../gate/elsewhere.ts'
import type { Hold, OrderedBy } from '../../gate/holds.ts'
import type { GuestMode, Invitation, InviteAnswer, InviteRequest } from '../../gate/invitations.ts'
import type { Watching } from '../../gate/live.ts'
import type { Watcher } from '../../gate/live-session.ts'
import type { TicketOffice } from '../../gate/ticket-office.ts'
import type { Basis } from '../../identity/basis.ts'
import type { Bearers } from '../../identity/bearers.ts'
import type { BrowserSignIns } from '../../identity/browser-sign-in/waiting.ts'
import type { Identities } from '../../identity/chain.ts'
import type { Federated } from '../../identity/federated.ts'
import type { OidcSignIns } from '../../identity/oidc-sign-ins.ts'
import type { PasswordHasher } from '../../identity/password.ts'
import type { ProviderSessions } from '../../identity/provider-sessions.ts'
import type { SamlSignIns } from '../../identity/saml-sign-ins.ts'
import type { SecondFactors } from '../../identity/second-factor/second-factors.ts'
import type { SecurityKeys } from '../../identity/second-factor/security-keys.ts'
import type { ShownTickets } from '../../identity/shown-tickets.ts'
import type { Trials } from '../../identity/trials.ts'
import type { Notification } from '../../model/notifications.ts'
import type { Id } from '../../model/objects.ts'
import type { Deletion } from '../../recording-service/deletion.ts'
import type { RecordingExports } from '../../recording-service/exports.ts'
import type { Rotation } from '../../rotation/rotation.ts'
import type { Store } from '../../store/store.ts'
import type { Authority } from '../../vault/authority.ts'
import type { Checkouts } from '../../vault/checkout.ts'
import type { Vault } from '../../vault/vault.ts'

export interface SessionControl {
  /**
   * Ends a running session on the request of `by`, made with the key named `apiKey` if set. Returns false if
   * no such session runs.
   */
  kill(id: Id, reason: string, by: string, apiKey?: string): Promise<boolean>
  /** Holds the input of a running session's client, or changes the reason. Returns false if no such session runs. */
  suspend(id: Id, reason: string, by: OrderedBy): Promise<boolean>
  /** Ends what `suspend` began. */
  release(id: Id, by: OrderedBy): Promise<ReleaseAnswer>
  /** Returns why the input of a session is held, or undefined if it is not. */
  holdOf(id: Id): Hold | undefined
  /** Returns why the session cannot be watched now, or undefined if it can. */
  watchRefusal(id: Id): Exclude<Watching['result'], 'watching'> | undefined
  /** Shows a running session to the watcher from now on. */
  watch(id: Id, watcher: Watcher): Watching
  /** Returns the user of a running session. */
  ownerOf(id: Id): Id | undefined
  /** Invites a guest to a running session. */
  invite(id: Id, request: InviteRequest): Promise<InviteAnswer>
  /** Lists a session's invitations: those that wait, and those whose guest is connected. */
  invitations(id: Id): Invitation[]
  setGuestMode(invitation: Id, mode: GuestMode, by: string, basis: Basis): void
  /** Withdraws the invitation; its guest has to leave. */
  withdrawInvitation(invitation: Id, reason: string, by?: string): void
  /** Ends the sessions that a change no longer permits. */
  review(): Promise<void>
}

/** A cause for which new sessions and sign-ins are refused. */
export type Obstacle =
  /** The broker is stopping. */
  | 'stopping'
  | 'database'
  /** The volume of the recordings is full. */
  | 'recordings'

export interface ApiMetrics {
  /** Counts an answered request; `route` is the pattern, never the path. */
  request(method: string, route: string, status: number, seconds: number): void
}

export interface ApiDeps {
  store: Store
  vault: Pick<Vault, 'setCredentials' | 'setAuthority' | 'seal' | 'on' | 'fingerprint'>
  checkouts: Checkouts
  rotation: Pick<
    Rotation,
    'attempted' | 'change' | 'changes' | 'changeDomain' | 'freed' | 'isChanging' | 'onReturn'
  >
  identities: Pick<Identities, 'authenticate' | 'answer' | 'abandon' | 'decided' | 'further' | 'waitsFor'>
  bearers: Pick<Bearers, 'judge'>
  federated: Federated
  /** Native clients that wait for their person in a browser. */
  browserSignIns: Pick<BrowserSignIns, 'find' | 'confirm' | 'refuse'>
  oidcSignIns: OidcSignIns
  samlSignIns: SamlSignIns
  providerSessions: ProviderSessions
  shownTickets: Pick<ShownTickets, 'areTaken' | 'negotiate'>
  trials: Pick<Trials, 'ofAuth' | 'ofDomain'>
  notifications: {
    /** Sends one event now. Returns undefined for a notification that was tried too often. */
    try(notification: Notification, event: AuditEvent): Promise<{ ok: boolean; detail: string } | undefined>
  }
  factors: Pick<SecondFactors, 'statusOf' | 'begin' | 'confirm' | 'isCode' | 'release' | 'renew' | 'remove'>
  securityKeys: Pick<SecurityKeys, 'list' | 'creation' | 'add' | 'remove'>
  passwords: Pick<PasswordHasher, 'hash' | 'policy'>
  /** Certifies SSH keys of users. */
  userAuthority: Authority
  /** Milliseconds that a certificate is valid at most, or undefined if none is made. */
  certificateLifetime: () => number | undefined
  audit: Audit
  sessionControl: SessionControl
  approvals: Approvals
  tickets: Pick<TicketOffice, 'issue' | 'withdraw' | 'lifetime'>
  /** Address where clients reach the RDP listener, or undefined if there is none. */
  rdpAddress: { host: string; port: number } | undefined
  /** Undefined if this broker keeps no recordings: their routes return 404. */
  recordings: RecordingExports | undefined
  /** Undefined if contents of sessions are not indexed. */
  contents: Contents | undefined
  deletion: Pick<Deletion, 'hold' | 'holdRelease' | 'release' | 'remove'>
  /** Milliseconds since the epoch. */
  clock: () => number
  /** Cryptographically strong bytes. */
  randomBytes: (length: number) => Uint8Array
  /** PEM texts. To change them later, use `server.setSecureContext` of the instance. */
  tls: { cert: string; key: string }
  /** Puts what comes before TLS ahead of the server's connections, or undefined if nothing does. */
  admit: ((server: Server) => void) | undefined
  /** Returns the networks of proxies whose X-Forwarded-For is believed. */
  trustedProxies: () => readonly string[]
  logger: FastifyBaseLogger
  metrics: ApiMetrics | undefined
  /** Returns why new sessions are refused now; empty if they are not. */
  obstacles: () => readonly Obstacle[]
  /** The product's version, for `/version`. */
  version: string
}

/** Parses the text of a body. */
export type BodyParser = (
  request: FastifyRequest,
  body: string,
  done: (error: Error | null, value?: unknown) => void,
) => void

/** The Fastify instance that carries the API. */
export type Api = ApiOf<TypeBoxTypeProvider>
/** The Fastify instance for routes with schemas that are typed elsewhere. */
export type UntypedApi = ApiOf<FastifyTypeProviderDefault>

type ApiOf<P extends FastifyTypeProvider> = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  P
>
