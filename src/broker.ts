/**
 * The composition root: builds every part from the configuration, in the order of the house's floors, and takes
 * them down in the opposite order.
 */
import { randomBytes } from 'node:crypto'
import { SshProxy } from '../proxies/ssh/proxy.ts'
import { nativeCryptoAvailable, requirePatchedSsh2 } from '../proxies/ssh/transport.ts'
import type { Api } from './api/deps.ts'
import { createApi } from './api/server.ts'
import { AuditLog } from './audit/log.ts'
import type { Sink, SinkDown } from './audit/sink.ts'
import { JsonLogSink } from './audit/sinks/jsonlog.ts'
import { MetricsSink } from './audit/sinks/metrics.ts'
import { SnmpSink } from './audit/sinks/snmp.ts'
import { SyslogSink } from './audit/sinks/syslog.ts'
import { EXPIRY_INTERVAL_MS, endExpiredCheckouts } from './checkout-expiry.ts'
import { explainBindError } from './config/binderror.ts'
import type { Config, ListenAddress } from './config/config.ts'
import { holdDataFolder, hostKeys, nextHostKeys, openDataFolder, tlsFiles } from './data-folder.ts'
import { firstAdministrator } from './first-start.ts'
import { type Foundation, openFoundation } from './foundation.ts'
import { BrokerGate } from './gate/gate.ts'
import { REVIEW_INTERVAL_MS } from './gate/review.ts'
import { openAuthorities } from './identity/authorities.ts'
import { recordingExports } from './keeper/exports.ts'
import { recoverSessions } from './keeper/recover.ts'
import type { Logger } from './log.ts'
import { createMetrics, type Metrics, type MetricsServer, startMetrics } from './metrics.ts'
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
  readonly #gate: BrokerGate
  #ssh: SshProxy | undefined
  #api: Api | undefined
  #reviews: NodeJS.Timeout | undefined
  #expiries: NodeJS.Timeout | undefined
  #metricsServer: MetricsServer | undefined

  constructor(options: BrokerOptions, parts: Foundation, release: () => void) {
    this.#options = options
    this.#parts = parts
    this.#release = release
    this.#audit = new AuditLog({ repository: parts.store.audit, now: Date.now })
    this.#metrics = createMetrics({
      version: options.version,
      nativeCrypto: nativeCryptoAvailable(),
      sinks: () => this.#audit.sinks,
    })
    this.#gate = new BrokerGate({
      ...parts,
      audit: this.#audit,
      recordings: parts.keeper,
      now: Date.now,
    })
  }

  async start(): Promise<void> {
    const { config, logger, version, say } = this.#options
    this.#parts.identities.authorities = openAuthorities(config.ssh)
    this.#audit.setSinks(this.#openSinks(config))
    if (!nativeCryptoAvailable()) {
      logger.warn(
        "ssh2's native crypto is not built for this Node: SSH runs at less than half its speed. Install a C++ compiler " +
          '(Debian: apt-get install g++ make python3), remove node_modules and start again',
      )
    }
    for (const line of await recoverSessions({ ...this.#parts, audit: this.#audit, now: Date.now })) {
      logger.warn(line)
    }
    const admin = await firstAdministrator(
      this.#parts.store,
      this.#parts.identities,
      this.#audit,
      this.#options.adminPassword,
    )
    if (admin.password !== undefined) {
      say(`the user admin was created with the password ${admin.password} (shown only this once)`)
    }
    this.#reviews = setInterval(() => this.#review(), REVIEW_INTERVAL_MS)
    this.#expiries = setInterval(() => this.#endExpired(), EXPIRY_INTERVAL_MS)
    await this.#startSsh(config)
    await this.#startApi(config)
    await this.#startMetrics(config)
    await this.#audit.record('service.start', { object_type: 'service', object: version })
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

  async #startSsh({ listen, dataDir, loginGrace, ssh }: Config): Promise<void> {
    if (!listen.ssh) return
    const keys = hostKeys(dataDir)
    this.#ssh = new SshProxy({
      gate: this.#gate,
      hostKeys: keys.map((key) => key.private),
      nextHostKeys: nextHostKeys(dataDir),
      ...(ssh.banner !== undefined && { banner: ssh.banner }),
      loginGraceMs: loginGrace,
    })
    const bound = await this.#bind('ssh', listen.ssh, (host, port) => this.#ssh!.listen(host, port))
    this.#options.say(`ssh      ${place(bound)}`)
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
      recordings: recordingExports(this.#parts.keeper),
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

  /** Takes over what a changed configuration says of certificates, authorities, banner and sinks; listeners stay. */
  async reload(config: Config): Promise<void> {
    this.#parts.identities.authorities = openAuthorities(config.ssh)
    if (this.#ssh) this.#ssh.banner = config.ssh.banner
    const old = this.#audit.sinks
    this.#audit.setSinks(this.#openSinks(config))
    if (this.#api && config.listen.https) {
      this.#api.server.setSecureContext(await tlsFiles(config.dataDir, config.hostname, config.listen.https))
    }
    await Promise.all(old.map((sink) => sink.close()))
  }

  /** No new sessions; running ones get the grace of the configuration; then everything ends in order. */
  async stop(reason: string): Promise<void> {
    const { config, version } = this.#options
    this.#gate.drain('the bastion is stopping, try again later')
    await this.#ssh?.drain(config.shutdownGrace, reason)
    await this.#audit.record('service.stop', { object_type: 'service', object: version, reason })
    await this.abort()
  }

  /** Frees what is held, without grace. */
  async abort(): Promise<void> {
    clearInterval(this.#reviews)
    clearInterval(this.#expiries)
    await this.#ssh?.drain(0, 'the bastion is stopping')
    await this.#api?.close()
    await this.#metricsServer?.close()
    await this.#audit.close()
    await this.#parts.store.close()
    this.#release()
  }
}

function place({ address, port }: { address: string; port: number }): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}
