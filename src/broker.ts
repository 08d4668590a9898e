/**
 * The composition root: builds every part from the configuration, in the order of the house's floors, and takes
 * them down in the opposite order.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { nativeCryptoAvailable, requirePatchedSsh2 } from '../proxies/ssh/ssh2.ts'
import { Drawer } from '../recordings/screens/drawer.ts'
import type { Api } from './api/deps.ts'
import { createApi } from './api/server.ts'
import { auditAnchor } from './audit/anchor.ts'
import { AuditLog } from './audit/log.ts'
import type { Sink, SinkDown } from './audit/sink.ts'
import { JsonLogSink } from './audit/sinks/jsonlog.ts'
import { MetricsSink } from './audit/sinks/metrics.ts'
import { SnmpSink } from './audit/sinks/snmp.ts'
import { SyslogSink } from './audit/sinks/syslog.ts'
import { EXPIRY_INTERVAL_MS, endExpiredCheckouts } from './checkout-expiry.ts'
import { explainBindError } from './config/binderror.ts'
import type { Config, ListenAddress } from './config/config.ts'
import { Follower } from './contents/follower.ts'
import { contentMode, prepareContents } from './contents/open.ts'
import { ContentThread } from './contents/thread.ts'
import { holdDataFolder, openDataFolder, tlsFiles } from './data-folder.ts'
import { firstAdministrator } from './first-start.ts'
import { type Foundation, openFoundation } from './foundation.ts'
import { Fronts } from './fronts.ts'
import { BrokerGate } from './gate/gate.ts'
import { REVIEW_INTERVAL_MS } from './gate/review.ts'
import { openHostTrust } from './host-trust.ts'
import { openAuthorities } from './identity/authorities.ts'
import { Deletion } from './keeper/deletion.ts'
import { type RecordingExports, recordingExports } from './keeper/exports.ts'
import { type IndexerOptions, RecordingIndexer } from './keeper/indexing/indexer.ts'
import { restoredFrom } from './keeper/restored.ts'
import { RETENTION_INTERVAL_MS, Retention } from './keeper/retention.ts'
import { freeBytes, SPACE_INTERVAL_MS, SpaceWatch } from './keeper/space.ts'
import { takeOver } from './keeper/start.ts'
import { Uploader } from './keeper/uploads/uploader.ts'
import type { Logger } from './log.ts'
import {
  createMetrics,
  type Metrics,
  type MetricsServer,
  startMetrics,
  type UploadFigures,
} from './metrics.ts'
import { Checkouts } from './vault/checkout.ts'

export interface BrokerOptions {
  config: Config
  logger: Logger
  version: string
  /** Password of the first administrator; absent: one is made and shown. */
  adminPassword?: string
  /** Lines for the person who starts it: addresses, and a password that was made. */
  say: (line: string) => void
}

/** Starts everything. Throws, with what was started taken down again, when a part cannot start. */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { config } = options
  requirePatchedSsh2()
  openDataFolder(config.dataDir)
  const release = holdDataFolder(config.dataDir)
  let broker: Broker | undefined
  try {
    broker = new Broker(options, await openFoundation(config), release)
    await broker.start()
    return broker
  } catch (error) {
    if (broker) await broker.abort()
    else release()
    throw error
  }
}

export class Broker {
  readonly #options: BrokerOptions
  readonly #parts: Foundation
  readonly #release: () => void
  readonly #audit: AuditLog
  readonly #metrics: Metrics
  readonly #contents: ReturnType<typeof contentsOf>
  readonly #follower: Follower
  readonly #indexer: RecordingIndexer
  readonly #exports: RecordingExports
  readonly #gate: BrokerGate
  readonly #drawer = new Drawer()
  #fronts: Fronts | undefined
  /** Port of the RDP listener. */
  #rdpPort: number | undefined
  #api: Api | undefined
  #reviews: NodeJS.Timeout | undefined
  #expiries: NodeJS.Timeout | undefined
  readonly #deletion: Deletion
  readonly #retention: Retention
  readonly #space: SpaceWatch
  #retentions: NodeJS.Timeout | undefined
  #looks: NodeJS.Timeout | undefined
  #metricsServer: MetricsServer | undefined
  readonly #uploader: Uploader | undefined

  constructor(options: BrokerOptions, parts: Foundation, release: () => void) {
    this.#options = options
    this.#parts = parts
    this.#release = release
    this.#audit = new AuditLog({
      repository: parts.store.audit,
      now: Date.now,
      checkpoints: {
        key: parts.keeper.keys.signing,
        anchor: auditAnchor({ ...parts.store, vault: parts.vault }),
        onError: (error) => options.logger.error({ error }, 'the audit log could not be signed for now'),
      },
    })
    this.#uploader = this.#makeUploader()
    this.#metrics = createMetrics({
      version: options.version,
      nativeCrypto: nativeCryptoAvailable(),
      sinks: () => this.#audit.sinks,
      freeBytes: () => freeBytes(parts.keeper.root),
      ...(this.#uploader && { uploads: this.#uploadMetrics(this.#uploader) }),
    })
    this.#contents = contentsOf(options.config)
    this.#follower = new Follower({
      audit: parts.store.audit,
      index: this.#contents.thread,
      onError: (error) => options.logger.warn({ error }, 'the search index could not be brought up to date'),
    })
    this.#exports = recordingExports(parts.keeper)
    this.#indexer = new RecordingIndexer({
      root: parts.keeper.root,
      unwrap: (wrapped) => parts.keeper.unwrap(wrapped),
      onFailure: (session, reason) => options.logger.warn({ session, reason }, 'a recording is not indexed'),
      ...(parts.keeper.bucket && { bucket: parts.keeper.bucket }),
      ...this.#recordedContents(),
    })
    this.#gate = new BrokerGate({
      ...parts,
      audit: this.#audit,
      recordings: parts.keeper,
      onRecorded: (session) => this.#indexer.add(session),
      drawer: this.#drawer,
      now: Date.now,
    })
    const { sessions } = parts.store
    const { alarmFree, minFree } = options.config.recordings
    this.#deletion = new Deletion({
      root: parts.keeper.root,
      sessions,
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
    this.#space = new SpaceWatch(
      { folder: parts.keeper.root, alarm: alarmFree, minimum: minFree },
      this.#audit,
    )
  }

  async start(): Promise<void> {
    const { config, logger, version, say } = this.#options
    this.#parts.identities.authorities = openAuthorities(config.ssh)
    this.#gate.hostTrust = openHostTrust(config)
    this.#gate.tickets.lifetime = config.ticketLifetime
    this.#audit.setSinks(this.#openSinks(config))
    if (!nativeCryptoAvailable()) {
      logger.warn(
        "ssh2's native crypto is not built for this Node: SSH runs at less than half its speed. Install a C++ compiler " +
          '(Debian: apt-get install g++ make python3), remove node_modules and start again',
      )
    }
    const { restored, report } = await takeOver({ ...this.#parts, audit: this.#audit, now: Date.now })
    for (const line of report) logger.warn(line)
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
    this.#reviews = setInterval(() => this.#review(), REVIEW_INTERVAL_MS)
    this.#expiries = setInterval(() => this.#endExpired(), EXPIRY_INTERVAL_MS)
    this.#retentions = setInterval(() => void this.#retention.enforce(), RETENTION_INTERVAL_MS)
    this.#looks = setInterval(() => this.#look(), SPACE_INTERVAL_MS)
    this.#look()
    await this.#startFronts(config)
    await this.#startApi(config)
    await this.#startMetrics(config)
    this.#indexer.catchUp()
    await this.#audit.record('service.start', {
      object_type: 'service',
      object: version,
      ...(restored && { reason: restoredFrom(restored) }),
    })
    await this.#audit.checkpoint()
  }

  #makeUploader(): Uploader | undefined {
    const { keeper, store } = this.#parts
    const { bucket } = keeper
    const { objectStore } = this.#options.config.recordings
    if (!bucket || !objectStore) return undefined
    const uploader = new Uploader({
      bucket,
      root: keeper.root,
      uploads: store.uploads,
      sessions: store.sessions,
      audit: this.#audit,
      keepLocal: objectStore.keepLocal,
      segmentInterval: objectStore.segmentInterval,
      onError: (error, session) =>
        this.#options.logger.error({ error, session }, 'a recording could not be copied to the object store'),
      now: Date.now,
    })
    keeper.onBegun = (session, begin) => uploader.begun(session, begin)
    return uploader
  }

  #uploadMetrics({ totals }: Uploader): UploadFigures {
    return { totals, waiting: () => this.#parts.store.uploads.waiting() }
  }

  /** Time passes and other processes write: what still runs is asked for its right once in a while. */
  #review(): void {
    this.#gate.review().catch((error: unknown) => {
      this.#options.logger.error({ error }, 'running sessions could not be reviewed')
    })
  }

  #endExpired(): void {
    endExpiredCheckouts(this.#parts.store, this.#audit, Date.now()).catch((error: unknown) => {
      this.#options.logger.error({ error }, 'checkouts that are over could not be ended')
    })
  }

  #look(): void {
    this.#space.look().catch((error: unknown) => {
      this.#options.logger.error({ error }, 'the free space for recordings could not be looked at')
    })
  }

  async #startFronts(config: Config): Promise<void> {
    this.#fronts = await Fronts.open(config, this.#gate, (warning) => this.#options.logger.warn(warning))
    for (const { name, address, listen } of this.#fronts.listeners) {
      const bound = await this.#bind(name, address, listen)
      if (name === 'rdp') this.#rdpPort = bound.port
      this.#options.say(`${name.padEnd(8)} ${place(bound)}`)
    }
  }

  async #startApi({ listen, dataDir, hostname }: Config): Promise<void> {
    if (!listen.https) return
    this.#api = await createApi({
      store: this.#parts.store,
      vault: this.#parts.vault,
      checkouts: new Checkouts(this.#parts.store, this.#parts.vault, this.#gate),
      identities: this.#parts.identities,
      passwords: this.#parts.passwords,
      audit: this.#audit,
      sessionControl: this.#gate,
      tickets: this.#gate.tickets,
      rdpAddress: this.#rdpPort === undefined ? undefined : { host: hostname, port: this.#rdpPort },
      recordings: this.#exports,
      contents: this.#contents.api,
      deletion: this.#deletion,
      clock: Date.now,
      randomBytes,
      tls: await tlsFiles(dataDir, hostname, listen.https),
      // Where it listens is said below; requests are events.
      logger: this.#options.logger.child({}, { level: 'warn' }),
      metrics: {
        request: (method, route, status, seconds) =>
          this.#metrics.apiRequests.observe({ method, route, status }, seconds),
      },
      version: this.#options.version,
    })
    const bound = await this.#bind('https', listen.https, async (host, port) => {
      await this.#api!.listen({ host, port })
      return this.#api!.server.address() as { address: string; port: number }
    })
    this.#options.say(`https    https://${place(bound)}/api/doc/Usage.html`)
  }

  /** Recordings go into the index over sessions where the broker can open them. */
  #recordedContents(): Pick<IndexerOptions, 'contents'> {
    const { path, mode, thread } = this.#contents
    if (mode !== 'full') return {}
    return { contents: { path, mode, has: (session, digest) => thread.has(session, digest) } }
  }

  /** The index over sessions, before anybody asks it. */
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
      return await listen(address.host, address.port)
    } catch (error) {
      const failed = error as NodeJS.ErrnoException
      throw failed.syscall === undefined ? failed : new Error(explainBindError(failed, name, address))
    }
  }

  #openSinks({ syslog, snmp, hostname }: Config): Sink[] {
    const onDown: SinkDown = ({ type, address }, reason) => {
      this.#audit
        .record('sink.down', { object_type: type, object: address, reason })
        .catch((error: unknown) => this.#options.logger.error({ error }, 'the audit log cannot be written'))
    }
    const origin = { hostname, processId: process.pid, enterprise: snmp.enterprise }
    return [
      new JsonLogSink(this.#options.logger),
      new MetricsSink(this.#metrics),
      ...syslog.map((target) => new SyslogSink({ target, origin, onDown })),
      ...snmp.traps.map((target) => new SnmpSink({ target, enterprise: snmp.enterprise, onDown })),
    ]
  }

  /**
   * Takes over what a changed configuration says of certificates, authorities, resolvers, banner, message of the day,
   * networks of clear text, retention and sinks; listeners stay.
   */
  async reload(config: Config): Promise<void> {
    const hostTrust = openHostTrust(config)
    const changeFronts = await this.#fronts?.prepareReload(config)
    const authorities = openAuthorities(config.ssh)
    // what can fail comes before all that is changed: a bad configuration leaves the old one whole
    if (this.#api && config.listen.https) {
      this.#api.server.setSecureContext(await tlsFiles(config.dataDir, config.hostname, config.listen.https))
    }
    this.#parts.identities.authorities = authorities
    this.#gate.hostTrust = hostTrust
    this.#gate.tickets.lifetime = config.ticketLifetime
    this.#retention.limits = config.recordings
    changeFronts?.()
    const old = this.#audit.sinks
    this.#audit.setSinks(this.#openSinks(config))
    await Promise.all(old.map((sink) => sink.close()))
  }

  /** No new sessions; running ones get the grace of the configuration; then everything ends in order. */
  async stop(reason: string): Promise<void> {
    const { config, version } = this.#options
    this.#gate.drain('the bastion is stopping, try again later')
    await this.#fronts?.drain(config.shutdownGrace, reason)
    await this.#audit.record('service.stop', { object_type: 'service', object: version, reason })
    await this.abort()
  }

  /** Frees what is held, without grace. */
  async abort(): Promise<void> {
    clearInterval(this.#reviews)
    for (const timer of [this.#expiries, this.#retentions, this.#looks]) clearInterval(timer)
    await this.#fronts?.drain(0, 'the bastion is stopping')
    // The API waits for its answers.
    await this.#exports.close()
    await this.#api?.close()
    await this.#drawer.close()
    // What the indexer fetches from the object store ends with the uploader.
    await Promise.all([this.#indexer.close(), this.#uploader?.stop()])
    await this.#metricsServer?.close()
    await this.#follower.close()
    await this.#contents.thread.close()
    await this.#audit.close()
    await this.#parts.store.close()
    this.#release()
  }
}

function place({ address, port }: { address: string; port: number }): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** The index over what happened in sessions. */
function contentsOf({ dataDir, recordings }: Config) {
  const path = join(dataDir, 'search.db')
  const mode = contentMode(recordings)
  const thread = new ContentThread({ path, mode })
  const api = mode === 'off' ? undefined : { index: thread, mode, isSealed: !recordings.brokerKey }
  return { path, mode, thread, api }
}
