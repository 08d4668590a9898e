/**
 * Profiles: the rights of a user or a key in the API, as one level per feature. Rights on targets are not
 * here: they come from authorizations alone, whatever the profile.
 */
import type { FactorPolicy, Id, ProfileName } from './objects.ts'
import { FEATURES, type Feature, LEVELS, type Level, type ProfileRights } from './profile-rights.ts'

/** A profile as an object; the built-in ones have their rights from the table below. */
export interface Profile {
  id: Id
  profileName: string
  description: string
  rights: ProfileRights
  /** Of its users; absent: none. */
  secondFactor?: FactorPolicy
  /** Seconds for which a code counts for the client's address; absent: none. */
  secondFactorRemember?: number
  /** Whether an SSH key counts as both factors whose token has checked a PIN or a finger. */
  secondFactorKeys?: boolean
  isFactory: boolean
}

/** No rights: for a profile that no longer exists, and for features that a profile does not name. */
export const NOTHING = Object.fromEntries(FEATURES.map((feature) => [feature, 'none'])) as ProfileRights

/**
 * The rights of every signed-in user: their own targets, and the secrets that they are authorized to check
 * out.
 */
const OWN: ProfileRights = {
  ...NOTHING,
  targets: 'view',
  checkout: 'execute',
  approvals: 'modify',
}

const PROVISIONING = {
  users: 'modify',
  user_groups: 'modify',
  devices: 'modify',
  accounts: 'modify',
  target_groups: 'modify',
  authorizations: 'modify',
  profiles: 'view',
  policies: 'modify',
  host_keys: 'modify',
} as const satisfies Partial<ProfileRights>

const AUDIT_OF_SESSIONS = { sessions: 'view', recordings: 'view' } as const satisfies Partial<ProfileRights>

export const FACTORY_PROFILES: Readonly<Record<ProfileName, ProfileRights>> = {
  product_administrator: {
    ...OWN,
    ...PROVISIONING,
    api_keys: 'modify',
    profiles: 'modify',
    sessions: 'execute',
    recordings: 'execute',
    approvals: 'execute',
  },
  operator: { ...OWN, ...PROVISIONING, sessions: 'execute', approvals: 'execute' },
  auditor: {
    ...OWN,
    users: 'view',
    user_groups: 'view',
    devices: 'view',
    accounts: 'view',
    target_groups: 'view',
    authorizations: 'view',
    profiles: 'view',
    policies: 'view',
    host_keys: 'view',
    sessions: 'view',
    // legal hold: an auditor can modify nothing else
    recordings: 'modify',
    checkout: 'none',
    approvals: 'view',
  },
  approver: { ...OWN, approvals: 'execute' },
  user: OWN,
  // for the keys of web gateways, in decreasing scope
  sallyport_access_manager_session_audit: { ...OWN, ...AUDIT_OF_SESSIONS, approvals: 'execute' },
  sallyport_access_manager_session: { ...OWN, approvals: 'execute' },
  sallyport_access_manager_audit: { ...NOTHING, ...AUDIT_OF_SESSIONS },
}

/** Returns the rights of a built-in profile, or undefined for any other name. */
export function factoryRights(name: string): ProfileRights | undefined {
  return Object.hasOwn(FACTORY_PROFILES, name) ? FACTORY_PROFILES[name as ProfileName] : undefined
}

/** Returns the levels that a feature has: up to the administrator's. */
export function levelsOf(feature: Feature): readonly Level[] {
  return LEVELS.slice(0, LEVELS.indexOf(FACTORY_PROFILES.product_administrator[feature]) + 1)
}

/** Returns the rights of all features; a feature without a valid level gets none. */
export function rightsFrom(named: Readonly<Record<string, unknown>>): ProfileRights {
  const level = (feature: Feature): Level =>
    levelsOf(feature).find((one) => Object.hasOwn(named, feature) && one === named[feature]) ?? 'none'
  return Object.fromEntries(FEATURES.map((feature) => [feature, level(feature)])) as ProfileRights
}

/**
 * The power that rights give beyond their names: a holder reaches it in a few steps, each of which is
 * audited. docs/api.md lists the steps.
 */
export const AMOUNTS = [
  'any_target',
  'users_within_profile',
  'any_running_session',
  'rules_of_sessions',
  'all_recorded',
  'removal_of_recordings',
] as const
export type Amount = (typeof AMOUNTS)[number]

/** Each listed feature at its level is enough. */
const AMOUNT_OF: Readonly<Record<Amount, readonly (readonly [Feature, Level])[]>> = {
  any_target: [
    ['user_groups', 'modify'],
    ['target_groups', 'modify'],
    ['authorizations', 'modify'],
    ['devices', 'modify'],
  ],
  users_within_profile: [['users', 'modify']],
  any_running_session: [['sessions', 'execute']],
  rules_of_sessions: [
    ['policies', 'modify'],
    ['authorizations', 'modify'],
  ],
  all_recorded: [['recordings', 'view']],
  removal_of_recordings: [['recordings', 'execute']],
}

/** Returns the amounts that a profile's rights add up to. */
export function amountsOf(rights: ProfileRights): Amount[] {
  return AMOUNTS.filter((amount) =>
    AMOUNT_OF[amount].some(([feature, level]) => reaches(rights[feature], level)),
  )
}

/** Whether `level` is at least `needed`. */
export function reaches(level: Level, needed: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(needed)
}

/** Returns the rights that both have: per feature the lower level (None beats Modify). */
export function intersection(a: ProfileRights, b: ProfileRights): ProfileRights {
  const lower = (feature: Feature): Level => (reaches(a[feature], b[feature]) ? b[feature] : a[feature])
  return Object.fromEntries(FEATURES.map((feature) => [feature, lower(feature)])) as ProfileRights
}

/** Returns the rights that any of them has: per feature the highest level. */
export function union(all: readonly ProfileRights[]): ProfileRights {
  return all.reduce((a, b) => {
    const higher = (feature: Feature): Level => (reaches(a[feature], b[feature]) ? a[feature] : b[feature])
    return Object.fromEntries(FEATURES.map((feature) => [feature, higher(feature)])) as ProfileRights
  }, NOTHING)
}

/**
 * Whether `own` has every right of `other`. Users may not grant a profile that exceeds their own, nor gain
 * one by setting another user's password.
 */
export function covers(own: ProfileRights, other: ProfileRights): boolean {
  return FEATURES.every((feature) => reaches(own[feature], other[feature]))
}
