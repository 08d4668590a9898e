/**
 * The schema of the configuration file: every key that works, its default and what it means. A key of a later
 * release is not in it, but is known by name, so that it is refused as "not available yet" and not as unknown.
 *
 * `title` is what an error says was expected; `description` documents the key in config/schema.json;
 * `secret` keeps what was written there out of error texts.
 */
import Type, { type Static, type TSchema } from 'typebox'
import { DURATION_PATTERN, SIZE_PATTERN } from './units.ts'

/** Bytes; fits in one message. */
export const MAX_BANNER = 8192

const closed = { additionalProperties: false }

const Path = (description: string) => Type.String({ minLength: 1, title: 'the path of a file', description })
const Host = (options: { default?: string; description: string }) =>
  Type.String({ pattern: '^[A-Za-z0-9:._%-]{1,253}$', title: 'a host name or an address', ...options })
const ListenPort = (port: number) =>
  Type.Integer({
    minimum: 0,
    maximum: 65535,
    default: port,
    title: 'a port number from 0 to 65535',
    description: 'TCP port; 0: the system chooses one',
  })
const RemotePort = Type.Integer({ minimum: 1, maximum: 65535, title: 'a port number from 1 to 65535' })
const Choice = <const T extends readonly string[]>(
  values: readonly [...T],
  options: { default?: T[number]; description: string },
) => Type.Enum<[...T]>(values, { title: `one of ${values.join(', ')}`, ...options })
const Duration = (options: { default: string; description: string }) =>
  Type.String({ pattern: DURATION_PATTERN, title: 'a duration such as 90s, 15m, 8h or 30d', ...options })

const Secret = (description: string) =>
  Type.Union(
    [
      Type.String({ minLength: 1, maxLength: 1024 }),
      Type.Object({ file: Type.String({ minLength: 1 }) }, closed),
      Type.Object({ env: Type.String({ minLength: 1 }) }, closed),
    ],
    { title: 'text, { file: PATH } or { env: NAME }', secret: true, description },
  )
export type SecretSource = string | { file: string } | { env: string }

const Off = Type.Literal('off')
const listener = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([Off, schema], { default: {}, title: 'a map with the keys of a listener, or off', description })
const AllAddresses = Host({ default: '::', description: 'address to bind to; "::": all, IPv4 too' })

const Syslog = Type.Object(
  {
    host: Host({ description: 'the receiver' }),
    port: Type.Optional({ ...RemotePort, description: 'default: 514, with tls 6514' }),
    transport: Choice(['udp', 'tcp', 'tls'], {
      default: 'udp',
      description:
        'udp can lose messages; tcp and tls queue them while the receiver is away. A message has at most 8 KB',
    }),
    format: Choice(['rfc5424'], { default: 'rfc5424', description: 'form of the message' }),
    ca: Type.Optional(
      Path('tls: certificates (PEM) to check the receiver with; default: those of the system'),
    ),
  },
  { ...closed, title: 'a syslog receiver: { host, port, transport, format, ca }' },
)

const Trap = Type.Object(
  {
    host: Host({ description: 'the manager' }),
    port: { ...RemotePort, default: 162, description: 'UDP port' },
    version: Type.Union([Type.Literal('2c'), Type.Literal(3)], {
      default: '2c',
      title: '2c or 3',
      description: 'of SNMP; version 3 always authenticates and encrypts, and needs inform: true',
    }),
    inform: Type.Boolean({
      default: false,
      title: 'true or false',
      description: 'ask the manager to acknowledge, and repeat when it does not',
    }),
    community: Type.Optional(Secret('version 2c: the community')),
    user: Type.Optional(
      Type.String({ pattern: '^[\\x21-\\x7e]{1,32}$', title: 'a user name', description: 'version 3' }),
    ),
    auth: Type.Optional(
      Choice(['sha', 'sha224', 'sha256', 'sha384', 'sha512'], {
        description: 'version 3: authentication protocol; default: sha256',
      }),
    ),
    auth_password: Type.Optional(Secret('version 3: at least 8 characters')),
    priv: Type.Optional(Choice(['aes'], { description: 'version 3: encryption protocol; default: aes' })),
    priv_password: Type.Optional(Secret('version 3: at least 8 characters')),
  },
  { ...closed, title: 'a receiver of notifications: { host, port, version, community, … }' },
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
    listen: Type.Object(
      {
        https: listener(
          Type.Object(
            {
              host: AllAddresses,
              port: ListenPort(443),
              certificate: Type.Optional(
                Path('certificate chain (PEM); default: a self-signed one in data_dir/tls'),
              ),
              key: Type.Optional(Path('private key (PEM) of the certificate')),
            },
            closed,
          ),
          'the REST API',
        ),
        ssh: listener(Type.Object({ host: AllAddresses, port: ListenPort(22) }, closed), 'SSH, SFTP, SCP'),
        metrics: listener(
          Type.Object(
            {
              host: Host({ default: '127.0.0.1', description: 'address to bind to' }),
              port: ListenPort(9464),
            },
            closed,
          ),
          'Prometheus metrics at /metrics, plain HTTP without a password: keep it on loopback',
        ),
      },
      { ...closed, default: {}, description: 'where to listen; "off" switches one off' },
    ),
    ssh: Type.Object(
      {
        banner: Type.Optional(
          Type.Union(
            [
              Type.String({ minLength: 1, maxLength: MAX_BANNER }),
              Type.Object({ file: Type.String({ minLength: 1 }) }, closed),
            ],
            {
              title: 'text or { file: PATH }',
              description: 'what every client is shown before it signs in; at most 8 KiB',
            },
          ),
        ),
        user_ca: Type.Array(Path('public keys, one a line'), {
          default: [],
          maxItems: 16,
          title: 'a list of files',
          description:
            "public keys of authorities: their OpenSSH certificates sign in the users whose names are among a certificate's principals",
        }),
        revoked_keys: Type.Optional(
          Path(
            'keys and certificates that sign in nobody: an OpenSSH revocation list, or public keys, one a line',
          ),
        ),
      },
      { ...closed, default: {}, description: 'sign-in at the SSH front' },
    ),
    database: Type.Object(
      {
        url: Type.String({
          pattern: '^sqlite:.',
          default: 'sqlite:sallyport.db',
          title: 'sqlite:FILE',
          secret: true,
          description: 'the database',
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
        description: 'the key that seals all secrets; keep it on another volume than the data',
      },
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
            description: "auditors' age keys that open recordings besides the broker's own",
          },
        ),
        min_free: Type.String({
          pattern: SIZE_PATTERN,
          default: '1GiB',
          title: 'a size such as 64KiB, 100MiB or 1GiB',
          description: 'free space on the volume below which sessions end and none begin',
        }),
      },
      { ...closed, default: {} },
    ),
    login_grace: Duration({
      default: '60s',
      description: 'how long a connection may take to authenticate; 1s to 1h',
    }),
    shutdown_grace: Duration({
      default: '30s',
      description: 'how long running sessions may go on after SIGTERM; 0s to 1h',
    }),
    syslog: Type.Array(Syslog, {
      default: [],
      maxItems: 16,
      title: 'a list of syslog receivers',
      description: 'where events go as RFC 5424 messages',
    }),
    snmp: Type.Object(
      {
        enterprise: Type.Integer({
          minimum: 1,
          maximum: 0xffffffff,
          default: 32473,
          title: 'an enterprise number',
          description: 'private enterprise number, also in syslog; the default is the documentation number',
        }),
        traps: Type.Array(Trap, {
          default: [],
          maxItems: 16,
          title: 'a list of receivers of notifications',
          description: 'where notifications go',
        }),
      },
      { ...closed, default: {} },
    ),
    log: Type.Object(
      {
        level: Choice(['error', 'warn', 'info', 'debug', 'trace'], {
          default: 'info',
          description: "of the broker's own messages; events are always written",
        }),
        file: Type.String({
          minLength: 1,
          default: '-',
          title: 'the path of a file, or "-" in quotes',
          description: 'one JSON object a line; "-": standard output',
        }),
      },
      { ...closed, default: {} },
    ),
  },
  closed,
)
/** The file's content once defaults are filled in. */
export type ConfigFile = Static<typeof ConfigSchema>

/** Keys of later releases, as full paths without list positions. */
export const LATER_KEYS: readonly string[] = [
  'listen.telnet',
  'listen.rlogin',
  'listen.telnets',
  'listen.vnc',
  'listen.rdp',
  'workers',
  'recordings.keep_days',
  'snmp.agent',
]

/** Values of later releases, by the key that they belong to. */
export const LATER_VALUES: Readonly<Record<string, RegExp>> = {
  'database.url': /^postgres(ql)?:/,
  'syslog.format': /^(cef|leef)$/,
}
