/**
 * Certificates for SSH keys of users that have signed in: `POST /session/certificate` makes one, by which ssh, scp and the
 * programs above them sign in for hours; `/users/USER/certificates` lists and withdraws them.
 */
import { randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import {
  fingerprintOf,
  MAX_LINE,
  type PublicKey,
  PublicKeyError,
  parseAuthorizedKey,
} from '../../identity/public-key.ts'
import type { User } from '../../model/objects.ts'
import { reaches } from '../../model/profiles.ts'
import type { UserCertificate } from '../../store/store.ts'
import { certificateLine, certify, NONCE_BYTES } from '../../vault/certificate.ts'
import { type ApiRequest, callerOf, userOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, addressOf, record } from '../access/events.ts'
import { meantUser } from '../access/meant-user.ts'
import { rightsOf } from '../access/profile-rights.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, timeText, titled } from '../schema/fields.ts'
import { refuseBeyondOwn } from './users.ts'

/** Certificates of one user that are valid at a time; a further one replaces the oldest. */
const MAX_CERTIFICATES = 16
const MIN_DURATION_S = 60
/** Seconds that clocks may differ by. */
const VALID_BEFORE_NOW_S = 60
/** The authorizations decide what of it a session may do. */
const EXTENSIONS = [
  'permit-X11-forwarding',
  'permit-agent-forwarding',
  'permit-port-forwarding',
  'permit-pty',
]
const OBJECT = 'user certificate'
const PATH = '/users/:ref/certificates'
const tags = ['Session']

const Request = titled(
  'CertificateRequest',
  exact({
    public_key: Type.String({
      minLength: 1,
      maxLength: MAX_LINE,
      description: 'the line of a .pub file; its private key signs in, and is not sent',
      examples: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE… alice@laptop'],
    }),
    duration: Type.Optional(
      Type.Integer({
        minimum: MIN_DURATION_S,
        description: 'seconds; sign_in.certificate_lifetime at most, which it is if left out',
      }),
    ),
  }),
)
const shownFields = {
  id: Type.String(),
  serial: Type.String({ description: 'number in the certificate and in events of its sign-ins' }),
  fingerprint: Type.String({ description: 'of the certified key', examples: ['SHA256:…'] }),
  begin: Type.String({ format: 'date-time' }),
  end: Type.String({ format: 'date-time' }),
}
const Made = titled(
  'Certificate',
  exact({
    ...shownFields,
    certificate: Type.String({
      description: 'content of the file KEY-cert.pub, beside the private key KEY',
      examples: ['ssh-ed25519-cert-v01@openssh.com AAAA… alice'],
    }),
  }),
)
const View = titled(
  'CertificateView',
  exact({
    ...shownFields,
    source_ip: Type.String({ description: 'address of the client that asked for it' }),
  }),
)

export function registerUserCertificates(app: Api, { deps }: Context): void {
  const { audit, clock, store, userAuthority } = deps

  app.post(
    '/session/certificate',
    {
      schema: {
        tags,
        summary: 'Make a certificate for an SSH key',
        description:
          'For the user that has signed in by POST /session, and no other way: all factors were proved there. ssh uses it beside the private key until it ends, or is withdrawn, or the password is replaced.',
        body: Request,
        response: { 201: Made, ...errorResponses(400, 401, 403, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const user = signedInUser(request)
      const limit = deps.certificateLifetime()
      if (limit === undefined) {
        const message = 'the configuration switches them off: sign_in.certificate_lifetime'
        throw new ApiError('forbidden', [{ message }])
      }
      const { public_key: line, duration = Math.floor(limit / 1000) } = request.body
      if (limit < duration * 1000)
        throw fieldError('invalid_field', 'duration', `expected ${Math.floor(limit / 1000)} seconds at most`)
      const key = keyOf(line)
      const begin = clock()
      const session = await providerSessionOf(request)
      const end = Math.min((Math.floor(begin / 1000) + duration) * 1000, session?.ends ?? Infinity)
      const row = {
        userId: user.id,
        serial: randomBytes(8).readBigUInt64BE(),
        secretRevision: user.secretRevision ?? 0,
        fingerprint: fingerprintOf(key.blob),
        address: addressOf(request),
        ...(session && { providerSession: session.id }),
        begin,
        end: Math.floor(end / 1000) * 1000,
      }
      await record(audit, request, 'object.create', { ...actor(callerOf(request)), ...objectOf(row, user) })
      const id = await store.userCertificates.add(row, MAX_CERTIFICATES)
      const terms = {
        key: { type: key.type, fields: key.blob.subarray(4 + key.type.length) },
        nonce: randomBytes(NONCE_BYTES),
        serial: row.serial,
        keyId: `sallyport user=${user.userName}`,
        principals: [user.userName],
        validAfter: Math.floor(begin / 1000) - VALID_BEFORE_NOW_S,
        validBefore: row.end / 1000,
        extensions: EXTENSIONS,
      }
      const certificate = certificateLine(terms, certify(userAuthority, terms))
      return await reply.code(201).send({ ...viewOf({ ...row, id }), certificate })
    },
  )

  app.get(
    PATH,
    {
      schema: {
        tags,
        summary: 'List the certificates of a user that are valid',
        description: "One's own, or any with `users: view`.",
        params: paramsSchema(PATH),
        response: { 200: Type.Array(View), ...errorResponses(400, 401, 403, 404) },
      },
    },
    async (request) => {
      const user = await meantUser(store, request, reaches(callerOf(request).rights.users, 'view'))
      const rows = await store.userCertificates.ofUser(user.id, clock())
      return rows.map((row) => ({ ...viewOf(row), source_ip: row.address }))
    },
  )

  app.delete(
    `${PATH}/:certificate`,
    {
      schema: {
        tags,
        summary: 'Withdraw a certificate',
        description:
          "One's own, or any with `users: modify`. Sessions and connections that rest on it end, as after any withdrawn right.",
        params: paramsSchema(`${PATH}/:certificate`),
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request)
      const user = await meantUser(store, request, reaches(caller.rights.users, 'modify'))
      if (user.id !== caller.user?.id) refuseBeyondOwn(request, await rightsOf(store, user.profile))
      const { certificate: id } = request.params as { certificate: string }
      const rows = await store.userCertificates.ofUser(user.id, clock())
      const row = rows.find((one) => one.id === id)
      if (!row) throw new ApiError('not_found')
      await record(audit, request, 'object.delete', { ...actor(caller), ...objectOf(row, user) })
      await store.userCertificates.remove(user.id, row.id)
      return reply.code(204).send(null)
    },
  )

  /** Returns the session at the provider on which the sign-in rests, and which a certificate does not outlive. */
  async function providerSessionOf(request: ApiRequest) {
    const proof = callerOf(request).basis?.proof
    const id = proof?.method === 'password' ? proof.providerSession : undefined
    return id === undefined ? undefined : await store.providerSessions.find(id)
  }
}

/** Returns the user that has signed in itself. @throws ApiError for keys and tokens, which prove no second factor */
function signedInUser(request: ApiRequest): User {
  const user = userOf(request)
  const { key, bearer } = callerOf(request)
  if (key || bearer !== undefined) {
    const message = 'sign in by POST /session: an API key or an access token gets no certificate'
    throw new ApiError('forbidden', [{ message }])
  }
  return user
}

/** @throws ApiError `invalid_field` */
function keyOf(line: string): PublicKey {
  try {
    return parseAuthorizedKey(line)
  } catch (error) {
    if (!(error instanceof PublicKeyError)) throw error
    throw fieldError('invalid_field', 'public_key', error.message)
  }
}

const viewOf = ({ id, serial, fingerprint, begin, end }: UserCertificate) => ({
  id,
  serial: String(serial),
  fingerprint,
  begin: timeText(begin),
  end: timeText(end),
})

const objectOf = ({ serial, fingerprint }: Omit<UserCertificate, 'id'>, user: User) => ({
  object_type: OBJECT,
  object: `${user.userName} (serial ${serial}, key ${fingerprint})`,
})
