/** Types of values that several parts of the configuration use. */
import Type from 'typebox'

export const closed = { additionalProperties: false }

export const Path = (description: string) =>
  Type.String({ minLength: 1, title: 'the path of a file', description })
export const Host = (options: { default?: string; description: string }) =>
  Type.String({ pattern: '^[A-Za-z0-9:._%-]{1,253}$', title: 'a host name or an address', ...options })
export const NetworkText = Type.String({
  minLength: 2,
  maxLength: 64,
  title: 'an address or a network such as 10.0.0.0/8',
})
export const MAX_NETWORKS = 64

export const RemotePort = Type.Integer({ minimum: 1, maximum: 65535, title: 'a port number from 1 to 65535' })
export const Choice = <const T extends readonly string[]>(
  values: readonly [...T],
  options: { default?: T[number]; description: string },
) => Type.Enum<[...T]>(values, { title: `one of ${values.join(', ')}`, ...options })

export const Secret = (description: string) =>
  Type.Union(
    [
      Type.String({ minLength: 1, maxLength: 1024 }),
      Type.Object({ file: Type.String({ minLength: 1 }) }, closed),
      Type.Object({ env: Type.String({ minLength: 1 }) }, closed),
    ],
    { title: 'text, { file: PATH } or { env: NAME }', secret: true, description },
  )
export type SecretSource = string | { file: string } | { env: string }

export const ListenPort = (port: number, transport = 'TCP') =>
  Type.Integer({
    minimum: 0,
    maximum: 65535,
    default: port,
    title: 'a port number from 0 to 65535',
    description: `${transport} port; 0: the system chooses one`,
  })
/** Networks on which clear text stays within this machine. */
const LOOPBACK_NETWORKS = ['127.0.0.0/8', '::1/128']

/** Defaults to the networks of this machine. */
export const Networks = (description: string) =>
  Type.Array(NetworkText, {
    default: LOOPBACK_NETWORKS,
    minItems: 1,
    maxItems: MAX_NETWORKS,
    title: 'a list of networks, one at least',
    description,
  })
