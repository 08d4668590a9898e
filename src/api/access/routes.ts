/**
 * The permission of every route, its feature and level: one check per route, none by path prefix. The
 * guard, the reference and the test of every route with every profile use this table; a route that is missing
 * here cannot be registered.
 */
import type { Feature, Level } from '../../model/profile-rights.ts'
import { CSV_FEATURES } from './table-names.ts'

export type Need =
  /** No sign-in: shows only content of the published reference. */
  | 'public'
  /** Any signed-in caller. */
  | 'signed_in'
  /** A SCIM token, which is no sign-in: it reaches the persons of its domain, and no other route. */
  | 'scim'
  | { feature: Feature; level: Level }

const needs = (feature: Feature, level: Level): Need => ({ feature, level })

/** Returns the five routes of a collection at `path`; items are below it. */
function collection(path: string, feature: Feature): Record<string, Need> {
  return {
    [`GET ${path}`]: needs(feature, 'view'),
    [`POST ${path}`]: needs(feature, 'modify'),
    [`GET ${path}/:ref`]: needs(feature, 'view'),
    [`PUT ${path}/:ref`]: needs(feature, 'modify'),
    [`DELETE ${path}/:ref`]: needs(feature, 'modify'),
  }
}

/**
 * Returns the routes of the tables: an export needs the right to view the objects, an import the right to
 * change them.
 */
function tables(): Record<string, Need> {
  return Object.fromEntries(
    Object.entries(CSV_FEATURES).flatMap(([name, feature]) => [
      [`GET /export/${name}`, needs(feature, 'view')],
      [`POST /import/${name}`, needs(feature, 'modify')],
    ]),
  )
}

/** `METHOD /path`, the path without `/api` and the version. */
export const ROUTES: Readonly<Record<string, Need>> = {
  'GET /version': 'public',
  'GET /openapi.json': 'public',
  'GET /doc/Usage.html': 'public',
  'POST /session': 'public',
  'GET /session': 'signed_in',
  'DELETE /session': 'signed_in',
  /** One's own. */
  'GET /signins': 'signed_in',
  'POST /signins/end': 'signed_in',
  'DELETE /signins/:ref': 'signed_in',
  /** For oneself alone. */
  'POST /session/certificate': 'signed_in',
  ...collection('/users', 'users'),
  /** One's own, or with `users: view`: the handler checks it. */
  'GET /users/:ref/totp': 'signed_in',
  /** For oneself alone. */
  'POST /users/:ref/totp': 'signed_in',
  'POST /users/:ref/totp/confirm': 'signed_in',
  'POST /users/:ref/totp/recoverycodes': 'signed_in',
  'DELETE /users/:ref/totp': needs('users', 'modify'),
  'DELETE /users/:ref/totp/hold': needs('users', 'modify'),
  /** One's own, or with `users: view`: the handler checks it. */
  'GET /users/:ref/securitykeys': 'signed_in',
  'DELETE /users/:ref/securitykeys/:key': needs('users', 'modify'),
  /** One's own, or with `users: view` and `users: modify`: the handlers check it. */
  'GET /users/:ref/certificates': 'signed_in',
  'DELETE /users/:ref/certificates/:certificate': 'signed_in',
  ...collection('/usergroups', 'user_groups'),
  ...collection('/devices', 'devices'),
  ...collection('/devices/:device/services', 'devices'),
  ...collection('/devices/:device/localdomains', 'devices'),
  ...collection('/devices/:device/localdomains/:domain/accounts', 'accounts'),
  ...collection('/devices/:device/accounts', 'accounts'),
  ...collection('/domains', 'devices'),
  ...collection('/domains/:domain/accounts', 'accounts'),
  ...collection('/accounts', 'accounts'),
  ...collection('/targetgroups', 'target_groups'),
  ...collection('/authorizations', 'authorizations'),
  ...collection('/apikeys', 'api_keys'),
  ...collection('/profiles', 'profiles'),
  ...collection('/checkoutpolicies', 'policies'),
  ...collection('/connectionpolicies', 'policies'),
  ...collection('/passwordchangepolicies', 'policies'),
  ...collection('/timeframes', 'policies'),
  // These decide which persons sign in, and with which profile.
  ...collection('/externalauths', 'profiles'),
  // A trial may prove a password: so it needs the right to set the server.
  'POST /externalauths/:ref/test': needs('profiles', 'modify'),
  // Events leave the bastion by these.
  ...collection('/notifications', 'profiles'),
  'POST /notifications/:ref/test': needs('profiles', 'modify'),
  ...collection('/authdomains', 'profiles'),
  'POST /authdomains/:ref/test': needs('profiles', 'modify'),
  ...collection('/authdomains/:domain/mappings', 'profiles'),
  'GET /authdomains/:domain/persons': needs('users', 'view'),
  'GET /authdomains/:domain/persons/:ref': needs('users', 'view'),
  'DELETE /authdomains/:domain/persons/:ref': needs('users', 'modify'),
  ...collection('/authdomains/:domain/scimtokens', 'profiles'),
  'GET /scim/v2/Users': 'scim',
  'POST /scim/v2/Users': 'scim',
  'POST /scim/v2/Users/.search': 'scim',
  'GET /scim/v2/Users/:ref': 'scim',
  'PUT /scim/v2/Users/:ref': 'scim',
  'PATCH /scim/v2/Users/:ref': 'scim',
  'DELETE /scim/v2/Users/:ref': 'scim',
  'GET /scim/v2/Groups': 'scim',
  'POST /scim/v2/Groups': 'scim',
  'POST /scim/v2/Groups/.search': 'scim',
  'GET /scim/v2/Groups/:ref': 'scim',
  'PUT /scim/v2/Groups/:ref': 'scim',
  'PATCH /scim/v2/Groups/:ref': 'scim',
  'DELETE /scim/v2/Groups/:ref': 'scim',
  'POST /scim/v2/.search': 'scim',
  'POST /scim/v2/Bulk': 'scim',
  'GET /scim/v2/ServiceProviderConfig': 'scim',
  'GET /scim/v2/ResourceTypes': 'scim',
  'GET /scim/v2/ResourceTypes/:ref': 'scim',
  'GET /scim/v2/Schemas': 'scim',
  'GET /scim/v2/Schemas/:ref': 'scim',
  'GET /hostkeys': needs('host_keys', 'view'),
  'GET /hostkeys/:ref': needs('host_keys', 'view'),
  'PUT /hostkeys/:ref': needs('host_keys', 'modify'),
  'DELETE /hostkeys/:ref': needs('host_keys', 'modify'),
  ...tables(),
  'POST /accounts/:ref/change': needs('accounts', 'modify'),
  'GET /accounts/:ref/history': needs('accounts', 'view'),
  'GET /domains/:ref/history': needs('accounts', 'view'),
  'POST /domains/:ref/change': needs('accounts', 'modify'),
  'GET /dashboard': needs('accounts', 'view'),
  'POST /accounts/:ref/checkout': needs('checkout', 'execute'),
  'POST /accounts/:ref/checkin': needs('checkout', 'execute'),
  'POST /accounts/:ref/extend': needs('checkout', 'execute'),
  /** One's own with `checkout: execute`, everybody's with `sessions: view`: the handler checks it. */
  'GET /checkouts': 'signed_in',
  'GET /checkouts/:ref': 'signed_in',
  /** Ends another user's access, as ending a session does. */
  'POST /checkouts/:ref/checkin': needs('sessions', 'execute'),
  'GET /targets': needs('targets', 'view'),
  /** Opens only targets that the user may open; the ticket is a secret, so this counts as a checkout. */
  'POST /targets/:ref/ticket': needs('checkout', 'execute'),
  /** Another user's rights need `authorizations: view` too: the handler checks it. */
  'GET /sessionrights': needs('targets', 'view'),
  'GET /approvals': needs('approvals', 'view'),
  'GET /approvals/:ref': needs('approvals', 'view'),
  'POST /approvals': needs('approvals', 'modify'),
  'POST /approvals/:ref/accept': needs('approvals', 'execute'),
  'POST /approvals/:ref/reject': needs('approvals', 'execute'),
  'POST /approvals/:ref/cancel': needs('approvals', 'modify'),
  /** A search by command, file or output needs `recordings: view` too: the handler checks it. */
  'GET /sessions': needs('sessions', 'view'),
  'GET /sessions/:ref': needs('sessions', 'view'),
  'GET /sessions/:ref/events': needs('sessions', 'view'),
  'GET /sessions/:ref/matches': needs('recordings', 'view'),
  /** Events of sessions; those about other objects need their feature's `view`: the handler checks it. */
  'GET /events': needs('sessions', 'view'),
  /** Shows all events, so it needs `view` of all features that they are about: the handler checks it. */
  'GET /events/proof': needs('recordings', 'view'),
  'POST /sessions/:ref/kill': needs('sessions', 'execute'),
  'POST /sessions/:ref/suspend': needs('sessions', 'execute'),
  'POST /sessions/:ref/resume': needs('sessions', 'execute'),
  /** For the caller's own session, or with `sessions: execute`: the handler checks it. */
  'GET /sessions/:ref/invitations': 'signed_in',
  'POST /sessions/:ref/invitations': 'signed_in',
  'PUT /sessions/:ref/invitations/:invitation': 'signed_in',
  'DELETE /sessions/:ref/invitations/:invitation': 'signed_in',
  /** Shows what the recording will contain. Ending the session from there also needs the right to kill. */
  'GET /sessions/:ref/live': needs('recordings', 'view'),
  'POST /sessions/:ref/hold': needs('recordings', 'modify'),
  'POST /sessions/:ref/release': needs('recordings', 'modify'),
  'GET /sessions/:ref/recording': needs('recordings', 'view'),
  'DELETE /sessions/:ref/recording': needs('recordings', 'execute'),
  'GET /sessions/:ref/recording.cast': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.cast3': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.ttyrec': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.txt': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.json': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.html': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.png': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.mp4': needs('recordings', 'view'),
  'GET /sessions/:ref/recording.webm': needs('recordings', 'view'),
}

export type PageNeed =
  /** No sign-in. */
  | 'public'
  /** No sign-in, and other sites may send a form: providers of identities do. The page has to judge what comes. */
  | 'foreign'
  /** A sign-in by cookie; without one, the sign-in page is shown. */
  | 'signed_in'

/** `METHOD /path` of each page, which is beside the API. */
export const PAGES: Readonly<Record<string, PageNeed>> = {
  'GET /': 'public',
  'GET /healthz': 'public',
  'GET /readyz': 'public',
  'GET /pages/style.css': 'public',
  'GET /pages/icon.svg': 'public',
  'GET /pages/key.js': 'public',
  'GET /signin': 'public',
  'POST /signin': 'public',
  'GET /signin/negotiate': 'public',
  'GET /signin/oidc/:name': 'public',
  'GET /signin/oidc/:name/callback': 'public',
  'POST /signin/oidc/:name/backchannel': 'foreign',
  'GET /signin/oidc/:name/frontchannel': 'foreign',
  'GET /signin/saml/:name': 'public',
  'GET /signin/saml/:name/metadata': 'public',
  'POST /signin/saml/:name/acs': 'foreign',
  'GET /signin/saml/:name/slo': 'foreign',
  'POST /signin/saml/:name/slo': 'foreign',
  'POST /signout': 'public',
  'GET /account': 'signed_in',
  'POST /account/signins/end': 'signed_in',
  'POST /account/signins/end-all': 'signed_in',
  'POST /account/keys': 'signed_in',
  'POST /account/keys/add': 'signed_in',
  'POST /account/keys/remove': 'signed_in',
  /** For the person that the code waits for: the handlers check it. */
  'GET /s': 'signed_in',
  'GET /s/:code': 'signed_in',
  'POST /s/:code': 'signed_in',
}

/** Converts `get`, `/devices/{device}` of the OpenAPI document to `GET /devices/:device` of this table. */
export function routeOf(method: string, path: string): string {
  return `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`
}
