/** The part of the schema for the listeners. */
import Type, { type TSchema } from 'typebox'
import { NLA_MODES } from '../model/rdp-ticket.ts'
import { VNC_OFFERED_TYPES } from '../model/vnc-options.ts'
import { closed, Host, ListenPort, Networks, Path } from './values.ts'

const Off = Type.Literal('off')
const listener = <T extends TSchema>(schema: T, description: string, standard: object | 'off' = {}) =>
  Type.Union([Off, schema], {
    default: standard,
    title: 'a map with the keys of a listener, or off',
    description,
  })
const AllAddresses = Host({ default: '::', description: 'address to bind to; "::": all, IPv4 too' })
const withTls = (port: number) =>
  Type.Object(
    {
      host: AllAddresses,
      port: ListenPort(port),
      certificate: Type.Optional(Path('certificate chain (PEM); default: a self-signed one in data_dir/tls')),
      key: Type.Optional(Path('private key (PEM) of the certificate')),
    },
    closed,
  )
const inClearText = (port: number) =>
  Type.Object(
    {
      host: AllAddresses,
      port: ListenPort(port),
      allow: Networks(
        'networks that clients may come from; others are rejected, since passwords and all data are readable on the way',
      ),
    },
    closed,
  )

export const Listen = Type.Object(
  {
    https: listener(withTls(443), 'the REST API'),
    ssh: listener(Type.Object({ host: AllAddresses, port: ListenPort(22) }, closed), 'SSH, SFTP, SCP'),
    telnet: listener(inClearText(23), 'Telnet in clear text'),
    rlogin: listener(inClearText(513), 'rlogin, which is always in clear text'),
    telnets: listener(withTls(992), 'Telnet inside TLS (1.2 or newer); default: off', 'off'),
    vnc: listener(
      Type.Object(
        {
          ...withTls(5900).properties,
          security_types: Type.Array(
            Type.Union(
              VNC_OFFERED_TYPES.map((type) => Type.Literal(type)),
              { title: `one of ${VNC_OFFERED_TYPES.join(', ')}` },
            ),
            {
              default: [...VNC_OFFERED_TYPES],
              minItems: 1,
              uniqueItems: true,
              title: 'a list of security types, one at least',
              description: 'security types offered to viewers, in this order',
            },
          ),
          allow_clear: Networks(
            "networks from which viewers may use a clear-text desktop (VNC password by ticket, Apple's sign-in), which is readable on the way",
          ),
        },
        closed,
      ),
      'VNC, inside TLS if the viewer supports it',
    ),
    rdp: listener(
      Type.Object(
        {
          ...withTls(3389).properties,
          nla: Type.Enum<['off', 'tickets', 'required']>([...NLA_MODES], {
            default: 'tickets',
            title: `one of ${NLA_MODES.join(', ')}`,
            description:
              'when clients sign in by CredSSP (NLA), which needs a one-time ticket: with a ticket or without another way (tickets), never (off), always (required)',
          }),
        },
        closed,
      ),
      'RDP, inside TLS (1.2 or newer)',
    ),
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
)
