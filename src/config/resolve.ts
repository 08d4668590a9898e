/** From the file's content, checked and with defaults, to the configuration in use: paths, units, secrets. */
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Encrypter } from 'age-encryption'
import { Secret } from '../model/secret.ts'
import type { Problem } from './check.ts'
import type { Config, HttpsListen, SyslogTarget, TrapTarget } from './config.ts'
import { type ConfigFile, MAX_BANNER, type SecretSource } from './schema.ts'
import { parseDuration, parseSize } from './units.ts'

const MAX_GRACE = parseDuration('1h')
const SYSLOG_PORT = 514
/** RFC 5425 4.1. */
const SYSLOG_TLS_PORT = 6514
/** RFC 3414 11.2: passwords shorter than that are refused by managers. */
const MIN_SNMP_PASSWORD = 8

/** C0 but tab and line ends, DEL and C1. */
const CONTROL = /(?!\t|\r|\n)\p{Cc}/u

type Path = (string | number)[]
type Environment = Readonly<Record<string, string | undefined>>

class Resolver {
  readonly problems: Problem[] = []
  readonly #dataDir: string
  readonly #env: Environment

  constructor(dataDir: string, env: Environment) {
    this.#dataDir = dataDir
    this.#env = env
  }

  fail(path: Path, message: string): void {
    this.problems.push({ path, message })
  }

  path(file: string): string {
    return resolve(this.#dataDir, file)
  }

  duration(text: string, path: Path, minimum: number): number {
    const value = parseDuration(text)
    if (value < minimum || value > MAX_GRACE) {
      this.fail(path, `expected ${minimum / 1000}s to 1h, got ${text}`)
    }
    return value
  }

  secret(source: SecretSource, path: Path): Secret {
    if (typeof source === 'string') return Secret.of(source)
    let text: string | undefined
    if ('env' in source) {
      text = this.#env[source.env]
      if (text === undefined) this.fail(path, `the environment variable ${source.env} is not set`)
      else if (text === '') this.fail(path, `the environment variable ${source.env} is empty`)
    } else {
      const file = this.path(source.file)
      try {
        text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
        if (text === '') this.fail(path, `the file ${file} is empty`)
      } catch (error) {
        this.fail(path, `cannot read the secret: ${(error as Error).message}`)
      }
    }
    return Secret.of(text ?? '')
  }

  banner(source: string | { file: string }): string {
    const path: Path = ['ssh', 'banner']
    let text = ''
    try {
      text = typeof source === 'string' ? source : readFileSync(this.path(source.file), 'utf8')
    } catch (error) {
      this.fail(path, `cannot read the banner: ${(error as Error).message}`)
      return text
    }
    const lines = `${text.replace(/\r?\n$/, '').replace(/\r?\n/g, '\r\n')}\r\n`
    const size = Buffer.byteLength(lines)
    if (MAX_BANNER < size) this.fail(path, `expected at most ${MAX_BANNER} bytes, got ${size}`)
    // a terminal shows it before anybody has signed in
    else if (CONTROL.test(lines)) this.fail(path, 'expected text without control characters')
    return lines
  }

  https(listen: Exclude<ConfigFile['listen']['https'], 'off'>): HttpsListen {
    const { certificate, key } = listen
    if ((certificate === undefined) !== (key === undefined)) {
      this.fail(['listen', 'https'], 'certificate and key belong together: give both, or none')
    }
    return {
      host: listen.host,
      port: listen.port,
      ...(certificate === undefined ? {} : { certificate: this.path(certificate) }),
      ...(key === undefined ? {} : { key: this.path(key) }),
    }
  }

  syslog(sink: ConfigFile['syslog'][number], i: number): SyslogTarget {
    const { host, transport, format, ca } = sink
    if (ca !== undefined && transport !== 'tls') {
      this.fail(['syslog', i, 'ca'], `a certificate is of use with transport tls only, got ${transport}`)
    }
    return {
      host,
      port: sink.port ?? (transport === 'tls' ? SYSLOG_TLS_PORT : SYSLOG_PORT),
      transport,
      format,
      ...(ca === undefined ? {} : { ca: this.path(ca) }),
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
      // An unacknowledged version 3 notification is timed by the sender's own engine clock, which has to
      // survive restarts (RFC 3414 2.2); with an inform the receiver's clock counts.
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

  #snmpPassword(source: SecretSource, path: Path): Secret {
    const before = this.problems.length
    const secret = this.secret(source, path)
    if (source !== '' && this.problems.length === before && secret.length < MIN_SNMP_PASSWORD) {
      this.fail(path, `expected at least ${MIN_SNMP_PASSWORD} characters`)
    }
    return secret
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

/** `file` is the configuration file's absolute path. The configuration is of use only without problems. */
export function resolveConfig(
  content: ConfigFile,
  file: string,
  surroundings: { env: Environment; hostname: string },
): { config: Config; problems: Problem[] } {
  const dataDir = resolve(dirname(file), content.data_dir)
  const resolver = new Resolver(dataDir, surroundings.env)
  const { https, ssh, metrics } = content.listen
  const { user_ca: userCa, revoked_keys: revokedKeys, banner } = content.ssh
  const master = content.master_key
  const config: Config = {
    file,
    dataDir,
    hostname: content.hostname ?? surroundings.hostname,
    listen: {
      ...(https === 'off' ? {} : { https: resolver.https(https) }),
      ...(ssh === 'off' ? {} : { ssh }),
      ...(metrics === 'off' ? {} : { metrics }),
    },
    ssh: {
      ...(banner === undefined ? {} : { banner: resolver.banner(banner) }),
      userCa: userCa.map((file) => resolver.path(file)),
      ...(revokedKeys === undefined ? {} : { revokedKeys: resolver.path(revokedKeys) }),
    },
    database: { file: resolver.path(content.database.url.slice('sqlite:'.length)) },
    masterKey: 'file' in master ? { file: resolver.path(master.file) } : master,
    recordings: {
      directory: resolver.path(content.recordings.dir),
      recipients: content.recordings.recipients.map((recipient, i) => resolver.recipient(recipient, i)),
      minFree: parseSize(content.recordings.min_free),
    },
    loginGrace: resolver.duration(content.login_grace, ['login_grace'], 1000),
    shutdownGrace: resolver.duration(content.shutdown_grace, ['shutdown_grace'], 0),
    syslog: content.syslog.map((sink, i) => resolver.syslog(sink, i)),
    snmp: {
      enterprise: content.snmp.enterprise,
      traps: content.snmp.traps.map((trap, i) => resolver.trap(trap, i)),
    },
    log: {
      level: content.log.level,
      file: content.log.file === '-' ? '-' : resolver.path(content.log.file),
    },
  }
  return { config, problems: resolver.problems }
}
