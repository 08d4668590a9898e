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

export const CHANGE_PLUGINS = {
  Unix: UNIX,
} as const satisfies Readonly<Record<string, ChangePluginKind>>
export type ChangePluginName = keyof typeof CHANGE_PLUGINS
