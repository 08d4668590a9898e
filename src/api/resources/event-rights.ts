/**
 * Which events of the audit log a caller sees: those about objects whose feature the caller may view. `sessions: view` is
 * needed for any of them, and suffices for events of sessions, as at /sessions/ID/events.
 */
import { EVENTS } from '../../audit/events/catalogue.ts'
import type { Feature, ProfileRights } from '../../model/profile-rights.ts'
import { reaches } from '../../model/profiles.ts'
import type { Condition } from '../../search/bind.ts'
import { CSV_FEATURES } from '../access/table-names.ts'

/** By the first word of a code. */
const FEATURE_OF: Readonly<Record<string, Feature>> = {
  auth: 'users',
  factor: 'users',
  sign_in: 'profiles',
  session: 'sessions',
  channel: 'sessions',
  command: 'sessions',
  file: 'sessions',
  clipboard: 'sessions',
  watch: 'sessions',
  ticket: 'sessions',
  checkout: 'sessions',
  approval: 'sessions',
  hostkey: 'host_keys',
  secret: 'accounts',
  recording: 'recordings',
  audit: 'recordings',
  sink: 'policies',
  config: 'policies',
  service: 'policies',
  worker: 'policies',
  database: 'policies',
  backup: 'policies',
  store: 'policies',
}

/** Of `object.create` and the like, by `object_type`. Keys and tokens are ways to act with a profile's rights. */
const FEATURE_OF_TYPE: Readonly<Record<string, Feature>> = {
  ...CSV_FEATURES,
  user: 'users',
  person: 'users',
  'security key': 'users',
  certificate: 'users',
  usergroup: 'user_groups',
  device: 'devices',
  service: 'devices',
  domain: 'devices',
  localdomain: 'devices',
  account: 'accounts',
  targetgroup: 'target_groups',
  authorization: 'authorizations',
  apikey: 'profiles',
  scimtoken: 'profiles',
  profile: 'profiles',
  authdomain: 'profiles',
  authdomainmapping: 'profiles',
  externalauth: 'profiles',
  checkoutpolicy: 'policies',
  connectionpolicy: 'policies',
  passwordchangepolicy: 'policies',
  timeframe: 'policies',
  hostkey: 'host_keys',
}

const FEATURES: ReadonlySet<Feature> = new Set([
  ...Object.values(FEATURE_OF),
  ...Object.values(FEATURE_OF_TYPE),
])

/** Returns the feature of a code, or undefined if its object's type counts. */
export function featureOf(code: string): Feature | undefined {
  return FEATURE_OF[code.replace(/\..*/, '')]
}

/** Whether the caller sees every event, also those of types that are not known here. */
export function seesAll(rights: ProfileRights): boolean {
  return [...FEATURES].every((feature) => reaches(rights[feature], 'view'))
}

/** Returns the condition of the events that the caller sees, or undefined for all of them. */
export function visible(rights: ProfileRights): Condition | undefined {
  if (seesAll(rights)) return undefined
  const sees = (feature: Feature | undefined) => feature !== undefined && reaches(rights[feature], 'view')
  const all = Object.keys(EVENTS)
  const types = Object.keys(FEATURE_OF_TYPE).filter((type) => sees(FEATURE_OF_TYPE[type]))
  const among = (field: string, values: readonly string[]): Condition => ({
    type: 'test',
    field,
    kind: 'text',
    test: { type: 'among', values },
  })
  return {
    type: 'or',
    terms: [
      { type: 'test', field: 'session', kind: 'id', test: { type: 'like', parts: ['', ''] } },
      among(
        'event',
        all.filter((code) => sees(featureOf(code))),
      ),
      {
        type: 'and',
        terms: [
          among(
            'event',
            all.filter((code) => featureOf(code) === undefined),
          ),
          among('object_type', types),
        ],
      },
    ],
  }
}
