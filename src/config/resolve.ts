/** Turns the checked file with its defaults into the configuration in use: paths, units, secrets. */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { dirname, resolve } from 'node:path'
import { Encrypter } from 'age-encryption'
import type { DatabasePlace } from '../model/database.ts'
import { networkError } from '../model/networks.ts'
import { Secret } from '../model/secret.ts'
import { type Problem, withoutUserinfo } from './check.ts'
import type {
  ClearTextListen,
  Config,
  DnsServer,
  ObjectStoreConfig,
  RdpListen,
  SnmpAgentConfig,
  SnmpUser,
  SyslogTarget,
  TlsListen,
  TracesConfig,
  TrapTarget,
  VncListen,
} from './config.ts'
import { DatabaseUrlError, readDatabaseUrl } from './database-url.ts'
import { sharedPorts } from './ports.ts'
import { type ConfigFile, MAX_BANNER } from './schema.ts'
import { parseDuration, parseSize } from './units.ts'
import type { SecretSource } from './values.ts'

const MAX_GRACE = parseDuration('1h')
const SYSLOG_PORT = 514
/** RFC 5425 4.1. */
const SYSLOG_TLS_PORT = 6514
/** Milliseconds for which persons that are gone keep their sessions at most. */
const MAX_CHECK_INTERVAL = 15 * 60_000
const MIN_CERTIFICATE_LIFETIME = 5 * 60_000
const MAX_CERTIFICATE_LIFETIME = 30 * 24 * 60 * 60_000
/** RFC 3414 11.2: managers refuse shorter passwords. */
const MIN_SNMP_PASSWORD = 8

const MIN_COMMUNITY = 8
const MAX_COMMUNITY = 255

/** C0 but tab and line ends, DEL and C1. */
const CONTROL = /(?!\t|\r|\n)\p{Cc}/u

/** Matches the host of a URL. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

type Path = (string | number)[]
type Environment = Readonly<Record<string, string | undefined>>

class Resolver {
  readonly problems: Problem[] = []
  /** Holds absolute paths. */
  readonly secretFiles = new Set<string>()
  readonly #file: string
  readonly #dataDir: string
  readonly #env: Environment

  constructor(file: string, dataDir: string, env: Environment) {
    this.#file = file
    this.#dataDir = dataDir
    this.#env = env
  }

  fail(path: Path, message: string): void {
    this.problems.push({ path, message })
  }

  path(file: string): string {
    return resolve(this.#dataDir, file)
  }

  duration(text: string, path: Path, minimum: number, maximum = MAX_GRACE): number {
    const value = parseDuration(text)
    if (value < minimum || value > maximum) {
      const most = maximum === MAX_GRACE ? '1h' : `${maximum / 60_000}m`
      this.fail(path, `expected ${minimum / 1000}s to ${most}, got ${text}`)
    }
    return value
  }

  secret(source: SecretSource, path: Path): Secret {
    if (typeof source === 'string') {
      this.secretFiles.add(this.#file)
      return Secret.of(source)
    }
    let text: string | undefined
    if ('env' in source) {
      text = this.#env[source.env]
      if (text === undefined) this.fail(path, `the environment variable ${source.env} is not set`)
      else if (text === '') this.fail(path, `the environment variable ${source.env} is empty`)
    } else {
      const file = this.path(source.file)
      this.secretFiles.add(file)
      try {
        text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
        if (text === '') this.fail(path, `the file ${file} is empty`)
      } catch (error) {
        this.fail(path, `cannot read the secret: ${withoutUserinfo((error as Error).message)}`)
      }
    }
    return Secret.of(text ?? '')
  }

  database({ url, password }: { url: string; password?: SecretSource }): DatabasePlace {
    let place: DatabasePlace = { file: '' }
    try {
      place = readDatabaseUrl(url, (file) => this.path(file))
    } catch (error) {
      if (!(error instanceof DatabaseUrlError)) throw error
      this.fail(['database', 'url'], error.message)
    }
    if (!('postgres' in place)) {
      if (password !== undefined) this.fail(['database', 'password'], 'a file of SQLite has no password')
      return place
    }
    if (place.postgres.password) this.secretFiles.add(this.#file)
    if (password === undefined) return place
    const at = ['database', 'password']
    if (place.postgres.password) this.fail(at, 'the URL has a password already: take one of them out')
    return { postgres: { ...place.postgres, password: this.secret(password, at) } }
  }

  /** Reads a text for terminals: the banner, or the message of the day. */
  shown(key: 'banner' | 'motd', source: string | { file: string }): string {
    const path: Path = ['ssh', key]
    let text = ''
    try {
      text = typeof source === 'string' ? source : readFileSync(this.path(source.file), 'utf8')
    } catch (error) {
      this.fail(path, `cannot read the ${key}: ${withoutUserinfo((error as Error).message)}`)
      return text
    }
    const lines = `${text.replace(/\r?\n$/, '').replace(/\r?\n/g, '\r\n')}\r\n`
    const size = Buffer.byteLength(lines)
    if (MAX_BANNER < size) this.fail(path, `expected at most ${MAX_BANNER} bytes, got ${size}`)
    // a terminal would obey them
    else if (CONTROL.test(lines)) this.fail(path, 'expected text without control characters')
    return lines
  }

  withTls(
    name: 'https' | 'telnets' | 'vnc' | 'rdp',
    listen: Exclude<ConfigFile['listen']['https'], 'off'>,
  ): TlsListen {
    const { certificate, key } = listen
    if ((certificate === undefined) !== (key === undefined)) {
      this.fail(['listen', name], 'certificate and key belong together: give both, or none')
    }
    if (key !== undefined) this.secretFiles.add(this.path(key))
    return {
      host: listen.host,
      port: listen.port,
      ...(certificate === undefined ? {} : { certificate: this.path(certificate) }),
      ...(key === undefined ? {} : { key: this.path(key) }),
    }
  }

  inClearText(name: 'telnet' | 'rlogin', listen: ClearTextListen): ClearTextListen {
    this.#networks(['listen', name, 'allow'], listen.allow)
    return listen
  }

  vnc(listen: Exclude<ConfigFile['listen']['vnc'], 'off'>): VncListen {
    this.#networks(['listen', 'vnc', 'allow_clear'], listen.allow_clear)
    const { allow_clear: allowClear, security_types: securityTypes } = listen
    return { ...this.withTls('vnc', listen), securityTypes, allowClear }
  }

  rdp(listen: Exclude<ConfigFile['listen']['rdp'], 'off'>): RdpListen {
    return { ...this.withTls('rdp', listen), nla: listen.nla }
  }

  balancers(path: Path, networks: string[]): string[] {
    this.#networks(path, networks)
    return networks
  }

  #networks(path: Path, networks: readonly string[]): void {
    for (const [i, network] of networks.entries()) {
      const flaw = networkError(network)
      if (flaw !== undefined) this.fail([...path, i], `${flaw}, got ${withoutUserinfo(network)}`)
    }
  }

  dnsServer(server: DnsServer, i: number): DnsServer {
    const { host } = server
    // a name would need a resolver, and none is trusted yet
    if (isIP(host) === 0)
      this.fail(['dns', 'servers', i, 'host'], `expected an address, got ${withoutUserinfo(host)}`)
    return server
  }

  syslog(sink: ConfigFile['syslog'][number], i: number): SyslogTarget {
    const { host, transport, format, ca, certificate, key } = sink
    for (const [name, file] of Object.entries({ ca, certificate, key })) {
      if (file !== undefined && transport !== 'tls')
        this.fail(['syslog', i, name], `a certificate is of use with transport tls only, got ${transport}`)
    }
    if ((certificate === undefined) !== (key === undefined)) {
      this.fail(['syslog', i], 'certificate and key belong together: give both, or none')
    }
    if (key !== undefined) this.secretFiles.add(this.path(key))
    return {
      host,
      port: sink.port ?? (transport === 'tls' ? SYSLOG_TLS_PORT : SYSLOG_PORT),
      transport,
      format,
      ...(ca === undefined ? {} : { ca: this.path(ca) }),
      ...(certificate !== undefined &&
        key !== undefined && { client: { certificate: this.path(certificate), key: this.path(key) } }),
    }
  }

  trap(trap: ConfigFile['snmp']['traps'][number], i: number): TrapTarget {
    const path: Path = ['snmp', 'traps', i]
    const { host, port, inform } = trap
    const required = <T>(value: T | undefined, key: string, fallback: T): T => {
      if (value === undefined) this.fail(path, `version ${trap.version} needs the key ${key}`)
      return value ?? fallback
    }
    const foreign =
      trap.version === 3
        ? (['community'] as const)
        : (['user', 'auth', 'auth_password', 'priv', 'priv_password'] as const)
    for (const key of foreign) {
      if (trap[key] !== undefined) this.fail([...path, key], `this key is not one of version ${trap.version}`)
    }
    if (trap.version === '2c') {
      const community = this.secret(required<SecretSource>(trap.community, 'community', ''), [
        ...path,
        'community',
      ])
      return { host, port, inform, version: '2c', community }
    }
    if (!inform) {
      // The sender's own engine clock times an unacknowledged version 3 notification, so it would have to
      // survive restarts (RFC 3414 2.2); with an inform the receiver's clock is used.
      this.fail(path, 'version 3 is available with inform: true only')
    }
    return {
      host,
      port,
      inform,
      version: 3,
      user: required(trap.user, 'user', ''),
      auth: trap.auth ?? 'sha256',
      authPassword: this.#snmpPassword(required<SecretSource>(trap.auth_password, 'auth_password', ''), [
        ...path,
        'auth_password',
      ]),
      priv: trap.priv ?? 'aes',
      privPassword: this.#snmpPassword(required<SecretSource>(trap.priv_password, 'priv_password', ''), [
        ...path,
        'priv_password',
      ]),
    }
  }

  agent({ host, port, allow, v2c, v3 }: NonNullable<ConfigFile['snmp']['agent']>): SnmpAgentConfig {
    const path: Path = ['snmp', 'agent']
    this.#networks([...path, 'allow'], allow)
    if (!v2c && !v3) this.fail(path, 'expected v2c, v3 or both')
    return {
      ...{ host, port, allow },
      ...(v2c && { community: this.#community(v2c.community, [...path, 'v2c', 'community']) }),
      ...(v3 && { v3: this.#snmpUser(v3, [...path, 'v3']) }),
    }
  }

  /** Reads a community: all figures are open to a manager that guesses it. */
  #community(source: SecretSource, path: Path): Secret {
    const before = this.problems.length
    const secret = this.secret(source, path)
    const isLong = MIN_COMMUNITY <= secret.length && secret.length <= MAX_COMMUNITY
    if (this.problems.length === before && !isLong) {
      this.fail(path, `expected ${MIN_COMMUNITY} to ${MAX_COMMUNITY} bytes`)
    }
    return secret
  }

  #snmpUser(v3: NonNullable<NonNullable<ConfigFile['snmp']['agent']>['v3']>, path: Path): SnmpUser {
    const { user, auth, priv } = v3
    if (priv === 'aes256' && auth === 'sha224') {
      // The key would have to be stretched, for which there is no standard.
      this.fail([...path, 'priv'], 'aes256 needs auth: sha256, sha384 or sha512')
    }
    return {
      ...{ user, auth, priv },
      authPassword: this.#snmpPassword(v3.auth_password, [...path, 'auth_password']),
      privPassword: this.#snmpPassword(v3.priv_password, [...path, 'priv_password']),
    }
  }

  #snmpPassword(source: SecretSource, path: Path): Secret {
    const before = this.problems.length
    const secret = this.secret(source, path)
    if (source !== '' && this.problems.length === before && secret.length < MIN_SNMP_PASSWORD) {
      this.fail(path, `expected at least ${MIN_SNMP_PASSWORD} characters`)
    }
    return secret
  }

  retention({ min_free, alarm_free, keep_days, hold_release, max_size }: ConfigFile['recordings']) {
    const minFree = parseSize(min_free)
    const alarmFree = alarm_free === undefined ? 2 * minFree : parseSize(alarm_free)
    if (alarmFree < minFree) this.fail(['recordings', 'alarm_free'], 'expected at least as much as min_free')
    const maxSize = max_size === 'off' ? 0 : parseSize(max_size)
    return { minFree, alarmFree, keepDays: keep_days, holdRelease: hold_release, maxSize }
  }

  brokerKey({ broker_key, recipients }: ConfigFile['recordings']): boolean {
    if (!broker_key && recipients.length === 0) {
      this.fail(
        ['recordings', 'broker_key'],
        'expected at least one of recordings.recipients with false: nobody could open a recording',
      )
    }
    return broker_key
  }

  objectStore(store: NonNullable<ConfigFile['recordings']['object_store']>): ObjectStoreConfig {
    const path: Path = ['recordings', 'object_store']
    const { region, bucket, prefix } = store
    const endpoint = store.endpoint?.replace(/\/$/, '')
    if (endpoint !== undefined && !URL.canParse(endpoint)) {
      this.fail([...path, 'endpoint'], `expected https://HOST or https://HOST:PORT, got ${endpoint}`)
    } else if (endpoint?.startsWith('http:') && !LOOPBACK.test(new URL(endpoint).hostname)) {
      // an eavesdropper could read the metadata of recordings, and change downloads
      this.fail([...path, 'endpoint'], `expected https://, got ${endpoint}: http is for this machine only`)
    }
    return {
      ...(endpoint !== undefined && { endpoint }),
      region,
      bucket,
      prefix,
      accessKey: store.access_key,
      secretKey: this.secret(store.secret_key, [...path, 'secret_key']),
      pathStyle: store.path_style,
      ...(store.ca !== undefined && { ca: this.path(store.ca) }),
      ...(store.keep_local !== 'always' && { keepLocal: parseDuration(store.keep_local) }),
      segmentInterval: this.duration(store.segment_interval, [...path, 'segment_interval'], 1000),
      rate: store.max_rate === 'off' ? 0 : parseSize(store.max_rate),
    }
  }

  traces({ endpoint, ca }: NonNullable<ConfigFile['traces']>): TracesConfig {
    const path: Path = ['traces', 'endpoint']
    if (!URL.canParse(endpoint)) this.fail(path, `expected https://HOST:PORT/PATH, got ${endpoint}`)
    else if (endpoint.startsWith('http:') && !LOOPBACK.test(new URL(endpoint).hostname)) {
      this.fail(path, `expected https://, got ${endpoint}: http is for this machine only`)
    }
    return { endpoint, ...(ca !== undefined && { ca: this.path(ca) }) }
  }

  recipient(recipient: string, i: number): string {
    try {
      new Encrypter().addRecipient(recipient)
    } catch (error) {
      this.fail(['recordings', 'recipients', i], `not an age recipient: ${(error as Error).message}`)
    }
    return recipient
  }
}

/**
 * `file` is the configuration file's absolute path. The configuration may be used only if there are no
 * problems.
 */
export function resolveConfig(
  content: ConfigFile,
  file: string,
  surroundings: { env: Environment; hostname: string },
): { config: Config; problems: Problem[] } {
  const dataDir = resolve(dirname(file), content.data_dir)
  const resolver = new Resolver(file, dataDir, surroundings.env)
  const { https, ssh, telnet, rlogin, telnets, vnc, rdp, metrics } = content.listen
  const { user_ca: userCa, host_certificates: hostCertificates, banner, motd } = content.ssh
  const { revoked_keys: revokedKeys, revoked_host_keys: revokedHostKeys } = content.ssh
  const master = content.master_key
  const config: Omit<Config, 'secretFiles'> = {
    file,
    dataDir,
    hostname: content.hostname ?? surroundings.hostname,
    site:
      content.site ?? siteOf(content.hostname ?? surroundings.hostname, https === 'off' ? 443 : https.port),
    listen: {
      ...(https === 'off' ? {} : { https: resolver.withTls('https', https) }),
      ...(ssh === 'off' ? {} : { ssh }),
      ...(telnet === 'off' ? {} : { telnet: resolver.inClearText('telnet', telnet) }),
      ...(rlogin === 'off' ? {} : { rlogin: resolver.inClearText('rlogin', rlogin) }),
      ...(telnets === 'off' ? {} : { telnets: resolver.withTls('telnets', telnets) }),
      ...(vnc === 'off' ? {} : { vnc: resolver.vnc(vnc) }),
      ...(rdp === 'off' ? {} : { rdp: resolver.rdp(rdp) }),
      ...(metrics === 'off' ? {} : { metrics }),
    },
    ssh: {
      ...(banner === undefined ? {} : { banner: resolver.shown('banner', banner) }),
      ...(motd === undefined ? {} : { motd: resolver.shown('motd', motd) }),
      hostCertificates: hostCertificates.map((file) => resolver.path(file)),
      userCa: userCa.map((file) => resolver.path(file)),
      ...(revokedKeys === undefined ? {} : { revokedKeys: resolver.path(revokedKeys) }),
      ...(revokedHostKeys === undefined ? {} : { revokedHostKeys: resolver.path(revokedHostKeys) }),
    },
    proxyProtocol: { from: resolver.balancers(['proxy_protocol', 'from'], content.proxy_protocol.from) },
    trustedProxies: resolver.balancers(['trusted_proxies'], content.trusted_proxies),
    dns: { servers: content.dns.servers.map((server, i) => resolver.dnsServer(server, i)) },
    database: resolver.database(content.database),
    databaseGrace: resolver.duration(content.database.grace, ['database', 'grace'], 0),
    masterKey: 'file' in master ? { file: resolver.path(master.file) } : master,
    audit: {
      keepDays: content.audit.keep_days,
      ...(content.audit.archive !== undefined && { archive: resolver.path(content.audit.archive) }),
    },
    recordings: {
      directory: resolver.path(content.recordings.dir),
      recipients: content.recordings.recipients.map((recipient, i) => resolver.recipient(recipient, i)),
      brokerKey: resolver.brokerKey(content.recordings),
      search: content.recordings.search,
      ...resolver.retention(content.recordings),
      ...(content.recordings.object_store !== undefined && {
        objectStore: resolver.objectStore(content.recordings.object_store),
      }),
    },
    workers: content.workers === 'auto' ? availableParallelism() : content.workers,
    ...(content.run_as !== undefined && { runAs: content.run_as }),
    loginGrace: resolver.duration(content.login_grace, ['login_grace'], 1000),
    passwords: { minLength: content.passwords.min_length },
    signIn: {
      checkInterval: resolver.duration(
        content.sign_in.check_interval,
        ['sign_in', 'check_interval'],
        1000,
        MAX_CHECK_INTERVAL,
      ),
      ...(content.sign_in.certificate_lifetime !== 'off' && {
        certificateLifetime: resolver.duration(
          content.sign_in.certificate_lifetime,
          ['sign_in', 'certificate_lifetime'],
          MIN_CERTIFICATE_LIFETIME,
          MAX_CERTIFICATE_LIFETIME,
        ),
      }),
    },
    ticketLifetime: resolver.duration(content.ticket_lifetime, ['ticket_lifetime'], 10_000),
    shutdownGrace: resolver.duration(content.shutdown_grace, ['shutdown_grace'], 0),
    syslog: content.syslog.map((sink, i) => resolver.syslog(sink, i)),
    snmp: {
      enterprise: content.snmp.enterprise,
      ...(content.snmp.agent && { agent: resolver.agent(content.snmp.agent) }),
      traps: content.snmp.traps.map((trap, i) => resolver.trap(trap, i)),
    },
    ...(content.traces && { traces: resolver.traces(content.traces) }),
    log: {
      level: content.log.level,
      file: content.log.file === '-' ? '-' : resolver.path(content.log.file),
    },
  }
  const problems = [...resolver.problems, ...sharedPorts(config.listen)]
  return { config: { ...config, secretFiles: [...resolver.secretFiles] }, problems }
}

/** Returns the origin of a host's port of HTTPS. */
function siteOf(hostname: string, port: number): string {
  return new URL(`https://${hostname}:${port}`).origin
}
