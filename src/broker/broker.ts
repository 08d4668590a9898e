/**
 * The composition root: builds every part from the configuration, in the order of the architecture's tiers,
 * and closes them in the opposite order.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { nativeCryptoAvailable, requirePatchedSsh2 } from '../../proxies/ssh/transport/ssh2.ts'
import { Drawer } from '../../recordings/show/screens/drawer.ts'
import { TAKEOVER } from '../accounting/record.ts'
import type { Api, Obstacle } from '../api/http/deps.ts'
import { createApi } from '../api/server.ts'
import { auditAnchor } from '../audit/anchor.ts'
import type { StoredEvent } from '../audit/chain.ts'
import { Feeds } from '../audit/feeds/feeds.ts'
import { sealedRegister } from '../audit/feeds/register.ts'
import { Backlog, uploadTo } from '../audit/journal/backlog.ts'
import { JournalError, journalFolder } from '../audit/journal/file.ts'
import { AuditLog } from '../audit/log.ts'
import { Refusals } from '../audit/refusals.ts'
import type { Sink } from '../audit/sink.ts'
import { JsonLogSink } from '../audit/sinks/json-log.ts'
import { MetricsSink } from '../audit/sinks/metrics.ts'
import { SyslogSink } from '../audit/sinks/syslog.ts'
import { wideBalancers } from '../config/balancers.ts'
import { explainBindError } from '../config/bind-error.ts'
import { configChanges, keysForRestart } from '../config/changes.ts'
import type { Config, ListenAddress } from '../config/config.ts'
import { exposedFiles } from '../config/exposure.ts'
import { addressesOf, portFault } from '../config/ports.ts'
import { Follower } from '../contents/follower.ts'
import { contentMode, prepareContents } from '../contents/open.ts'
import { ContentThread } from '../contents/thread.ts'
import { MESSAGES_DESCRIPTOR } from '../contract/worker.ts'
import type { ControlStatus } from '../control/messages.ts'
import { ControlServer } from '../control/server.ts'
import { Arrears } from '../gate/arrears.ts'
import { BrokerGate } from '../gate/gate.ts'
import { REMINDER_INTERVAL_MS, REVIEW_INTERVAL_MS } from '../gate/review.ts'
import { Steps } from '../gate/steps.ts'
import { openDataFolder } from '../host/data-folder.ts'
import type { Logger } from '../host/log.ts'
import { openAuthorities } from '../identity/authorities.ts'
import { forgeableServers } from '../identity/methods/radius/forgeable.ts'
import { PersonCheck } from '../identity/person-check.ts'
import { ProviderCheck } from '../identity/provider-check.ts'
import { parsePublicKey } from '../identity/public-key.ts'
import { Trials } from '../identity/trials.ts'
import { Slack } from '../memory/slack.ts'
import { placeText } from '../model/database.ts'
import { AuditRetention } from '../recording-service/audit-retention.ts'
import { Deletion } from '../recording-service/deletion.ts'
import { type RecordingExports, recordingExports } from '../recording-service/exports.ts'
import type { EndedRecording } from '../recording-service/indexing/ended.ts'
import { type IndexerOptions, RecordingIndexer } from '../recording-service/indexing/indexer.ts'
import { PROGRESS_INTERVAL_MS, Progress } from '../recording-service/progress.ts'
import { recoverAbandoned } from '../recording-service/recover.ts'
import { readRestoreNote, restoredFrom } from '../recording-service/restored.ts'
import { RETENTION_INTERVAL_MS, Retention } from '../recording-service/retention.ts'
import { freeBytes, SPACE_INTERVAL_MS, SpaceWatch } from '../recording-service/space.ts'
import { takeOver } from '../recording-service/start.ts'
import { Uploader } from '../recording-service/uploads/uploader.ts'
import { ChangerProcesses } from '../rotation/processes.ts'
import { Rotation } from '../rotation/rotation.ts'
import { admitByHeader } from '../sockets/admission.ts'
import { openUnacknowledged, type Unacknowledged } from '../sockets/outgoing.ts'
import type { ProxyHeaders } from '../sockets/proxy-headers.ts'
import { StoreClaimedError, StoreUnavailableError } from '../store/engine/errors.ts'
import { Checkouts } from '../vault/checkout.ts'
import { changerCommand } from '../workers/command.ts'
import { copyingGate, GATE_COPIES } from '../workers/copying-gate.ts'
import { ACCOUNTING_LOOK_MS, Accounting } from './accounting.ts'
import { judgeHostKey } from './changer-trust.ts'
import { CheckoutExpiry, EXPIRY_INTERVAL_MS } from './checkout-expiry.ts'
import { type Controlled, controlHandler, reportHolds } from './control.ts'
import { countStep, watchLoop } from './durations.ts'
import { recordFactors } from './factor-events.ts'
import { firstAdministrator } from './first-start.ts'
import { type Foundation, openFoundation } from './foundation.ts'
import { FrontKeys } from './front-keys.ts'
import { FrontDoors } from './fronts.ts'
import { Hold, soon, type Takeover } from './hold.ts'
import { openHostTrust } from './host-trust.ts'
import {
  createMetrics,
  type Metrics,
  type MetricsServer,
  startMetrics,
  type UploadFigures,
} from './metrics.ts'
import { Notifications } from './notifications.ts'
import { OptionalParts, type Prepared } from './optional-parts.ts'
import { Outage } from './outage.ts'
import { Predecessors } from './predecessors.ts'
import { openProxyHeaders } from './proxy-headers.ts'
import { boundaryLog, workerOptions } from './worker-options.ts'

/** Milliseconds for the connections of a replaced broker when no session is left: they close by themselves. */
const LAST_WORDS_MS = 5_000

const CHECKOUT_ROUTE = '/accounts/:ref/checkout'

export interface BrokerOptions {
  config: Config
  logger: Logger
  /** Returns why the log's last line could not be written. Absent if logging cannot fail. */
  logFailure?: () => Error | undefined
  version: string
  /** Password of the first administrator; absent: a new one is made and shown. */
  adminPassword?: string
  /** Shows a line to the person who starts the broker: an address, or a new password. */
  say: (line: string) => void
  /** Called when the broker begins to end, with the reason. */
  onStopping?: (reason: string) => void
  /** Set to replace a broker that runs on the data folder. */
  takeover?: Takeover
}

/** Starts everything. If a part cannot start, closes the others and throws. */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { config } = options
  requirePatchedSsh2()
  openDataFolder(config.dataDir)
  const hold = await Hold.open(config.dataDir, options.takeover)
  let broker: Broker | undefined
  try {
    // The broker that is replaced has them still.
    if (!options.takeover) await requirePorts(config)
    const foundation = await openFoundation(config, (name, server, error) =>
      options.logger.warn({ name, server, error: error.message }, 'a server of sign-in did not answer'),
    )
    broker = new Broker(options, foundation, hold)
    await broker.start()
    return broker
  } catch (error) {
    if (broker) await broker.abort()
    else hold.release()
    throw error
  }
}

/** Throws if a port cannot be bound: a start that fails makes no administrator, whose password is shown only once. */
async function requirePorts(config: Config): Promise<void> {
  for (const [name, address] of addressesOf(config)) {
    const fault = await portFault(name, address)
    if (fault !== undefined) throw new Error(fault)
  }
}

export class Broker {
  readonly #options: BrokerOptions
  readonly #parts: Foundation
  readonly #hold: Hold
  /** Releases the claim to the database. */
  #release: () => Promise<void> = async () => undefined
  readonly #audit: AuditLog
  readonly #backlog: Backlog
  readonly #outage: Outage
  readonly #feeds: Feeds
  readonly #accounting: Accounting
  readonly #notifications: Notifications
  /** The receivers of the configuration in use. */
  #configured: readonly Sink[] = []
  #accountings: NodeJS.Timeout | undefined
  readonly #metrics: Metrics
  readonly #proxyHeaders: ProxyHeaders
  readonly #counted: MetricsSink
  readonly #contents: ReturnType<typeof contentsOf>
  readonly #follower: Follower
  readonly #indexer: RecordingIndexer
  readonly #exports: RecordingExports
  readonly #gate: BrokerGate
  readonly #drawer = new Drawer()
  readonly #changers: ChangerProcesses
  readonly #rotation: Rotation
  readonly #checkoutExpiry: CheckoutExpiry
  readonly #keys: FrontKeys
  #fronts: FrontDoors | undefined
  /** Port of the RDP listener. */
  #rdpPort: number | undefined
  #api: Api | undefined
  #reviews: NodeJS.Timeout | undefined
  #reminders: NodeJS.Timeout | undefined
  #expiries: NodeJS.Timeout | undefined
  readonly #personCheck: PersonCheck
  readonly #providerCheck: ProviderCheck
  #personChecks: NodeJS.Timeout | undefined
  readonly #deletion: Deletion
  readonly #retention: Retention
  readonly #auditRetention: AuditRetention
  readonly #space: SpaceWatch
  #retentions: NodeJS.Timeout | undefined
  #looks: NodeJS.Timeout | undefined
  readonly #progress: Progress
  #notes: NodeJS.Timeout | undefined
  #metricsServer: MetricsServer | undefined
  readonly #optional: OptionalParts
  readonly #uploader: Uploader | undefined
  #unacknowledged: Unacknowledged | undefined
  #slack: Slack | undefined
  #stopLoopWatch: (() => void) | undefined
  /** The configuration in use: `options` has the one that the broker was started with. */
  #config: Config
  #reloading: Promise<void> = Promise.resolve()
  readonly #predecessors: Predecessors
  /** Settles when the journals of replaced brokers that have ended are in the audit log. */
  #adopted: Promise<void> = Promise.resolve()
  readonly #arrears: Arrears
  #control: ControlServer | undefined
  #state: ControlStatus['state'] = 'starting'
  readonly #started = Promise.withResolvers<void>()
  /** Whether all that only one broker may have is closed, or being closed, for another broker. */
  #isLeaving = false
  #isHandingOver = false
  #singlesClosed: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  readonly #closed = Promise.withResolvers<void>()

  constructor(options: BrokerOptions, parts: Foundation, hold: Hold) {
    this.#options = options
    this.#parts = parts
    this.#config = options.config
    this.#hold = hold
    this.#keys = new FrontKeys({
      dataDir: options.config.dataDir,
      settings: parts.store.settings,
      vault: parts.vault,
      say: options.logger,
    })
    const { reach } = parts.store
    this.#backlog = new Backlog({
      ...parts.store,
      folder: journalFolder(options.config.dataDir),
      vault: parts.vault,
      now: Date.now,
    })
    this.#audit = new AuditLog({
      repository: parts.store.audit,
      now: Date.now,
      onStored: (events) => this.#stored(events),
      refusals: new Refusals({ now: Date.now, monotonic: () => performance.now() }),
      checkpoints: {
        key: parts.recordingService.keys.signing,
        anchor: auditAnchor({ ...parts.store, vault: parts.vault }),
        onError: (error) => options.logger.error({ error }, 'the audit log could not be signed for now'),
      },
      outages: {
        reach,
        backlog: this.#backlog,
        upload: uploadTo(parts.store),
        onError: (error) => this.#onJournalError(error),
      },
    })
    recordFactors(parts.factors, { audit: this.#audit, store: parts.store })
    this.#feeds = new Feeds({
      repository: parts.store.audit,
      folder: join(options.config.dataDir, 'sinks'),
      register: sealedRegister(parts.store.settings, parts.vault),
      audit: this.#audit,
      onError: (error) => {
        if (!reach.away) options.logger.error({ error }, 'a receiver of events could not be accounted for')
      },
    })
    this.#accounting = new Accounting({
      ...parts,
      audit: this.#audit,
      octets: () => this.#gate.octets(),
      now: Date.now,
      onError: (error) => this.#onReceiverError(error),
    })
    this.#notifications = new Notifications({
      ...parts,
      audit: this.#audit,
      maker: () => ({ hostname: this.#config.hostname, version: options.version }),
      now: Date.now,
      onError: (error) => this.#onReceiverError(error),
    })
    this.#uploader = this.#makeUploader()
    this.#metrics = createMetrics({
      version: options.version,
      nativeCrypto: nativeCryptoAvailable(),
      feeds: () => this.#feeds.feeds,
      freeBytes: () => freeBytes(parts.recordingService.root),
      isDatabaseAway: () => reach.away !== undefined,
      isReady: () => this.#obstacles().length === 0,
      pendingApprovals: () => parts.store.approvals.pending(),
      secrets: () => parts.store.secretJobs.figures(Date.now()),
      certificateEnds: () => this.#keys.ends,
      takeDelays: () => this.#fronts?.takeDelays() ?? [],
      brokers: () => [
        { place: 1, state: this.#state, sessions: this.#gate.running },
        ...this.#predecessors.figures,
      ],
      workers: () => this.#fronts?.workers ?? [],
      ...(this.#uploader && { uploads: this.#uploadMetrics(this.#uploader) }),
    })
    this.#optional = new OptionalParts({
      version: options.version,
      metrics: this.#metrics,
      logger: options.logger,
      bind: (name, address, listen) => this.#bind(name, address, listen),
    })
    const { signInServers } = this.#metrics
    parts.external.onJudged = (type, result, time) => signInServers.observe({ type, result }, time / 1000)
    this.#proxyHeaders = openProxyHeaders(options.config, {
      logger: options.logger,
      metrics: this.#metrics,
      monotonic: () => performance.now(),
    })
    this.#counted = new MetricsSink(this.#metrics)
    this.#contents = contentsOf(options.config)
    this.#follower = new Follower({
      audit: parts.store.audit,
      index: this.#contents.thread,
      onError: (error) => {
        // Said once, by the outage itself, and not each second.
        if (parts.store.reach.away) return
        options.logger.warn({ error }, 'the search index could not be brought up to date')
      },
    })
    this.#exports = recordingExports(parts.recordingService)
    this.#indexer = new RecordingIndexer({
      root: parts.recordingService.root,
      unwrap: (wrapped) => parts.recordingService.unwrap(wrapped),
      onFailure: (session, reason) => options.logger.warn({ session, reason }, 'a recording is not indexed'),
      ...(parts.recordingService.bucket && { bucket: parts.recordingService.bucket }),
      ...this.#recordedContents(),
    })
    this.#arrears = new Arrears(parts.store.reach)
    this.#gate = new BrokerGate({
      ...parts,
      audit: this.#audit,
      recordings: parts.recordingService,
      onClosed: (session, isRecorded, ended) => this.#onSessionClosed(session, isRecorded, ended),
      onUnreadable: (invitation) =>
        options.logger.error(
          { invitation },
          'the password of an invitation does not open with the keys of this bastion: its guest cannot come in; invite again',
        ),
      secretChanges: {
        settled: (account) => this.#rotation.settled(account),
        onReturn: (...returned) => this.#rotation.onReturn(...returned),
        freed: (account) => this.#rotation.freed(account),
        onFault: (error) =>
          options.logger.error({ error }, 'the change of a secret after a session could not be asked for'),
      },
      drawer: this.#drawer,
      now: Date.now,
      steps: new Steps({
        monotonic: () => performance.now(),
        onStep: (step) => {
          countStep(this.#metrics.durations, step)
          this.#optional.add(step)
        },
      }),
    })
    this.#changers = new ChangerProcesses({
      command: () => changerCommand(options.config.runAs).command,
      descriptor: MESSAGES_DESCRIPTOR,
      onBegun: boundaryLog(options.logger, 'processes that change secrets'),
      judge: (target, key) => judgeHostKey(this.#gate.hostTrust, target, key, Date.now()),
      warn: (message, details) => options.logger.warn(details, message),
    })
    this.#rotation = new Rotation({
      ...parts,
      audit: this.#audit,
      changer: this.#changers,
      claim: (account) => this.#gate.claimForChange(account),
      now: Date.now,
      onError: (error, job) =>
        options.logger.error({ error, job }, 'a secret could not be changed or checked'),
    })
    this.#checkoutExpiry = new CheckoutExpiry({
      store: parts.store,
      audit: this.#audit,
      secretChanges: this.#rotation,
      now: Date.now,
    })
    this.#personCheck = new PersonCheck({
      store: parts.store,
      registry: parts.methods,
      users: () => this.#gate.userIds(),
      onLost: (user, reason) =>
        options.logger.warn({ user, reason }, 'a person of a domain may not sign in any more'),
    })
    this.#providerCheck = new ProviderCheck({
      store: parts.store,
      registry: parts.methods,
      sessions: parts.providerSessions,
      users: () => this.#gate.userIds(),
      now: Date.now,
      onLost: (user, reason) =>
        options.logger.warn({ user, reason }, 'a provider has ended the sign-in of a person'),
    })
    this.#outage = new Outage({
      reach,
      audit: this.#audit,
      backlog: this.#backlog,
      gate: this.#gate,
      logger: options.logger,
      grace: options.config.databaseGrace,
      place: placeText(options.config.database),
      review: () => this.#review(() => this.#gate.reviewAll()),
      now: Date.now,
    })
    this.#predecessors = new Predecessors({
      dataDir: options.config.dataDir,
      elsewhere: this.#gate.elsewhere,
      onFound: ({ id, begin, isRecorded }) => isRecorded && this.#uploader?.begun(id, begin),
      onClosed: ({ id, isRecorded }) => isRecorded && this.#indexer.add(id),
      onGone: () => this.#adopt(),
      onLost: ({ id }) => this.#recoverLost(id),
      onError: (error) => options.logger.error({ error }, 'the sessions of a replaced broker are not known'),
    })
    const { sessions } = parts.store
    const { alarmFree, minFree } = options.config.recordings
    this.#deletion = new Deletion({
      root: parts.recordingService.root,
      sessions,
      holdRelease: options.config.recordings.holdRelease,
      checkpoint: () => this.#audit.checkpoint(),
      ...(this.#uploader && { forget: this.#uploader.forget.bind(this.#uploader) }),
    })
    this.#retention = new Retention({
      sessions,
      audit: this.#audit,
      deletion: this.#deletion,
      limits: options.config.recordings,
      now: Date.now,
      monotonic: () => performance.now(),
      onError: (error, session) => options.logger.error({ error, session }, 'retention could not delete'),
    })
    this.#auditRetention = new AuditRetention({
      repository: parts.store.audit,
      audit: this.#audit,
      anchor: auditAnchor({ ...parts.store, vault: parts.vault }),
      sessions,
      key: parts.recordingService.keys.signing,
      trusted: parts.recordingService.keys.trusted,
      delivered: () => this.#feeds.slowest,
      limits: options.config.audit,
      now: Date.now,
      monotonic: () => performance.now(),
      onError: (error) => options.logger.error({ error }, 'retention of the audit log removed nothing'),
    })
    this.#progress = new Progress({
      recordingService: parts.recordingService,
      audit: this.#audit,
      checkpoint: () => this.#audit.checkpoint(),
      monotonic: () => performance.now(),
    })
    this.#space = new SpaceWatch(
      { folder: parts.recordingService.root, alarm: alarmFree, minimum: minFree },
      this.#audit,
    )
  }

  async start(): Promise<void> {
    const { config, logger, version, say } = this.#options
    this.#parts.identities.authorities = openAuthorities(
      config.ssh,
      parsePublicKey(this.#parts.userAuthority.blob),
    )
    this.#gate.hostTrust = openHostTrust(config)
    this.#gate.tickets.lifetime = config.ticketLifetime
    this.#unacknowledged = await openUnacknowledged()
    await this.#optional.openTracing(config)
    this.#fronts = await this.#openFronts(config)
    const replaced = await this.#hold.take()
    await this.#claim()
    this.#control = await this.#openControl()
    await this.#predecessors.open()
    await this.#adopted
    await this.#audit.open()
    // After a restore, receivers begin at the row that it noted.
    const since = (await readRestoreNote(this.#parts.store.settings))?.row
    this.#configured = await this.#sinksOf(config)
    await this.#feeds.open(await this.#withStored(this.#configured), since)
    this.#accountings = setInterval(() => this.#lookAtReceivers(), ACCOUNTING_LOOK_MS).unref()
    if (!nativeCryptoAvailable()) {
      logger.warn(
        "ssh2's native crypto is not built for this Node: SSH runs at less than half its speed. Install a C++ compiler " +
          '(Debian: apt-get install g++ make python3), remove node_modules and start again',
      )
    }
    for (const unwise of [...exposedFiles(config), ...wideBalancers(config)]) logger.warn(unwise)
    for (const unwise of await forgeableServers(this.#parts.store)) logger.warn(unwise)
    await this.#rotation.onAbandoned(await this.#abandoned())
    const { restored, report } = await takeOver({
      ...this.#recoverDeps(),
      runsElsewhere: (session) => this.#gate.elsewhere.has(session),
    })
    for (const line of report) logger.warn(line)
    await this.#gate.approvals.cancelAbandoned((session) => this.#gate.elsewhere.has(session))
    await this.#deletion.finish()
    await this.#prepareSearch()
    await this.#uploader?.start()
    const admin = await firstAdministrator(
      this.#parts.store,
      this.#parts.identities,
      this.#audit,
      this.#parts.passwords.policy,
      this.#options.adminPassword,
    )
    if (admin.password !== undefined) {
      say(`the user admin was created with the password ${admin.password} (shown only this once)`)
    }
    this.#reviews = setInterval(() => this.#review(() => this.#gate.review()), REVIEW_INTERVAL_MS)
    this.#personChecks = setInterval(() => this.#checkPersons(), config.signIn.checkInterval)
    this.#reminders = setInterval(() => this.#gate.remind(), REMINDER_INTERVAL_MS)
    this.#expiries = setInterval(() => this.#endExpired(), EXPIRY_INTERVAL_MS)
    this.#retentions = setInterval(() => this.#enforceRetention(), RETENTION_INTERVAL_MS)
    this.#looks = setInterval(() => this.#look(), SPACE_INTERVAL_MS)
    this.#look()
    this.#notes = setInterval(() => this.#note(), PROGRESS_INTERVAL_MS)
    await this.#listen(this.#fronts)
    await this.#startApi(config)
    await this.#startMetrics(config)
    const agent = await this.#optional.openAgent(config)
    if (agent) say(`snmp     udp ${place(agent)}`)
    this.#indexer.catchUp()
    const reasons = [
      ...(restored ? [restoredFrom(restored)] : []),
      ...(replaced === undefined
        ? []
        : [`it replaced process ${replaced}; sessions that run on elsewhere: ${this.#gate.elsewhere.size}`]),
    ]
    await this.#audit.record('service.start', {
      object_type: 'service',
      object: version,
      ...(reasons.length > 0 && { reason: reasons.join('; ') }),
      ...(replaced !== undefined && { method: TAKEOVER }),
    })
    await this.#audit.checkpoint()
    this.#state = 'serving'
    this.#started.resolve()
    await this.#rotation.start()
    this.#stopLoopWatch = watchLoop(this.#metrics.durations)
    this.#slack = await Slack.open()
    this.#slack.release()
    this.#slack.watch(() => this.#gate.running)
  }

  /** Returns sessions of a broker that has died. */
  async #abandoned() {
    const { sessions } = this.#parts.store
    const { items } = await sessions.list({ status: 'current' }, { limit: -1, offset: 0 })
    return items.filter(({ id }) => !this.#gate.elsewhere.has(id))
  }

  /** Claims the database: of a broker that was replaced, the server may learn a moment later. */
  async #claim(): Promise<void> {
    const onTaken = ({ message }: Error) => {
      this.#options.logger.fatal(message)
      void this.stop('another broker has taken its database', 0)
    }
    const isPassing = (error: unknown) =>
      this.#options.takeover !== undefined && error instanceof StoreClaimedError
    this.#release = await soon(() => this.#parts.store.claim(onTaken), isPassing)
  }

  async #openControl(): Promise<ControlServer> {
    const controlled: Controlled = {
      gate: this.#gate,
      state: () => this.#state,
      // Waits for the start: a broker that is half open cannot be closed in order.
      stop: (reason, graceMs) => void this.#started.promise.then(() => this.stop(reason, graceMs)),
      handOver: (pid, graceMs, isThere) => this.#handOver(pid, graceMs, isThere),
    }
    const control = await ControlServer.open(this.#options.config.dataDir, controlHandler(controlled))
    reportHolds(this.#gate, control)
    return control
  }

  #recoverDeps() {
    return { ...this.#parts, audit: this.#audit, ends: this.#backlog.ends, now: Date.now }
  }

  /** Stores the events that a broker which has ended kept while the database was away. */
  #adopt(): void {
    this.#adopted = this.#adopted
      .then(() => this.#audit.adopt())
      .catch((error: unknown) =>
        this.#options.logger.error({ error }, 'the journal of a replaced broker cannot be read'),
      )
  }

  /** Accounts for a session whose broker, which this one had replaced, has died. */
  #recoverLost(id: string): void {
    const reason = 'the replaced broker, where it ran, ended without closing it'
    const work = async () => {
      // Its end may be among the events of its broker.
      if (!this.#backlog.isEmpty) throw new StoreUnavailableError('events of an outage go up first')
      this.#options.logger.warn(await recoverAbandoned(this.#recoverDeps(), id, reason))
      this.#indexer.add(id)
    }
    this.#adopted
      .then(() => this.#arrears.write(work))
      .catch((error: unknown) =>
        this.#options.logger.error({ error, session: id }, 'a lost session is not closed'),
      )
  }

  /**
   * Leaves the listeners and all that must exist once to the broker `pid`; sessions run on here, for `graceMs`
   * if set.
   */
  async #handOver(pid: number, graceMs: number | undefined, isThere: () => boolean): Promise<void> {
    if (this.#state !== 'serving' || this.#isHandingOver) {
      throw new Error('the broker is starting, is stopping, or is being replaced already')
    }
    // The successor would store the same events: they go up first.
    if (!this.#backlog.isEmpty)
      throw new Error('the broker still stores events of an outage of the database: try again in a moment')
    this.#isLeaving = true
    this.#isHandingOver = true
    this.#gate.onUnwatchable()
    try {
      await this.#leaveSingles()
    } catch (error) {
      void this.stop('it could not be replaced')
      throw error
    }
    if (isThere()) await this.#gate.drain('the bastion is being replaced by a newer one: connect again')
    // The openings in progress may have taken long.
    if (!isThere()) {
      // With the listeners closed too, nobody would serve. The next takeover goes on from here.
      this.#gate.resume()
      this.#isHandingOver = false
      this.#options.logger.error(
        { pid },
        'the broker that was to replace this one has ended: sessions go on here, without the API, metrics and receivers of events, until another one replaces it (serve --takeover) or it is restarted',
      )
      return
    }
    await this.#gate.dismissWaiting().catch((error: unknown) => {
      // The newer broker cancels them.
      this.#options.logger.error({ error }, 'requests for approval that wait could not be kept')
    })
    this.#fronts?.close()
    this.#control?.makeRoom()
    await this.#release()
    this.#hold.release()
    this.#state = 'replaced'
    this.#options.logger.info({ pid, sessions: this.#gate.running }, 'another broker has replaced this one')
    if (graceMs !== undefined) void this.stop('the bastion is being replaced', graceMs)
    else if (this.#gate.running === 0) this.#stopReplaced()
  }

  /** Ends all that only one broker may do. */
  async #leaveSingles(): Promise<void> {
    for (const timer of [this.#expiries, this.#retentions, this.#looks]) clearInterval(timer)
    // A run in progress is waited for, and the next one would have nothing to do.
    this.#retention.limits = { keepDays: 0, maxSize: 0 }
    this.#auditRetention.limits = { keepDays: 0 }
    await Promise.all([this.#retention.enforce(), this.#auditRetention.enforce()])
    await this.#closeSingles()
    await this.#feeds.close()
  }

  #stopReplaced(): void {
    void this.stop('it was replaced, and its last session has ended', LAST_WORDS_MS)
  }

  #onSessionClosed(session: string, isRecorded: boolean, ended: EndedRecording | undefined): void {
    if (this.#state !== 'replaced') {
      // A recording that only auditors may open is not indexed, although its key is here now.
      const known = this.#options.config.recordings.brokerKey ? ended : undefined
      if (isRecorded) this.#indexer.add(session, known)
      return
    }
    this.#control?.onSessionClosed(session)
    if (this.#gate.running === 0) this.#stopReplaced()
  }

  #makeUploader(): Uploader | undefined {
    const { recordingService, store } = this.#parts
    const { bucket } = recordingService
    const { objectStore } = this.#options.config.recordings
    if (!bucket || !objectStore) return undefined
    const uploader = new Uploader({
      bucket,
      root: recordingService.root,
      uploads: store.uploads,
      sessions: store.sessions,
      audit: this.#audit,
      keepLocal: objectStore.keepLocal,
      segmentInterval: objectStore.segmentInterval,
      onError: (error, session) =>
        this.#options.logger.error({ error, session }, 'a recording could not be copied to the object store'),
      now: Date.now,
    })
    recordingService.onBegun = (session, begin) => uploader.begun(session, begin)
    return uploader
  }

  #uploadMetrics({ totals }: Uploader): UploadFigures {
    return { totals, waiting: () => this.#parts.store.uploads.waiting() }
  }

  /** Checks the rights of running sessions again: time passes, and other processes write. */
  #review(review: () => Promise<void>): void {
    review().catch((error: unknown) => {
      if (this.#parts.store.reach.away) return
      this.#options.logger.error({ error }, 'running sessions could not be reviewed')
    })
  }

  #checkPersons(): void {
    if (this.#parts.store.reach.away) return
    const asked = Promise.all([this.#personCheck.run(), this.#providerCheck.run()])
    const checked = asked.then(() => this.#gate.review())
    checked.catch((error: unknown) => {
      if (this.#parts.store.reach.away) return
      this.#options.logger.error({ error }, 'persons of domains could not be looked at')
    })
  }

  /** Reports a journal that was changed: the events behind the change are lost. */
  #onJournalError(error: Error): void {
    this.#options.logger.error(
      { error },
      'events that were kept while the database was away could not be stored',
    )
    if (!(error instanceof JournalError)) return
    const told = { object_type: 'journal', result: 'failure', reason: error.message }
    this.#audit.record('database.back', told).catch(() => undefined)
  }

  #endExpired(): void {
    if (this.#parts.store.reach.away) return
    this.#checkoutExpiry.run().catch((error: unknown) => {
      this.#options.logger.error({ error }, 'checkouts that are over could not be ended')
    })
    const { approvals } = this.#gate
    const ended = approvals.expireOverdue().then(() => approvals.endRevokedCheckouts())
    ended.catch((error: unknown) => {
      this.#options.logger.error({ error }, 'requests for approval that are over could not be ended')
    })
  }

  #enforceRetention(): void {
    if (this.#parts.store.reach.away) return
    void this.#retention.enforce()
    void this.#auditRetention.enforce()
    this.#gate.approvals.removeEnded().catch((error: unknown) => {
      this.#options.logger.error({ error }, 'requests for approval that are long over could not be removed')
    })
  }

  #note(): void {
    this.#progress.look().catch((error: unknown) => {
      this.#options.logger.error({ error }, 'how far recordings have come could not be noted')
    })
  }

  #look(): void {
    this.#space.look().catch((error: unknown) => {
      this.#options.logger.error({ error }, 'the free space for recordings could not be looked at')
    })
  }

  /** Starts the session workers; nothing listens yet. */
  async #openFronts(config: Config): Promise<FrontDoors> {
    const warn = (warning: string) => this.#options.logger.warn(warning)
    const isCopying = process.env[GATE_COPIES] === '1'
    const { loopDelays } = this.#metrics.durations
    const onDelay = (delayMs: number) => loopDelays.observe({ process: 'worker' }, delayMs / 1000)
    const parts = { gate: this.#gate, audit: this.#audit, logger: this.#options.logger, onDelay }
    const workers = config.workers > 0 ? await workerOptions(config, parts) : undefined
    return await FrontDoors.open({
      config,
      keys: this.#keys,
      gate: isCopying ? copyingGate(this.#gate) : this.#gate,
      ...(workers && { workers }),
      proxyHeaders: this.#proxyHeaders,
      onArrived: () => this.#optional.onArrived,
      warn,
    })
  }

  async #listen({ listeners }: FrontDoors): Promise<void> {
    for (const { name, address, listen } of listeners) {
      const bound = await this.#bind(name, address, listen)
      if (name === 'rdp') this.#rdpPort = bound.port
      this.#options.say(`${name.padEnd(8)} ${place(bound)}`)
    }
  }

  async #startApi({ listen, hostname }: Config): Promise<void> {
    if (!listen.https) return
    this.#api = await createApi({
      store: this.#parts.store,
      vault: this.#parts.vault,
      checkouts: new Checkouts(this.#parts.store, this.#parts.vault, this.#gate, this.#rotation),
      rotation: this.#rotation,
      identities: this.#parts.identities,
      shownTickets: this.#parts.shownTickets,
      notifications: this.#notifications,
      trials: new Trials({ store: this.#parts.store, registry: this.#parts.methods, now: Date.now }),
      bearers: this.#parts.bearers,
      federated: this.#parts.federated,
      browserSignIns: this.#parts.browserSignIns,
      oidcSignIns: this.#parts.oidcSignIns,
      samlSignIns: this.#parts.samlSignIns,
      providerSessions: this.#parts.providerSessions,
      passwords: this.#parts.passwords,
      userAuthority: this.#parts.userAuthority,
      certificateLifetime: () => this.#config.signIn.certificateLifetime,
      factors: this.#parts.factors,
      securityKeys: this.#parts.securityKeys,
      audit: this.#audit,
      sessionControl: this.#gate,
      approvals: this.#gate.approvals,
      tickets: this.#gate.tickets,
      rdpAddress: this.#rdpPort === undefined ? undefined : { host: hostname, port: this.#rdpPort },
      recordings: this.#exports,
      contents: this.#contents.api,
      deletion: this.#deletion,
      clock: Date.now,
      randomBytes,
      admit: (server) => admitByHeader(server, 'https', this.#proxyHeaders),
      trustedProxies: () => this.#config.trustedProxies,
      tls: await this.#keys.tls('https', hostname, listen.https),
      // The addresses are shown below; requests are logged as events.
      logger: this.#options.logger.child({}, { level: 'warn' }),
      metrics: {
        request: (method, route, status, seconds) => {
          this.#metrics.apiRequests.observe({ method, route, status }, seconds)
          if (route.endsWith(CHECKOUT_ROUTE)) this.#metrics.durations.checkouts.observe({ status }, seconds)
        },
      },
      obstacles: () => this.#obstacles(),
      version: this.#options.version,
    })
    const bound = await this.#bind('https', listen.https, async (host, port) => {
      await this.#api!.listen({ host, port })
      return this.#api!.server.address() as { address: string; port: number }
    })
    this.#options.say(`https    https://${place(bound)}/api/doc/Usage.html`)
  }

  #obstacles(): Obstacle[] {
    return [
      ...(this.#state === 'starting' || this.#state === 'serving' ? [] : ['stopping' as const]),
      ...(this.#parts.store.reach.away ? ['database' as const] : []),
      ...(this.#space.isFull ? ['recordings' as const] : []),
    ]
  }

  /** Returns the indexer's option for the contents of recordings, if the broker can open them. */
  #recordedContents(): Pick<IndexerOptions, 'contents'> {
    const { path, mode, thread } = this.#contents
    if (mode !== 'full') return {}
    return { contents: { path, mode, has: (session, digest) => thread.has(session, digest) } }
  }

  /** Prepares the index over sessions before the first query. */
  async #prepareSearch(): Promise<void> {
    const { path, mode } = this.#contents
    prepareContents(path, mode, (await this.#parts.store.audit.last())?.sequence ?? 0)
    if (mode !== 'off') this.#follower.start()
  }

  async #startMetrics({ listen }: Config): Promise<void> {
    if (!listen.metrics) return
    this.#metricsServer = await this.#bind('metrics', listen.metrics, (host, port) =>
      startMetrics(this.#metrics, { host, port }),
    )
    this.#options.say(`metrics  http://${place(this.#metricsServer.address)}/metrics`)
  }

  async #bind<T>(
    name: string,
    address: ListenAddress,
    listen: (host: string, port: number) => Promise<T>,
  ): Promise<T> {
    try {
      // A broker that was replaced has closed its listeners a moment ago.
      const isPassing = (error: unknown) =>
        this.#options.takeover !== undefined && (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      return await soon(() => listen(address.host, address.port), isPassing)
    } catch (error) {
      const failed = error as NodeJS.ErrnoException
      throw failed.syscall === undefined ? failed : new Error(explainBindError(failed, name, address))
    }
  }

  #stored(events: readonly StoredEvent[]): void {
    for (const event of events) this.#counted.count(event)
    this.#feeds.stored(events)
  }

  /** Returns new receivers of the configuration. */
  async #sinksOf({ syslog, snmp, hostname }: Config): Promise<Sink[]> {
    const { version } = this.#options
    const origin = { hostname, version, processId: process.pid, enterprise: snmp.enterprise }
    const unacknowledged = this.#unacknowledged
    const traps = snmp.traps.length > 0 ? await snmpSinks(snmp) : []
    return [
      new JsonLogSink(this.#options.logger, this.#options.logFailure),
      ...syslog.map((target) => new SyslogSink({ target, origin, unacknowledged })),
      ...traps,
    ]
  }

  /** Adds the receivers that are objects in the store. */
  async #withStored(configured: readonly Sink[]): Promise<Sink[]> {
    return [...configured, ...(await this.#accounting.sinks()), ...(await this.#notifications.sinks())]
  }

  /** Replaces the receivers if their objects in the store were changed, by the API or by another process. */
  #lookAtReceivers(): void {
    const looked = this.#reloading.then(async () => {
      if (this.#isLeaving || this.#parts.store.reach.away) return
      const sinks = await this.#withStored(this.#configured)
      if (!this.#feeds.areOf(sinks)) await this.#feeds.replace(sinks)
    })
    this.#reloading = looked.catch((error: Error) => this.#onReceiverError(error))
  }

  #onReceiverError(error: Error): void {
    if (this.#parts.store.reach.away) return
    this.#options.logger.error({ error }, 'a receiver of events could not be set up, or told about')
  }

  /**
   * Applies the certificates, authorities, resolvers, banner, message of the day, networks of clear text and of
   * balancers, retention, sinks, SNMP agent and traces of a changed configuration (config/changes.ts has the keys);
   * listeners stay. Reloads run one at a time. Rejects if it cannot be applied.
   */
  reload(read: () => Config): Promise<void> {
    const reloaded = this.#reloading.then(() => this.#reload(read))
    this.#reloading = reloaded.catch(() => undefined)
    return reloaded
  }

  async #reload(read: () => Config): Promise<void> {
    if (this.#isLeaving) throw new Error('another broker replaces this one')
    // What it opens would stay.
    if (this.#singlesClosed) throw new Error('the broker ends')
    const told = { object_type: 'configuration', object: this.#config.file }
    let config: Config
    let configured: Sink[]
    let sinks: Sink[]
    let change: Prepared
    try {
      // Every step that can fail comes before the first change: a bad configuration leaves the old one in
      // force.
      config = read()
      configured = await this.#sinksOf(config)
      sinks = await this.#withStored(configured)
      change = await this.#prepareReload(config)
    } catch (error) {
      const { message: reason } = error as Error
      await this.#audit.record('config.reload', { ...told, result: 'failure', reason })
      throw error
    }
    const changes = configChanges(this.#config, config)
    // The present receivers get the event before one of them is removed, and new ones begin with it.
    const begin = this.#feeds.head
    const waiting = keysForRestart(this.#options.config, config)
    const reason = waiting === '' ? {} : { reason: `a restart applies: ${waiting}` }
    try {
      await this.#audit.record('config.reload', { ...told, changes, ...reason, result: 'success' })
    } catch (error) {
      await change.discard()
      throw error
    }
    change.apply()
    this.#config = config
    this.#configured = configured
    await this.#feeds.replace(sinks, begin)
  }

  async #prepareReload(config: Config): Promise<Prepared> {
    for (const unwise of [...exposedFiles(config), ...wideBalancers(config)])
      this.#options.logger.warn(unwise)
    const hostTrust = openHostTrust(config)
    const changeFronts = await this.#fronts?.prepareReload(config)
    const authorities = openAuthorities(config.ssh, parsePublicKey(this.#parts.userAuthority.blob))
    const tls =
      this.#api && config.listen.https
        ? await this.#keys.tls('https', config.hostname, config.listen.https)
        : undefined
    if (tls) createSecureContext(tls)
    // Last: it opens what has to be closed if a later step fails.
    const optional = await this.#optional.prepareReload(config)
    const apply = () => {
      optional.apply()
      if (tls) this.#api?.server.setSecureContext(tls)
      this.#parts.identities.authorities = authorities
      this.#gate.hostTrust = hostTrust
      this.#gate.tickets.lifetime = config.ticketLifetime
      this.#proxyHeaders.from = config.proxyProtocol.from
      this.#retention.limits = config.recordings
      this.#deletion.holdRelease = config.recordings.holdRelease
      this.#auditRetention.limits = config.audit
      changeFronts?.()
      this.#review(() => this.#gate.review())
    }
    return { apply, discard: () => optional.discard() }
  }

  /** Settles when the broker has ended. */
  get onClosed(): Promise<void> {
    return this.#closed.promise
  }

  /**
   * Accepts no new sessions; running ones get a grace, the configured one if none is given; then everything
   * closes in order. A second call can shorten the grace of the first. Resolves at the end.
   */
  async stop(reason: string, graceMs: number = this.#options.config.shutdownGrace): Promise<void> {
    if (this.#state === 'serving') this.#state = 'draining'
    if (!this.#stopping) this.#options.onStopping?.(reason)
    void this.#gate.drain('the bastion is stopping, try again later')
    const drained = this.#fronts?.drain(graceMs, reason)
    this.#stopping ??= this.#stop(drained, reason)
    await this.#stopping.then(this.#closed.resolve, this.#closed.reject)
  }

  async #stop(drained: Promise<void> | undefined, reason: string): Promise<void> {
    const { version: object, logger } = this.#options
    try {
      await drained
      await this.#audit.record('service.stop', {
        object_type: 'service',
        object,
        reason,
        ...(this.#isHandingOver && { method: TAKEOVER }),
      })
    } catch (error) {
      // A full disk must not keep the broker from ending.
      logger.error({ error }, 'the stop could not be written to the audit log')
    }
    await this.abort()
  }

  /** Frees all resources, without grace. */
  async abort(): Promise<void> {
    clearInterval(this.#reviews)
    clearInterval(this.#personChecks)
    this.#slack?.stop()
    this.#stopLoopWatch?.()
    for (const timer of [this.#expiries, this.#retentions, this.#looks, this.#notes, this.#reminders])
      clearInterval(timer)
    this.#predecessors.close()
    this.#outage.close()
    await this.#fronts?.drain(0, 'the bastion is stopping')
    await this.#closeSingles()
    await this.#optional.closeTracing()
    await this.#audit.close()
    await this.#backlog.close()
    await this.#feeds.close()
    this.#control?.drain()
    await this.#release()
    await this.#parts.close()
    this.#hold.release()
    this.#control?.close()
  }

  /** Closes what only one broker may have, except for the receivers of events. */
  #closeSingles(): Promise<void> {
    this.#singlesClosed ??= this.#closeEachSingle()
    return this.#singlesClosed
  }

  async #closeEachSingle(): Promise<void> {
    clearInterval(this.#accountings)
    // A look under way would begin the feeds anew.
    await this.#reloading
    this.#proxyHeaders.close()
    // Secrets that are being changed are found again by the next start.
    this.#changers.close()
    await this.#rotation.stop()
    // The API waits for the answers of exports.
    await this.#exports.close()
    await this.#api?.close()
    await this.#drawer.close()
    // The uploader's end also ends the indexer's downloads.
    await Promise.all([this.#indexer.close(), this.#uploader?.stop()])
    await this.#metricsServer?.close()
    await this.#optional.closeAgent()
    await this.#follower.close()
    await this.#contents.thread.close()
  }
}

/** Loads SNMP, which most brokers do without. */
async function snmpSinks({ traps, enterprise }: Config['snmp']): Promise<Sink[]> {
  const { SnmpSink } = await import('../audit/sinks/snmp.ts')
  return traps.map((target) => new SnmpSink({ target, enterprise }))
}

function place({ address, port }: { address: string; port: number }): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** Opens the index over the contents of sessions. */
function contentsOf({ dataDir, recordings }: Config) {
  const path = join(dataDir, 'search.db')
  const mode = contentMode(recordings)
  const thread = new ContentThread({ path, mode })
  const api = mode === 'off' ? undefined : { index: thread, mode, isSealed: !recordings.brokerKey }
  return { path, mode, thread, api }
}
