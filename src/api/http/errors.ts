/**
 * The one catalogue of the API's errors (invariant 8): a stable code, its HTTP status, and advice for the
 * client. docs/api.md lists the same table; a test compares the two.
 */

import type { Outcome } from '../../identity/sign-in.ts'

export const ERRORS = {
  malformed_body: {
    status: 400,
    description:
      'the body is not a JSON object; send one, without the keys __proto__ and constructor.prototype',
  },
  malformed_url: { status: 400, description: 'the path is not validly percent-encoded UTF-8' },
  malformed_request: { status: 400, description: 'this is not a valid HTTP/1.1 request' },
  invalid_field: {
    status: 400,
    description: 'a field has a wrong type or value, or a required one is missing; see details',
  },
  unknown_field: {
    status: 400,
    description: 'a field does not exist; see details and the reference at /api/doc/Usage.html',
  },
  invalid_search: {
    status: 400,
    description:
      'the expression in q cannot be read; see details and the reference at /api/doc/Usage.html#search',
  },
  weak_password: {
    status: 400,
    description: 'this password is easy to guess; see details, and choose another one',
  },
  unknown_reference: {
    status: 400,
    description: 'a field names an object that does not exist; create that one first',
  },
  invalid_csv: {
    status: 400,
    description: 'the table has errors; see details for their rows and columns. Nothing was changed',
  },
  not_available_yet: {
    status: 400,
    description:
      'this field or value is not enforced by this version, so it is refused instead of stored; leave it out',
  },
  invalid_credentials: {
    status: 401,
    description: 'the user name or the password is wrong, or the user may not sign in',
  },
  second_factor_required: {
    status: 401,
    description:
      'the sign-in needs one more round: answer the prompts of challenge with POST /session {"challenge": ID, "answers": […]}; if it was another request, send that again afterwards',
  },
  sign_in_unavailable: {
    status: 503,
    description:
      'the servers that judge this sign-in cannot be reached; nothing was counted against the user, try again in a few minutes',
  },
  authentication_required: {
    status: 401,
    description: 'sign in with POST /session, or send a valid X-Auth-Key or access token',
  },
  forbidden: { status: 403, description: 'the effective profile lacks the right to do this' },
  profile_exceeds_own: {
    status: 403,
    description: 'the profile in question has rights beyond those of the caller',
  },
  key_is_bound: {
    status: 403,
    description:
      'an access token, or an API key with limits (ip_source, expiration_date, users, user_groups), cannot create or change keys, and a key limited to addresses cannot allow a sign-in from others: use addresses within its own',
  },
  key_exceeds_own: {
    status: 403,
    description:
      'a key can act only for users whose password its creator could set: name users and user_groups whose profiles are within your own',
  },
  user_context_required: {
    status: 403,
    description: 'this acts as a user: sign in, or send X-Auth-User with X-Auth-Key',
  },
  cross_site: { status: 403, description: 'requests that a browser sends from another site are refused' },
  not_found: { status: 404, description: 'there is no such resource, or you have no right to see it' },
  duplicate: {
    status: 409,
    description: 'an object of that name, or the authorization of that pair, exists already',
  },
  factory_object: {
    status: 409,
    description: 'this object is built in and cannot be changed; see details, and create your own',
  },
  last_administrator: {
    status: 409,
    description:
      'no user with all rights would be left; create another product_administrator first, enabled, without expiry and secondary_auth',
  },
  changed_meanwhile: {
    status: 409,
    description: 'another request has changed this at the same time; read it again, then repeat',
  },
  checked_out: {
    status: 409,
    description:
      'the account is in use, and its policy allows one at a time; details say until when, try again then',
  },
  not_extendable: {
    status: 409,
    description:
      'the policy of the account allows no extension, or no more; see details, and check the secret out again',
  },
  not_changeable: {
    status: 409,
    description:
      'no secret of it is changed at its target: its domain needs enable_password_change and a plugin for the kind of secret',
  },
  secret_changing: {
    status: 409,
    description: 'the secret of the account is being changed; try again in a moment',
  },
  in_use: {
    status: 409,
    description: 'other objects refer to this one; see details, and change those first',
  },
  ambiguous_reference: {
    status: 409,
    description: 'several accounts have this name; use one of those in details',
  },
  approval_required: {
    status: 409,
    description:
      'approvers have to agree first: ask with POST /approvals, and repeat this when the request is accepted',
  },
  approval_not_needed: {
    status: 409,
    description: 'this opens without an approval: open it',
  },
  too_many_approvals: {
    status: 409,
    description: 'as many requests wait for an answer as may: cancel one, or wait',
  },
  not_pending: {
    status: 409,
    description: 'this request was answered or cancelled already, or its time is over',
  },
  answered_already: {
    status: 409,
    description: 'you have answered this request already: an answer counts once, and stays',
  },
  own_request: { status: 403, description: 'nobody answers the own request: ask another approver' },
  no_secret: {
    status: 409,
    description: 'no secret is stored for this account, so there is none to check out',
  },
  too_many_tickets: {
    status: 409,
    description: 'there are too many unused one-time tickets: use one, or let them expire',
  },
  not_recorded: {
    status: 409,
    description: 'this session is not recorded, as its authorization says, so it cannot be watched either',
  },
  not_shareable: {
    status: 409,
    description: 'only desktops (VNC) can be shared with guests, and only if the recording is not strict',
  },
  too_many_scim_tokens: {
    status: 409,
    description: 'the domain has two SCIM tokens, the old and the new one: remove one first',
  },
  too_many_notifications: {
    status: 409,
    description: 'there are 64 notifications, and no more may be: remove one first',
  },
  too_many_invitations: {
    status: 409,
    description: 'the session has too many invitations or guests: withdraw one first',
  },
  not_running: { status: 409, description: 'this session has ended already' },
  not_suspended: { status: 409, description: "this session's input is not suspended by an order" },
  runs_elsewhere: {
    status: 409,
    description:
      'this session runs on in the broker that this one has replaced: it can be ended and suspended, but neither watched nor shared',
  },
  person_required: {
    status: 403,
    description:
      'ending a legal hold needs two users here, each signed in with a password; an API key does not count',
  },
  on_hold: {
    status: 409,
    description: 'the session is on legal hold: its recording is kept until it is released',
  },
  still_recording: {
    status: 409,
    description: 'the session still runs: end it first, or wait for its end',
  },
  graphic_session: {
    status: 409,
    description: 'the session shows a desktop: use .png, .mp4, .webm, .json or .txt',
  },
  sealed_to_auditors: {
    status: 409,
    description:
      'only auditors can open this recording, with their own key: download it, or use sallyport recordings with --identity',
  },
  precondition_failed: {
    status: 412,
    description: 'the object is not what it was when its ETag was read; read it again, then repeat',
  },
  idempotency_key_reused: {
    status: 422,
    description: 'this Idempotency-Key was used with another body before; use a new one for each request',
  },
  request_timeout: { status: 408, description: 'the request did not arrive in time' },
  payload_too_large: { status: 413, description: 'the body is larger than 1 MiB, or the table than 64 MiB' },
  url_too_long: { status: 414, description: 'a part of the path is longer than any name can be' },
  unsupported_media_type: {
    status: 415,
    description: 'send the body as Content-Type: application/json, and a table as text/csv',
  },
  upgrade_required: {
    status: 426,
    description: 'this is a WebSocket: connect to it with wss:// and a client of that protocol',
  },
  headers_too_large: { status: 431, description: 'the header fields are larger than 16 KiB' },
  too_many_connections: {
    status: 429,
    description:
      'this user or key has too many connections, or the broker has: use fewer, one request after the other',
  },
  internal: { status: 500, description: 'the broker failed; its log says more' },
  ffmpeg_missing: {
    status: 501,
    description: 'videos are made by ffmpeg, which is not installed on the broker',
  },
  audit_unavailable: {
    status: 503,
    description: 'the audit log cannot be written, so nothing was done; try again later',
  },
  too_many_watchers: {
    status: 503,
    description: 'this session, or the broker, has too many watchers; try again when one has left',
  },
  object_store_unavailable: {
    status: 503,
    description:
      'the recording is in the object store only, and cannot be fetched from there now; try again later, and look at the log',
  },
  store_unavailable: {
    status: 503,
    description: 'the database does not answer, or takes no writes; try again in a moment',
  },
  busy: { status: 503, description: 'too many requests at once; try again in a moment' },
} as const satisfies Record<string, { status: number; description: string }>

export type ErrorCode = keyof typeof ERRORS

/** One finding: `field` is the path of the invalid field, `name/0/type`. */
export interface ErrorDetail {
  /** Row of a table, from 1, as spreadsheets count. */
  row?: number
  column?: number
  field?: string
  message: string
  /** Offset of the error in an expression, in characters from 0. */
  position?: number
  /** When it will be possible at the latest, RFC 3339. */
  until?: string
}

/** Body of every answer that is not a success. */
/** One round of prompts of a sign-in. */
export interface ErrorChallenge {
  id: string
  message: string
  /** For an authenticator, as a QR code. */
  uri?: string
  /** Page where the person goes on; there are no prompts. */
  link?: string
  prompts: { text: string; echo: boolean }[]
}

export interface ErrorBody {
  error: ErrorCode
  description: string
  details: ErrorDetail[]
  challenge?: ErrorChallenge
}

/** Thrown by handlers to answer with a code of the catalogue. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetail[]
  /** Set for `second_factor_required`. */
  challenge?: ErrorChallenge

  constructor(code: ErrorCode, details: ErrorDetail[] = []) {
    super(code)
    this.code = code
    this.details = details
  }

  get status(): number {
    return ERRORS[this.code].status
  }
}

/** Makes the error that asks for a further round of a sign-in. */
export function challengeError({
  challenge: id,
  message,
  uri,
  link,
  prompts,
}: Extract<Outcome, { result: 'challenge' }>): ApiError {
  const challenge: ErrorChallenge = {
    id,
    message,
    ...(uri !== undefined && { uri }),
    ...(link !== undefined && { link }),
    prompts: prompts.map(({ text, echo }) => ({ text, echo })),
  }
  return Object.assign(new ApiError('second_factor_required'), { challenge })
}

/** Makes an error about one field. */
export function fieldError(code: ErrorCode, field: string, message: string): ApiError {
  return new ApiError(code, [{ field, message }])
}

export function errorBody(code: ErrorCode, details: ErrorDetail[] = []): ErrorBody {
  return { error: code, description: ERRORS[code].description, details }
}
