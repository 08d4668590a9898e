/** Guests of a running session: their invitation, their rights, and their end. */
import { isIP } from 'node:net'
import { type Static, Type } from 'typebox'
import type { EventFields } from '../../audit/events/fields.ts'
import { GUEST_USER, type Invitation } from '../../gate/invitations.ts'
import type { Basis } from '../../identity/basis.ts'
import { guestNameError } from '../../model/names.ts'
import type { SessionRecord } from '../../model/objects.ts'
import { type ApiRequest, basisOf, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { needOf, rightFor, satisfies } from '../access/guard.ts'
import { refuseUnboundAddress } from '../access/ways-in.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { check, exact, oneOf, shown, timeText, titled } from '../schema/fields.ts'

/** Seconds that a guest may stay. */
const MAX_DURATION = 8 * 3600
const MAX_NAME = 64
const MODES = ['view', 'control'] as const
const DEFAULT_NAME = 'guest'

const modeField = oneOf(MODES, 'whether the guest only sees the desktop, or works on it, too')
const View = titled(
  'Invitation',
  exact({
    ...shown,
    name: Type.String(),
    mode: modeField,
    by: Type.String({ description: 'who has invited' }),
    expires: Type.String({ format: 'date-time', description: 'then the guest has to leave' }),
    is_in: Type.Boolean({ description: 'the guest is there' }),
    client_ip: Type.Union([Type.String(), Type.Null()], {
      description: "the guest's address, or the one that they have to come from",
    }),
  }),
)
const Wanted = titled(
  'InvitationRequest',
  exact({
    mode: modeField,
    duration: Type.Integer({
      minimum: 60,
      maximum: MAX_DURATION,
      description: 'seconds that the invitation is good for, and that the guest may stay',
      examples: [900],
    }),
    name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_NAME,
        description: `how the others see the guest; default: ${DEFAULT_NAME}`,
        examples: ['Bob of ACME'],
      }),
    ),
    client_ip: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "the address that the guest's viewer has to come from; default: any",
        examples: ['192.0.2.7'],
      }),
    ),
  }),
)
const Issued = titled(
  'InvitationTicket',
  exact({
    invitation: View,
    user: Type.String({ description: 'for viewers that ask for a user name' }),
    password: Type.String({ description: 'signs in once' }),
    expires: Type.String({ format: 'date-time' }),
  }),
)
const Change = titled('InvitationChange', exact({ mode: modeField }))
const KILL = '/sessions/:ref/kill'
const tags = ['Sessions']

export function registerInvitations(app: Api, { deps }: Context): void {
  const { store, sessionControl, audit } = deps
  const collection = paramsSchema('/:ref')
  const item = paramsSchema('/:ref/:invitation')

  const show = (base: string, invitation: Invitation): Static<typeof View> => ({
    id: invitation.id,
    url: `${base}/sessions/${invitation.session}/invitations/${invitation.id}`,
    name: invitation.name,
    mode: invitation.mode,
    by: invitation.by,
    expires: timeText(invitation.expires),
    is_in: invitation.guest !== undefined,
    client_ip: invitation.guest?.address ?? invitation.address ?? null,
  })

  /**
   * Returns the session for its own user and for callers that may end it; to all others it does not exist.
   */
  const sessionOf = async (request: ApiRequest): Promise<{ session: SessionRecord; basis: Basis }> => {
    const caller = callerOf(request)
    const session = await store.sessions.find((request.params as { ref: string }).ref.toUpperCase())
    // A key that acts in a user's name is not the user at the desktop.
    const user = caller.key ? undefined : caller.user
    const isOwn = user && session && sessionControl.ownerOf(session.id) === user.id
    if (!session || !(isOwn || satisfies(caller.rights, needOf('POST', KILL))))
      throw new ApiError('not_found')
    return { session, basis: basisOf(request, isOwn ? undefined : rightFor('POST', KILL)) }
  }
  const invitationOf = async (request: ApiRequest) => {
    const { session, basis } = await sessionOf(request)
    const id = (request.params as { invitation: string }).invitation.toUpperCase()
    const invitation = sessionControl.invitations(session.id).find((one) => one.id === id)
    if (!invitation) throw new ApiError('not_found')
    return { session, invitation, basis }
  }
  const fieldsOf = (request: ApiRequest, session: SessionRecord, guest: string): EventFields => ({
    ...actor(callerOf(request)),
    session: session.id,
    protocol: session.protocol,
    account: session.account,
    domain: session.domain,
    device: session.device,
    service: session.service,
    target_host: session.targetHost,
    object_type: 'guest',
    object: guest,
  })

  app.get(
    '/sessions/:ref/invitations',
    {
      schema: {
        tags,
        summary: 'List: Invitations',
        description: 'Invitations that wait for their guest, and those whose guest is connected.',
        params: collection,
        response: { 200: Type.Array(View), ...errorResponses(401, 403, 404) },
      },
    },
    async (request) => {
      const { session } = await sessionOf(request)
      return sessionControl.invitations(session.id).map((one) => show(apiBase(request), one))
    },
  )

  app.post(
    '/sessions/:ref/invitations',
    {
      schema: {
        tags,
        summary: 'Invite a guest to a running session',
        description:
          'For the user of the session, and for users that may end it. The answer has a password for one connection of one viewer, shown in this answer only; all participants see who is connected.',
        params: collection,
        body: Wanted,
        response: { 201: Issued, ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const { session, basis } = await sessionOf(request)
      const { mode, duration, name = DEFAULT_NAME, client_ip: address } = request.body
      check('name', guestNameError(name))
      if (address !== undefined && isIP(address) === 0) {
        throw fieldError('invalid_field', 'client_ip', 'expected an IPv4 or IPv6 address such as 192.0.2.7')
      }
      refuseUnboundAddress(request, address)
      const answer = await sessionControl.invite(session.id, {
        name,
        mode,
        by: callerOf(request).name,
        basis,
        duration: duration * 1000,
        ...(address !== undefined && { address }),
      })
      if (answer.result === 'too_many') throw new ApiError('too_many_invitations')
      if (answer.result !== 'invited') throw new ApiError(answer.result)
      const { invitation } = answer
      const password = answer.password.revealText()
      answer.password.wipe()
      try {
        const fields = { ...fieldsOf(request, session, name), method: mode, duration: duration * 1000 }
        await record(audit, request, 'session.invite', fields)
      } catch (error) {
        // The password was never delivered.
        sessionControl.withdrawInvitation(invitation.id, 'the audit log cannot be written')
        throw error
      }
      return await reply
        .code(201)
        .header('cache-control', 'no-store')
        .send({
          invitation: show(apiBase(request), invitation),
          user: GUEST_USER,
          password,
          expires: timeText(invitation.expires),
        })
    },
  )

  app.put(
    '/sessions/:ref/invitations/:invitation',
    {
      schema: {
        tags,
        summary: 'Change what a guest may do',
        description: 'To `view`: control is taken back at once.',
        params: item,
        body: Change,
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const { session, invitation, basis } = await invitationOf(request)
      const { mode } = request.body
      const fields = { ...fieldsOf(request, session, invitation.name), method: mode }
      await record(audit, request, 'session.invite_change', fields)
      sessionControl.setGuestMode(invitation.id, mode, callerOf(request).name, basis)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/sessions/:ref/invitations/:invitation',
    {
      schema: {
        tags,
        summary: 'Withdraw an invitation, and have its guest leave',
        params: item,
        response: { 204: Type.Null(), ...errorResponses(401, 403, 404, 503) },
      },
    },
    async (request, reply) => {
      const { session, invitation } = await invitationOf(request)
      const by = callerOf(request).name
      const fields = fieldsOf(request, session, invitation.name)
      await record(audit, request, 'session.invite_withdraw', fields)
      sessionControl.withdrawInvitation(invitation.id, `ended by ${by}`, by)
      return reply.code(204).send(null)
    },
  )
}
