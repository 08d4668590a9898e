/**
 * The API on a real store, vault and audit log in a temporary folder; only sessions and recordings are
 * replaced.
 */
import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pino } from 'pino'
import { generate } from 'selfsigned'
import type { Api, ApiDeps } from '../../src/api/http/deps.ts'
import { openApiDocument } from '../../src/api/reference/document.ts'
import { createApi } from '../../src/api/server.ts'
import type { Audit, EventCode } from '../../src/audit/events/catalogue.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { recordFactors } from '../../src/broker/factor-events.ts'
import { Approvals } from '../../src/gate/approvals.ts'
import type { Hold } from '../../src/gate/holds.ts'
import { TicketOffice } from '../../src/gate/ticket-office.ts'
import { Tickets } from '../../src/gate/tickets.ts'
import { openAuthorities } from '../../src/identity/authorities.ts'
import { Bearers } from '../../src/identity/bearers.ts'
import { BrowserSignIns } from '../../src/identity/browser-sign-in/waiting.ts'
import { Identities } from '../../src/identity/chain.ts'
import { External } from '../../src/identity/external.ts'
import { Federated } from '../../src/identity/federated.ts'
import { sealHash } from '../../src/identity/hashes.ts'
import { MethodRegistry } from '../../src/identity/methods/registry.ts'
import { OidcSignIns } from '../../src/identity/oidc-sign-ins.ts'
import { ProviderSessions } from '../../src/identity/provider-sessions.ts'
import { parsePublicKey } from '../../src/identity/public-key.ts'
import { SamlSignIns } from '../../src/identity/saml-sign-ins.ts'
import { SecondFactors } from '../../src/identity/second-factor/second-factors.ts'
import { SecurityKeys } from '../../src/identity/second-factor/security-keys.ts'
import { SharedLockout } from '../../src/identity/shared-lockout.ts'
import { ShownTickets } from '../../src/identity/shown-tickets.ts'
import { TicketTakers } from '../../src/identity/ticket-takers.ts'
import { Trials } from '../../src/identity/trials.ts'
import type { ProfileName } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { Deletion } from '../../src/recording-service/deletion.ts'
import { type Changer, ChangerError } from '../../src/rotation/changer.ts'
import { Rotation } from '../../src/rotation/rotation.ts'
import type { AuditRow, Store } from '../../src/store/store.ts'
import { Checkouts } from '../../src/vault/checkout.ts'
import { openUserAuthority } from '../../src/vault/user-authority.ts'
import { openVault } from '../../src/vault/vault.ts'
import { groundsOn } from '../gate/grounds.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { newUser } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { documentCheck } from './reference/document.ts'

export const ADMIN = { user: 'admin', password: 'correct horse battery staple' }

/** Origin of the pages. */
export const SITE = 'https://bastion.lab'

export interface Answer {
  status: number
  headers: Record<string, string | string[] | number | undefined>
  // biome-ignore lint/suspicious/noExplicitAny: tests check the fields that they read
  body: any
  text: string
}

export interface Harness {
  api: Api
  store: Store
  registry: MethodRegistry
  providerSessions: ProviderSessions
  approvals: Approvals
  /** Path of the database's file. */
  database: string
  /** Opens the same data once more, as another process would. */
  open: TemporaryStore['open']
  /** Runs statements beside the store. Returns the rows of the last one. */
  sql: TemporaryStore['sql']
  /** PEM of the certificate. */
  cert: string
  certPath: string
  /** Milliseconds since the epoch; a test moves it. */
  clock: { now: number }
  /** Finds no target; a test replaces its functions. */
  changer: Changer
  /** Makes writing the next events fail; `before` is awaited before each. */
  audit: { broken: boolean; before: (code: EventCode) => Promise<void> | void }
  killed: { id: string; reason: string; by: string }[]
  /** Settings of the API for deletion, such as how many users it takes to end a legal hold. */
  deletion: Deletion
  log: string[]
  /** Records an event that does not come from the API. */
  record: Audit['record']
  /** Returns the recorded events, newest last. */
  events(code?: string): Promise<(Record<string, unknown> & { event: string })[]>
  /** Sends a request under /api/v3.12; `as` is a cookie or headers. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** Signs in and returns the cookie. */
  signIn(user?: string, password?: string): Promise<string>
  /** Adds a user with that profile to the store, with the password `PROFILE password`. */
  addUser(name: string, profile: ProfileName): Promise<void>
  close(): Promise<void>
}

export interface CallOptions {
  cookie?: string
  headers?: Record<string, string>
  body?: unknown
  /** Sent unchanged in place of `body`. */
  raw?: string | Buffer
}

/** Changes no secret: there are no targets. */
const unreachable = async (): Promise<never> => {
  throw new ChangerError('unreachable', 'no target is there')
}

let check: ReturnType<typeof documentCheck> | undefined

/** `site`: origin of the pages. */
export async function startHarness(
  more: Partial<ApiDeps> = {},
  site = 'https://localhost',
): Promise<Harness> {
  const temporary = await temporaryStore()
  const { store } = temporary
  const clock = { now: Date.UTC(2031, 0, 1) }
  const vault = await openVault(store, { file: join(dirname(temporary.path), 'master.key') })
  // Cheap parameters, since these tests do not concern the hash.
  const passwords = quickHasher()
  const securityKeys = new SecurityKeys({ store, site, now: () => clock.now })
  const factors = new SecondFactors({ store, vault, keys: securityKeys, now: () => clock.now })
  const log: string[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void log.push(line) })
  const auditLog = new AuditLog({ repository: store.audit, now: () => clock.now })
  const audit: Harness['audit'] = { broken: false, before: () => {} }
  const killed: Harness['killed'] = []
  const suspended = new Map<string, Hold>()
  const deletion = new Deletion({
    root: join(dirname(temporary.path), 'recordings'),
    sessions: store.sessions,
    checkpoint: async () => {},
  })
  const tickets = new Tickets(store.tickets, vault)
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] }],
  })
  const heardAudit: ApiDeps['audit'] = {
    async record(code, fields) {
      await audit.before(code)
      if (audit.broken) throw new Error('disk full')
      return await auditLog.record(code, fields)
    },
  }
  recordFactors(factors, { audit: heardAudit, store })
  const approvals = new Approvals({ store, vault, audit: heardAudit, now: () => clock.now })
  const changer: Changer = { verify: unreachable, change: unreachable, retire: unreachable }
  const rotation = new Rotation({
    ...{ store, vault, audit: auditLog, changer, now: () => clock.now },
    settledMs: 20,
    claim: () => () => undefined,
    onError: (error) => log.push(String(error)),
  })
  // Tickets of a real KDC are of the real time.
  const registry = new MethodRegistry({ store, vault, now: Date.now, site: SITE, onFailure: () => undefined })
  const external = new External({ store, registry })
  const browserSignIns = new BrowserSignIns(randomBytes)
  const identities = new Identities(
    store.users,
    passwords,
    new SharedLockout(store.lockouts),
    () => clock.now,
    vault,
    external,
    factors,
    store,
    { waiting: browserSignIns, store, pages: () => 'https://bastion.example.com' },
  )
  const userAuthority = await openUserAuthority(store.settings, vault)
  identities.authorities = openAuthorities({ userCa: [] }, parsePublicKey(userAuthority.blob))
  const providerSessions = new ProviderSessions({ store, vault, now: () => clock.now })
  const federated = new Federated({ external, identities, sessions: providerSessions })
  const api = await createApi({
    store,
    vault,
    checkouts: new Checkouts(store, vault, undefined, rotation),
    rotation,
    passwords,
    userAuthority,
    certificateLifetime: () => 8 * 3600_000,
    identities,
    browserSignIns,
    shownTickets: new ShownTickets({
      identities,
      takers: new TicketTakers({ store, identities, registry }),
      external,
    }),
    bearers: new Bearers({ store, registry, now: Date.now }),
    federated,
    providerSessions,
    oidcSignIns: new OidcSignIns({
      store,
      registry,
      federated,
      sessions: providerSessions,
      site: SITE,
      now: Date.now,
    }),
    samlSignIns: new SamlSignIns({
      store,
      registry,
      federated,
      sessions: providerSessions,
      site: SITE,
      now: Date.now,
      randomBytes,
    }),
    factors,
    securityKeys,
    notifications: { try: async () => ({ ok: true, detail: 'the receiver has taken it' }) },
    trials: new Trials({ store, registry, now: () => clock.now }),
    audit: heardAudit,
    sessionControl: {
      async kill(id, reason, by) {
        const session = await store.sessions.find(id)
        if (!session || session.end !== undefined) return false
        killed.push({ id, reason, by })
        return true
      },
      async suspend(id, reason, { name: by }) {
        const session = await store.sessions.find(id)
        if (!session || session.end !== undefined) return false
        suspended.set(id, { reason, by, since: clock.now })
        return true
      },
      async release(id) {
        const session = await store.sessions.find(id)
        if (!session || session.end !== undefined) return 'not_running'
        return suspended.delete(id) ? 'released' : 'not_suspended'
      },
      holdOf: (id) => suspended.get(id),
      review: async () => {},
      watchRefusal: () => 'not_running',
      watch: () => ({ result: 'not_running' }),
      ownerOf: () => undefined,
      invite: async () => ({ result: 'not_running' }),
      invitations: () => [],
      setGuestMode: () => {},
      withdrawInvitation: () => {},
    },
    admit: undefined,
    trustedProxies: () => [],
    approvals,
    tickets: new TicketOffice({
      store,
      tickets,
      audit: auditLog,
      grounds: groundsOn(store, () => clock.now),
      watch: () => {},
      now: () => clock.now,
    }),
    rdpAddress: { host: 'bastion.example.com', port: 3390 },
    recordings: {
      open: async (id, format) =>
        (await store.sessions.find(id)) ? Readable.from([`${format} of ${id}`]) : undefined,
      close: async () => {},
    },
    contents: undefined,
    deletion,
    clock: () => clock.now,
    randomBytes,
    tls: { cert, key },
    logger,
    metrics: undefined,
    obstacles: () => [],
    version: '0.0.0',
    ...more,
  })

  const addUser: Harness['addUser'] = async (name, profile) => {
    const user = await store.users.create(newUser(name, { profile }))
    const hash = await passwords.hash(Secret.of(`${name} password`))
    await store.users.setPasswordHash(user.id, sealHash(vault, user.id, hash))
  }
  await store.users
    .create(newUser(ADMIN.user, { profile: 'product_administrator' }))
    .then(async ({ id }) =>
      store.users.setPasswordHash(id, sealHash(vault, id, await passwords.hash(Secret.of(ADMIN.password)))),
    )

  // The same for every harness: the routes do not depend on what the API stands on.
  check ??= documentCheck(openApiDocument(api.swagger()))
  const checkAnswer = check
  const call: Harness['call'] = async (method, path, { cookie, headers = {}, body, raw } = {}) => {
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const url = /^\/api(\/|$)/.test(path) ? path : `/api/v3.12${path}`
    const answer = await api.inject({
      method: method as 'GET',
      url,
      headers: {
        ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
        ...(cookie === undefined ? {} : { cookie }),
        ...headers,
      },
      ...(payload === undefined ? {} : { payload }),
    })
    const isJson = String(answer.headers['content-type']).startsWith('application/json')
    const parsed = isJson && answer.body !== '' ? JSON.parse(answer.body) : undefined
    checkAnswer(method, url, { status: answer.statusCode, headers: answer.headers, body: parsed })
    return { status: answer.statusCode, headers: answer.headers, body: parsed, text: answer.body }
  }
  const certPath = join(dirname(temporary.path), 'cert.pem')
  return {
    api,
    store,
    approvals,
    registry,
    providerSessions,
    database: temporary.path,
    open: temporary.open,
    sql: temporary.sql,
    cert,
    certPath,
    clock,
    changer,
    audit,
    killed,
    deletion,
    log,
    record: (code, fields) => auditLog.record(code, fields),
    async events(code) {
      const rows: AuditRow[] = await store.audit.range(1, 10_000)
      return rows
        .map(({ json }) => JSON.parse(json))
        .map(({ code, fields }) => ({ event: code, ...fields }))
        .filter(({ event }) => code === undefined || event === code)
    },
    call,
    async signIn(user = ADMIN.user, password = user === ADMIN.user ? ADMIN.password : `${user} password`) {
      const answer = await call('POST', '/session', { body: { user, password } })
      if (answer.status !== 200) throw new Error(`${user} cannot sign in: ${answer.text}`)
      return String(answer.headers['set-cookie']).split(';')[0] ?? ''
    },
    addUser,
    async close() {
      await api.close()
      await auditLog.close()
      await temporary.remove()
    },
  }
}
