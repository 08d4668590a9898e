/** The part of the schema for SNMP. */
import Type from 'typebox'
import { AGENT_AUTH, AGENT_PRIV } from './config.ts'
import { Choice, closed, Host, ListenPort, Networks, RemotePort, Secret } from './values.ts'

const UserName = Type.String({
  pattern: '^[\\x21-\\x7e]{1,32}$',
  title: 'a user name',
  description: 'version 3',
})

const Trap = Type.Object(
  {
    host: Host({ description: 'the manager' }),
    port: { ...RemotePort, default: 162, description: 'UDP port' },
    version: Type.Union([Type.Literal('2c'), Type.Literal(3)], {
      default: '2c',
      title: '2c or 3',
      description: 'SNMP version; 3 always authenticates and encrypts, and needs inform: true',
    }),
    inform: Type.Boolean({
      default: false,
      title: 'true or false',
      description: 'require an acknowledgement, and repeat the notification without one',
    }),
    community: Type.Optional(Secret('version 2c: the community')),
    user: Type.Optional(UserName),
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

const Agent = Type.Object(
  {
    host: Host({ default: '127.0.0.1', description: 'address to bind to; "::": all, IPv4 too' }),
    port: ListenPort(161, 'UDP'),
    allow: Networks('networks that managers may come from; others get no answer'),
    v2c: Type.Optional(
      Type.Object(
        { community: Secret('the word that every request has, in clear text; at most 255 bytes') },
        { ...closed, title: 'version 2c: { community }' },
      ),
    ),
    v3: Type.Optional(
      Type.Object(
        {
          user: UserName,
          auth: Choice(AGENT_AUTH, { default: 'sha256', description: 'authentication protocol' }),
          auth_password: Secret('at least 8 characters'),
          priv: Choice(AGENT_PRIV, {
            default: 'aes',
            description: 'encryption protocol: AES with 128 bits, or with 256, which needs sha256 or longer',
          }),
          priv_password: Secret('at least 8 characters'),
        },
        { ...closed, title: 'version 3: { user, auth, auth_password, priv, priv_password }' },
      ),
    ),
  },
  {
    ...closed,
    title: 'an agent: { host, port, allow, v2c, v3 }',
    description:
      'the agent that managers ask; absent: off. It has version 2c, 3 or both, and changes nothing',
  },
)

export const Snmp = Type.Object(
  {
    enterprise: Type.Integer({
      minimum: 1,
      maximum: 0xffffffff,
      default: 32473,
      title: 'an enterprise number',
      description: 'private enterprise number, also in syslog; the default is the documentation number',
    }),
    agent: Type.Optional(Agent),
    traps: Type.Array(Trap, {
      default: [],
      maxItems: 16,
      title: 'a list of receivers of notifications',
      description: 'receivers of notifications',
    }),
  },
  { ...closed, default: {} },
)
