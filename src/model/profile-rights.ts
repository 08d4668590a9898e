/** The features of the API, and a profile's level for each. */

/** Each level includes those before it. */
export const LEVELS = ['none', 'view', 'modify', 'execute'] as const

export type Level = (typeof LEVELS)[number]

export const FEATURES = [
  'users',
  'user_groups',
  'devices',
  'accounts',
  'target_groups',
  'authorizations',
  'api_keys',
  'profiles',
  'policies',
  'host_keys',
  'sessions',
  'recordings',
  'targets',
  'checkout',
  'approvals',
] as const

export type Feature = (typeof FEATURES)[number]

export type ProfileRights = Readonly<Record<Feature, Level>>
