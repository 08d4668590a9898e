/** Tables that can be imported and exported, each with the feature that it needs. */
import type { Feature } from '../../model/profile-rights.ts'

export const CSV_FEATURES = {
  profiles: 'profiles',
  checkoutpolicies: 'policies',
  connectionpolicies: 'policies',
  passwordchangepolicies: 'policies',
  timeframes: 'policies',
  externalauths: 'profiles',
  authdomains: 'profiles',
  users: 'users',
  usergroups: 'user_groups',
  authdomainmappings: 'profiles',
  devices: 'devices',
  services: 'devices',
  domains: 'devices',
  accounts: 'accounts',
  targetgroups: 'target_groups',
  authorizations: 'authorizations',
  notifications: 'profiles',
} as const satisfies Record<string, Feature>

export type CsvName = keyof typeof CSV_FEATURES
export const CSV_NAMES = Object.keys(CSV_FEATURES) as CsvName[]
