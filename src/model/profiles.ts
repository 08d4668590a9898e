/**
 * Profiles: what a person or a key may do over the API, as one level per feature. What somebody may open on a
 * target is not here: that comes from authorizations alone, whatever the profile.
 */
import type { Id, ProfileName } from './objects.ts'
import { FEATURES, type Feature, LEVELS, type Level, type ProfileRights } from './profile-rights.ts'

/** A profile as an object; those from the factory have their rights from the table below. */
export interface Profile {
  id: Id
  profileName: string
  description: string
  rights: ProfileRights
  isFactory: boolean
}

/** No right at all: of a profile that is gone, and of a feature that a profile does not name. */
export const NOTHING = Object.fromEntries(FEATURES.map((feature) => [feature, 'none'])) as ProfileRights

/** What everybody has who is signed in at all: their own targets, and the secrets that they are authorized to. */
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
    // legal hold: an auditor changes nothing else
    recordings: 'modify',
    checkout: 'none',
    approvals: 'view',
  },
  approver: { ...OWN, approvals: 'execute' },
  user: OWN,
  // of the keys of web gateways (spec.md 5.1), in decreasing scope
  sallyport_access_manager_session_audit: { ...OWN, ...AUDIT_OF_SESSIONS, approvals: 'execute' },
  sallyport_access_manager_session: { ...OWN, approvals: 'execute' },
  sallyport_access_manager_audit: { ...NOTHING, ...AUDIT_OF_SESSIONS },
}

/** The rights of a profile from the factory; undefined for any other name. */
export function factoryRights(name: string): ProfileRights | undefined {
  return Object.hasOwn(FACTORY_PROFILES, name) ? FACTORY_PROFILES[name as ProfileName] : undefined
}

/** Levels that mean something for a feature: up to the administrator's. */
export function levelsOf(feature: Feature): readonly Level[] {
  return LEVELS.slice(0, LEVELS.indexOf(FACTORY_PROFILES.product_administrator[feature]) + 1)
}

/** All features from those that are named; what is no level of the feature is none. */
export function rightsFrom(named: Readonly<Record<string, unknown>>): ProfileRights {
  const level = (feature: Feature): Level =>
    levelsOf(feature).find((one) => Object.hasOwn(named, feature) && one === named[feature]) ?? 'none'
  return Object.fromEntries(FEATURES.map((feature) => [feature, level(feature)])) as ProfileRights
}

/**
 * What rights come to beside what they are called: whoever has them gets at this by few steps, each of which is in the
 * audit. docs/api.md says the steps.
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

/** Each of the features at its level is enough. */
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

/** What the rights of a profile amount to. */
export function amountsOf(rights: ProfileRights): Amount[] {
  return AMOUNTS.filter((amount) =>
    AMOUNT_OF[amount].some(([feature, level]) => reaches(rights[feature], level)),
  )
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
