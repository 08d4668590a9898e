/**
 * How the bastion signs in at a target: values of a connection policy's `authentication_methods`, tried in
 * the listed order.
 */
export const AUTHENTICATION_METHODS = [
  'PUBKEY_VAULT',
  'PASSWORD_VAULT',
  'PASSWORD_MAPPING',
  'PASSWORD_INTERACTIVE',
  'PUBKEY_AGENT_FORWARDING',
  'KERBEROS_FORWARDING',
] as const

/**
 * `PUBKEY_VAULT`: the certificate of the domain's authority, then the account's key. `PASSWORD_VAULT`: the
 * account's password. `PASSWORD_MAPPING`: the password that the user gave to the bastion, under the user's
 * own name. `PASSWORD_INTERACTIVE`: a password that the bastion prompts for. `PUBKEY_AGENT_FORWARDING`: the
 * keys of the agent that the user has forwarded to the bastion. `KERBEROS_FORWARDING`: the ticket of Kerberos that the
 * user's client has forwarded to the bastion.
 */
export type AuthenticationMethod = (typeof AUTHENTICATION_METHODS)[number]
