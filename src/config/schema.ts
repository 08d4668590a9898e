/**
 * The schema of the configuration file: every supported key, its default and its meaning.
 *
 * `title` is the expected value in an error; `description` documents the key in config/schema.json; `secret`
 * keeps the value out of error texts.
 */
import Type, { type Static } from 'typebox'
import { LEAST_MIN_LENGTH, MIN_LENGTH, MOST_MIN_LENGTH } from '../model/password-length.ts'
import { SYSLOG_FORMATS } from './config.ts'
import { Listen } from './listeners.ts'
import { Snmp } from './snmp.ts'
import { DURATION_PATTERN, SIZE_PATTERN } from './units.ts'
import { Choice, closed, Host, MAX_NETWORKS, NetworkText, Path, RemotePort, Secret } from './values.ts'

/** Bytes, also of the message of the day; fits in one message. */
export const MAX_BANNER = 8192

const Duration = (options: { default: string; description: string }) =>
  Type.String({ pattern: DURATION_PATTERN, title: 'a duration such as 90s, 15m, 8h or 30d', ...options })

const Shown = (description: string) =>
  Type.Union(
    [
      Type.String({ minLength: 1, maxLength: MAX_BANNER }),
      Type.Object({ file: Type.String({ minLength: 1 }) }, closed),
    ],
    { title: 'text or { file: PATH }', description },
  )

const Balancers = (description: string) =>
  Type.Array(NetworkText, { default: [], maxItems: MAX_NETWORKS, title: 'a list of networks', description })

const ObjectStore = Type.Object(
  {
    endpoint: Type.Optional(
      Type.String({
        pattern: '^https?://[A-Za-z0-9:._\\[\\]-]{1,255}/?$',
        title: 'https://HOST or https://HOST:PORT',
        description:
          'the store; http:// only for 127.0.0.1, ::1 and localhost. Default: Amazon S3 of the region',
      }),
    ),
    region: Type.String({
      pattern: '^[A-Za-z0-9-]{1,64}$',
      default: 'us-east-1',
      title: 'the name of a region',
      description: 'region of the signatures; stores other than Amazon usually accept us-east-1',
    }),
    bucket: Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$',
      title: 'the name of a bucket',
      description: 'must exist',
    }),
    prefix: Type.String({
      pattern: '^([A-Za-z0-9._-]{1,64}/){0,8}$',
      default: '',
      title: 'empty, or folders that end with a slash',
      description: 'prefix of the keys of all objects',
    }),
    access_key: Type.String({ minLength: 1, maxLength: 256, title: 'the id of an access key' }),
    secret_key: Secret('the secret of the access key'),
    path_style: Type.Boolean({
      default: false,
      title: 'true or false',
      description: 'ENDPOINT/BUCKET/KEY instead of BUCKET.ENDPOINT/KEY: most stores except Amazon require it',
    }),
    ca: Type.Optional(Path('certificates (PEM) to check the store with; default: those of the system')),
    keep_local: Type.String({
      pattern: `^always$|${DURATION_PATTERN}`,
      default: 'always',
      title: 'a duration such as 90s, 15m, 8h or 30d, or always',
      description:
        'how long a recording stays on disk after its copy in the store was verified; afterwards replay and verification fetch it from the store',
    }),
    segment_interval: Duration({
      default: '15s',
      description: 'how far the store may lag behind a running session; 1s to 1h',
    }),
    max_rate: Type.String({
      pattern: `^off$|${SIZE_PATTERN}`,
      default: '64MiB',
      title: 'a size such as 64KiB, 100MiB or 1GiB, or off',
      description: 'average bytes per second, uploads and downloads together',
    }),
  },
  {
    ...closed,
    title: 'an object store: { endpoint, region, bucket, prefix, access_key, secret_key, … }',
    description: 'an S3-compatible object store that gets a copy of each recording while its session runs',
  },
)

const Syslog = Type.Object(
  {
    host: Host({ description: 'the receiver' }),
    port: Type.Optional({ ...RemotePort, description: 'default: 514, with tls 6514' }),
    transport: Choice(['udp', 'tcp', 'tls'], {
      default: 'udp',
      description:
        'udp can lose messages; tcp and tls queue them while the receiver is down. A message has at most 8 KB',
    }),
    format: Choice(SYSLOG_FORMATS, {
      default: 'rfc5424',
      description:
        'form of what a message says, after the header of RFC 5424: structured data and a sentence (rfc5424), CEF, LEEF 2.0, or JSON with the names of the Elastic Common Schema (ecs)',
    }),
    ca: Type.Optional(
      Path('tls: certificates (PEM) to check the receiver with; default: those of the system'),
    ),
    certificate: Type.Optional(Path('tls: the certificate chain (PEM) that the receiver is shown; with key')),
    key: Type.Optional(Path('tls: the private key (PEM) of certificate')),
  },
  { ...closed, title: 'a syslog receiver: { host, port, transport, format, ca, certificate, key }' },
)

export const ConfigSchema = Type.Object(
  {
    data_dir: Type.String({
      minLength: 1,
      default: '../data',
      title: 'the path of a folder',
      description:
        'database, keys, certificates, recordings, queues; created 0700 at first start. Relative to this file; every other relative path is relative to data_dir',
    }),
    hostname: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$',
        title: 'a host name',
        description: "how clients name this broker; default: the system's host name",
      }),
    ),
    site: Type.Optional(
      Type.String({
        pattern: '^https://[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[1-9][0-9]{0,4})?$',
        title: 'an https origin',
        description:
          'where browsers reach this broker, in lower case; default: https, the hostname and the port of listen.https',
      }),
    ),
    listen: Listen,
    ssh: Type.Object(
      {
        banner: Type.Optional(Shown('text for every client before sign-in; at most 8 KiB')),
        motd: Type.Optional(
          Shown(
            'the message of the day, shown once after sign-in: in a terminal before a shell or the menu, over RDP before the list of targets or the desktop; at most 8 KiB',
          ),
        ),
        host_certificates: Type.Array(Path('a certificate, one line'), {
          default: [],
          maxItems: 16,
          title: 'a list of files',
          description:
            "OpenSSH certificates for the front's host keys (data_dir/ssh/*.pub), for clients that request one; at most one per key",
        }),
        user_ca: Type.Array(Path('public keys, one per line'), {
          default: [],
          maxItems: 16,
          title: 'a list of files',
          description:
            "public keys of authorities: a user may sign in with an OpenSSH certificate of theirs that lists the user's name as a principal",
        }),
        revoked_keys: Type.Optional(
          Path(
            "users' keys and certificates that are refused: an OpenSSH revocation list, or public keys, one per line",
          ),
        ),
        revoked_host_keys: Type.Optional(
          Path(
            "targets' host keys and certificates that are refused: an OpenSSH revocation list, or public keys, one per line",
          ),
        ),
      },
      { ...closed, default: {}, description: 'texts, certificates and authorities of the SSH front' },
    ),
    proxy_protocol: Type.Object(
      {
        from: Balancers(
          'networks of load balancers: every connection from there, to any listener but metrics, has to begin with a PROXY header (version 1 or 2), whose client address is believed. From anywhere else no header is accepted',
        ),
      },
      { ...closed, default: {}, description: 'load balancers that pass TCP connections on' },
    ),
    trusted_proxies: Balancers(
      'networks of HTTP proxies in front of the API: of requests from there X-Forwarded-For names the client. No other header is read, and none from anywhere else',
    ),
    dns: Type.Object(
      {
        servers: Type.Array(
          Type.Object(
            {
              host: Type.String({
                minLength: 2,
                maxLength: 64,
                title: 'an address',
                description: 'not a name',
              }),
              port: { ...RemotePort, default: 53, description: 'UDP and TCP port' },
            },
            { ...closed, title: 'a resolver: { host, port }' },
          ),
          {
            default: [],
            maxItems: 4,
            title: 'a list of resolvers',
            description:
              'resolvers for SSHFP records (host_key_policy dns), in this order. They must validate DNSSEC, and their result is trusted: reach them on loopback, or over a protected path',
          },
        ),
      },
      { ...closed, default: {}, description: 'the DNS, for the host keys of targets' },
    ),
    database: Type.Object(
      {
        url: Type.String({
          pattern: '^(sqlite:.|postgres(ql)?://.)',
          default: 'sqlite:sallyport.db',
          title: 'sqlite:FILE or postgres://USER:PASSWORD@HOST:PORT/NAME',
          secret: true,
          description:
            'the database: a file, or a PostgreSQL server, whose certificate must be for HOST (by an authority of the file sslrootcert, if given) unless sslmode is disable. Of several HOST:PORT with commas the one that takes writes is used',
        }),
        password: Type.Optional(Secret("the password of the server's user, in place of one in the URL")),
        grace: Duration({
          default: '60s',
          description:
            'how long running sessions go on while a database on another machine cannot be used; 0s: they end at once',
        }),
      },
      { ...closed, default: {} },
    ),
    master_key: Type.Union(
      [
        Type.Object({ file: Path('created 0600 at first start') }, closed),
        Type.Object({ env: Type.String({ minLength: 1, title: 'the name of a variable' }) }, closed),
      ],
      {
        default: { file: 'master.key' },
        title: '{ file: PATH } or { env: NAME }',
        secret: true,
        description: 'the key that seals all secrets; keep it on another volume than the data',
      },
    ),
    audit: Type.Object(
      {
        keep_days: Type.Integer({
          minimum: 0,
          maximum: 36_500,
          default: 0,
          title: 'a number of days',
          description:
            'older events are removed from the audit log, day by day, with a signed handover; events that verify recordings stay; 0: no limit',
        }),
        archive: Type.Optional(
          Path('a folder to which events are exported before they are removed, as by audit export'),
        ),
      },
      { ...closed, default: {} },
    ),
    recordings: Type.Object(
      {
        dir: Type.String({ minLength: 1, default: 'recordings', title: 'the path of a folder' }),
        recipients: Type.Array(
          Type.String({ pattern: '^age1[0-9a-z]{10,4000}$', title: 'an age recipient (age1…)' }),
          {
            default: [],
            maxItems: 32,
            title: 'a list of age recipients (age1…)',
            description: "auditors' age recipients, who can open recordings besides the broker",
          },
        ),
        broker_key: Type.Boolean({
          default: true,
          title: 'true or false',
          description:
            'whether the broker can open recordings itself; false: only recipients can, and the broker exports no recordings and searches no output',
        }),
        search: Choice(['full', 'commands', 'off'], {
          default: 'full',
          description:
            'the searchable content of sessions: commands, files and output (full); commands and files from the audit log (commands); nothing (off). The index holds clear text',
        }),
        min_free: Type.String({
          pattern: SIZE_PATTERN,
          default: '1GiB',
          title: 'a size such as 64KiB, 100MiB or 1GiB',
          description: 'free space on the volume below which running sessions end and no new ones begin',
        }),
        alarm_free: Type.Optional(
          Type.String({
            pattern: SIZE_PATTERN,
            title: 'a size such as 64KiB, 100MiB or 1GiB',
            description: 'free space on the volume below which an event is logged; default: twice min_free',
          }),
        ),
        keep_days: Type.Integer({
          minimum: 0,
          maximum: 36_500,
          default: 0,
          title: 'a number of days',
          description:
            'recordings of sessions that began longer ago are deleted, except those on legal hold; 0: no limit',
        }),
        hold_release: Choice(['one', 'two'], {
          default: 'one',
          description:
            "how many people end a legal hold: one with the right, or two, the second of whom confirms the first one's request within a day",
        }),
        max_size: Type.String({
          pattern: `^off$|${SIZE_PATTERN}`,
          default: 'off',
          title: 'a size such as 64KiB, 100MiB or 1GiB, or "off"',
          description:
            'size of all recordings above which the oldest are deleted, except those on legal hold; "off": no limit',
        }),
        object_store: Type.Optional(ObjectStore),
      },
      { ...closed, default: {} },
    ),
    workers: Type.Union([Type.Literal('auto'), Type.Integer({ minimum: 0, maximum: 64 })], {
      default: 'auto',
      title: 'auto, or a number from 0 to 64',
      description:
        'session workers: processes without database and keys that serve the clients. auto: one per core; 0: sessions run in the broker itself, without a boundary',
    }),
    run_as: Type.Optional(
      Type.String({
        pattern: '^[a-z_][a-z0-9_-]{0,31}$',
        title: 'the name of a user of this system',
        description:
          "the user of the session workers if the broker is started as root. Default: sallyport-session, or if there is no such user a user id that is nobody's",
      }),
    ),
    login_grace: Duration({
      default: '60s',
      description: 'how long a connection may take to authenticate; 1s to 1h',
    }),
    passwords: Type.Object(
      {
        min_length: Type.Integer({
          minimum: LEAST_MIN_LENGTH,
          maximum: MOST_MIN_LENGTH,
          default: MIN_LENGTH,
          title: `a number from ${LEAST_MIN_LENGTH} to ${MOST_MIN_LENGTH}`,
          description: "the fewest characters of a user's new password",
        }),
      },
      { ...closed, default: {}, description: 'rules for new passwords of users' },
    ),
    sign_in: Type.Object(
      {
        check_interval: Duration({
          default: '5m',
          description:
            'how often servers are asked about persons of domains that have sessions or sign-ins: those that are gone or disabled there lose them; 1s to 15m',
        }),
        certificate_lifetime: Type.String({
          pattern: `^off$|${DURATION_PATTERN}`,
          default: '8h',
          title: 'a duration such as 90s, 15m, 8h or 30d, or off',
          description:
            'how long a certificate (POST /session/certificate, sallyport login) signs in by SSH at most; 5m to 30d',
        }),
      },
      { ...closed, default: {}, description: 'how users and persons sign in' },
    ),
    ticket_lifetime: Duration({
      default: '5m',
      description: 'how long a one-time ticket (POST /targets/TARGET/ticket) is valid; 10s to 1h',
    }),
    shutdown_grace: Duration({
      default: '30s',
      description: 'how long running sessions may continue after SIGTERM; 0s to 1h',
    }),
    syslog: Type.Array(Syslog, {
      default: [],
      maxItems: 16,
      title: 'a list of syslog receivers',
      description: 'receivers of events, as RFC 5424 messages',
    }),
    snmp: Snmp,
    log: Type.Object(
      {
        level: Choice(['error', 'warn', 'info', 'debug', 'trace'], {
          default: 'info',
          description: "level of the broker's own messages; events are always written",
        }),
        file: Type.String({
          minLength: 1,
          default: '-',
          title: 'the path of a file, or "-" in quotes',
          description: 'one JSON object per line; "-": standard output',
        }),
      },
      { ...closed, default: {} },
    ),
  },
  closed,
)
/** The file's content once defaults are filled in. */
export type ConfigFile = Static<typeof ConfigSchema>
