/**
 * The kinds of targets whose secrets can be changed: what the broker has to know about each plugin without its code, which
 * runs in another process (proxies/rotation/plugins.ts has it under the same names).
 */
import type { CredentialType } from './objects.ts'
import type { Protocol } from './rights.ts'

/** One parameter of a domain's `password_change_plugin_parameters`. */
export interface ChangeParameter {
  type: 'text' | 'integer' | 'flag'
  description: string
  isRequired?: true
  /** The only values of a text. */
  choices?: readonly string[]
  /** Bound of a text in characters; default 1024. */
  maxLength?: number
  /** A text that has another form is refused. */
  pattern?: RegExp
}

export interface ChangePluginKind {
  /** Secrets that it changes. */
  credentials: readonly CredentialType[]
  /** Services of a device through which it reaches a local account, the first that the device has. */
  protocols: readonly Protocol[]
  /** Port if neither a service nor the parameter `port` names one. */
  port: number
  /** Characters that no password may hold for such a target: the generator leaves them out. */
  forbidden: string
  /** Longest password that such a target can have, in characters. */
  maxLength: number
  parameters: Readonly<Record<string, ChangeParameter>>
}

/** Parameters of every plugin; a global domain has no device, and needs `host`. */
export const COMMON_PARAMETERS = {
  host: {
    type: 'text',
    maxLength: 255,
    description: "the target's address; for a local domain its device's",
  },
  concurrency: {
    type: 'integer',
    description: 'accounts of the domain whose secrets are changed at a time, 1 unless given',
  },
  port: { type: 'integer', description: "the target's port, if not a service's" },
} as const satisfies Record<string, ChangeParameter>

/** PEM of authorities, for plugins with TLS: becomes `trust.certificates`. */
export const CA_PARAMETER = {
  type: 'text',
  maxLength: 65_536,
  description: 'certificates of the authorities that vouch for the target, PEM',
} as const satisfies ChangeParameter

const UNIX: ChangePluginKind = {
  credentials: ['password', 'ssh_key'],
  protocols: ['SSH'],
  port: 22,
  forbidden: ':',
  maxLength: 127,
  parameters: {
    ...COMMON_PARAMETERS,
    host_keys: {
      type: 'text',
      maxLength: 16_384,
      description: 'host keys of the target, as lines of known_hosts; a service has its own',
    },
  },
}

/** Parameters of plugins with TLS. */
const TLS_PARAMETERS = {
  ca: CA_PARAMETER,
  tls_name: {
    type: 'text',
    maxLength: 255,
    description: "the name in the target's certificate, if not its host",
  },
} as const satisfies Record<string, ChangeParameter>

const INSECURE_PARAMETER = {
  type: 'flag',
  description: 'true: no TLS; a listener on the network reads or learns the secrets',
} as const satisfies ChangeParameter

const LDAP: ChangePluginKind = {
  credentials: ['password'],
  protocols: [],
  port: 636,
  forbidden: '',
  maxLength: 256,
  parameters: {
    ...COMMON_PARAMETERS,
    ...TLS_PARAMETERS,
    start_tls: { type: 'flag', description: 'true: TLS begins by StartTLS, as on port 389' },
    insecure: INSECURE_PARAMETER,
    user_dn: { type: 'text', description: 'the name of an entry, with `{login}` for the login' },
    search_base: { type: 'text', description: 'where entries are looked for, if `user_dn` is absent' },
    search_filter: {
      type: 'text',
      description: 'the filter that finds one, with `{login}`; default `(uid={login})`',
    },
    modify_user_password: {
      type: 'flag',
      description: 'true: `userPassword` is replaced at servers without the operation of RFC 3062',
    },
  },
}

const ACTIVE_DIRECTORY: ChangePluginKind = {
  credentials: ['password'],
  protocols: [],
  port: 636,
  forbidden: '',
  maxLength: 127,
  parameters: {
    ...COMMON_PARAMETERS,
    ...TLS_PARAMETERS,
    domain: { type: 'text', maxLength: 255, description: "the domain's DNS name, for logins without one" },
    search_base: { type: 'text', description: "where accounts are looked for; default the domain's root" },
  },
}

const MYSQL: ChangePluginKind = {
  credentials: ['password'],
  protocols: [],
  port: 3306,
  forbidden: '\\',
  maxLength: 256,
  parameters: {
    ...COMMON_PARAMETERS,
    ...TLS_PARAMETERS,
    insecure: INSECURE_PARAMETER,
    account_hosts: {
      type: 'text',
      description: 'the host parts whose users an administrator changes, with commas; default `%`',
    },
  },
}

const POSTGRESQL: ChangePluginKind = {
  credentials: ['password'],
  protocols: [],
  port: 5432,
  forbidden: '',
  maxLength: 256,
  parameters: {
    ...COMMON_PARAMETERS,
    ...TLS_PARAMETERS,
    insecure: INSECURE_PARAMETER,
    database: { type: 'text', maxLength: 63, description: 'the database to sign in to; default `postgres`' },
  },
}

const CISCO: ChangePluginKind = {
  credentials: ['password', 'enable'],
  protocols: ['SSH', 'TELNET'],
  port: 22,
  // Space and `?` mean something at any place of a line, the others at some.
  forbidden: ' ?!"#\';\\|',
  maxLength: 64,
  parameters: {
    ...COMMON_PARAMETERS,
    host_keys: UNIX.parameters['host_keys']!,
    transport: {
      type: 'text',
      choices: ['SSH', 'TELNET'],
      description: 'how the target is reached without a service; Telnet is clear text; default `SSH`',
    },
    password_command: {
      type: 'text',
      choices: ['username secret', 'username password', 'password'],
      description: 'the command that sets a password; default `username secret`',
    },
    enable_command: {
      type: 'text',
      choices: ['enable secret', 'enable password'],
      description: 'the command that sets the secret for `enable`; default `enable secret`',
    },
    skip_save: { type: 'flag', description: 'true: no `write memory` after a change' },
  },
}

export const CHANGE_PLUGINS = {
  Unix: UNIX,
  LDAP,
  ActiveDirectory: ACTIVE_DIRECTORY,
  MySQL: MYSQL,
  PostgreSQL: POSTGRESQL,
  Cisco: CISCO,
} as const satisfies Readonly<Record<string, ChangePluginKind>>
export type ChangePluginName = keyof typeof CHANGE_PLUGINS
