/**
 * Profiles: what a person or a key may do over the API, as one level per feature. What somebody may open on a
 * target is not here: that comes from authorizations alone, whatever the profile.
 */
import { PROFILES, type ProfileName } from './objects.ts'

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
  'host_keys',
  'sessions',
  'recordings',
  'targets',
  'checkout',
] as const
export type Feature = (typeof FEATURES)[number]

export type ProfileRights = Readonly<Record<Feature, Level>>

/** What everybody has who is signed in at all: their own targets, and the secrets that they are authorized to. */
const OWN: ProfileRights = {
  users: 'none',
  user_groups: 'none',
  devices: 'none',
  accounts: 'none',
  target_groups: 'none',
  authorizations: 'none',
  api_keys: 'none',
  host_keys: 'none',
  sessions: 'none',
  recordings: 'none',
  targets: 'view',
  checkout: 'execute',
}

const PROVISIONING = {
  users: 'modify',
  user_groups: 'modify',
  devices: 'modify',
  accounts: 'modify',
  target_groups: 'modify',
  authorizations: 'modify',
  host_keys: 'modify',
} as const satisfies Partial<ProfileRights>

export const FACTORY_PROFILES: Readonly<Record<ProfileName, ProfileRights>> = {
  product_administrator: {
    ...OWN,
    ...PROVISIONING,
    api_keys: 'modify',
    sessions: 'execute',
    recordings: 'view',
  },
  operator: { ...OWN, ...PROVISIONING, sessions: 'execute' },
  auditor: {
    ...OWN,
    users: 'view',
    user_groups: 'view',
    devices: 'view',
    accounts: 'view',
    target_groups: 'view',
    authorizations: 'view',
    host_keys: 'view',
    sessions: 'view',
    recordings: 'view',
    checkout: 'none',
  },
  /** What sets an approver apart is the right to answer requests, which comes with approvals. */
  approver: OWN,
  user: OWN,
}

export function profileNamed(name: string): ProfileName | undefined {
  return PROFILES.find((profile) => profile === name)
}

/** Whether `level` is at least what is needed. */
export function reaches(level: Level, needed: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(needed)
}

/** The rights that both have: per feature the lower level (spec.md 5.1: None beats Modify). */
export function intersection(a: ProfileRights, b: ProfileRights): ProfileRights {
  const lower = (feature: Feature): Level => (reaches(a[feature], b[feature]) ? b[feature] : a[feature])
  return Object.fromEntries(FEATURES.map((feature) => [feature, lower(feature)])) as ProfileRights
}

/**
 * Whether `own` has every right of `other`. Nobody may hand out, or take over by setting a password, a profile
 * that goes beyond their own.
 */
export function covers(own: ProfileRights, other: ProfileRights): boolean {
  return FEATURES.every((feature) => reaches(own[feature], other[feature]))
}
