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
