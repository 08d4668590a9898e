/** The searchable fields of each collection, for the reference. */
import type { Fields } from '../../search/fields.ts'
import { ACCOUNT_FIELDS } from '../../store/accounts.ts'
import { API_KEY_FIELDS } from '../../store/api-keys.ts'
import { APPROVAL_FIELDS } from '../../store/approvals.ts'
import { AUDIT_FIELDS } from '../../store/audit-fields.ts'
import { AUTH_DOMAIN_FIELDS, AUTH_DOMAIN_MAPPING_FIELDS } from '../../store/auth-domains.ts'
import { AUTHORIZATION_FIELDS } from '../../store/authorizations.ts'
import { CHECKOUT_POLICY_FIELDS } from '../../store/checkout-policies.ts'
import { CHECKOUT_FIELDS } from '../../store/checkouts.ts'
import { CONNECTION_POLICY_FIELDS } from '../../store/connection-policies.ts'
import { DEVICE_FIELDS } from '../../store/devices.ts'
import { DOMAIN_FIELDS } from '../../store/domains.ts'
import { EXTERNAL_AUTH_FIELDS } from '../../store/external-auths.ts'
import { HOST_KEY_FIELDS } from '../../store/host-keys.ts'
import { NOTIFICATION_FIELDS } from '../../store/notifications.ts'
import { PASSWORD_CHANGE_POLICY_FIELDS } from '../../store/password-change-policies.ts'
import { PERSON_FIELDS } from '../../store/persons.ts'
import { PROFILE_FIELDS } from '../../store/profiles.ts'
import { SCIM_TOKEN_FIELDS } from '../../store/scim-tokens.ts'
import { DOMAIN_JOB_FIELDS, SECRET_JOB_FIELDS } from '../../store/secret-jobs.ts'
import { SERVICE_FIELDS } from '../../store/services.ts'
import { SESSION_FIELDS } from '../../store/sessions.ts'
import { TARGET_GROUP_FIELDS } from '../../store/target-groups.ts'
import { TIMEFRAME_FIELDS } from '../../store/timeframes.ts'
import { USER_GROUP_FIELDS } from '../../store/user-groups.ts'
import { USER_FIELDS } from '../../store/users.ts'
import { SESSION_RIGHT_FIELDS, TARGET_FIELDS } from '../resources/targets.ts'

/** By the collection's path. */
export const SEARCHABLE: Readonly<Record<string, Fields>> = {
  '/users': USER_FIELDS,
  '/usergroups': USER_GROUP_FIELDS,
  '/devices': DEVICE_FIELDS,
  '/devices/:device/services': SERVICE_FIELDS,
  '/devices/:device/localdomains': DOMAIN_FIELDS,
  '/domains': DOMAIN_FIELDS,
  '/accounts': ACCOUNT_FIELDS,
  '/devices/:device/accounts': ACCOUNT_FIELDS,
  '/devices/:device/localdomains/:domain/accounts': ACCOUNT_FIELDS,
  '/domains/:domain/accounts': ACCOUNT_FIELDS,
  '/targetgroups': TARGET_GROUP_FIELDS,
  '/authorizations': AUTHORIZATION_FIELDS,
  '/apikeys': API_KEY_FIELDS,
  '/profiles': PROFILE_FIELDS,
  '/checkoutpolicies': CHECKOUT_POLICY_FIELDS,
  '/passwordchangepolicies': PASSWORD_CHANGE_POLICY_FIELDS,
  '/accounts/:ref/history': SECRET_JOB_FIELDS,
  '/domains/:ref/history': DOMAIN_JOB_FIELDS,
  '/checkouts': CHECKOUT_FIELDS,
  '/connectionpolicies': CONNECTION_POLICY_FIELDS,
  '/timeframes': TIMEFRAME_FIELDS,
  '/externalauths': EXTERNAL_AUTH_FIELDS,
  '/authdomains': AUTH_DOMAIN_FIELDS,
  '/authdomains/:domain/mappings': AUTH_DOMAIN_MAPPING_FIELDS,
  '/authdomains/:domain/persons': PERSON_FIELDS,
  '/authdomains/:domain/scimtokens': SCIM_TOKEN_FIELDS,
  '/notifications': NOTIFICATION_FIELDS,
  '/hostkeys': HOST_KEY_FIELDS,
  '/targets': TARGET_FIELDS,
  '/sessionrights': SESSION_RIGHT_FIELDS,
  '/sessions': SESSION_FIELDS,
  '/events': AUDIT_FIELDS,
  '/approvals': APPROVAL_FIELDS,
}
