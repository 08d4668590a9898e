/** One-time tickets for viewers that cannot carry a name and a password. */
import { isIP } from 'node:net'
import { Type } from 'typebox'
import type { TicketAnswer } from '../../gate/ticket-office.ts'
import { sameAddress } from '../../model/networks.ts'
import { formatRdpFile } from '../../model/rdp-file.ts'
import { basisOf, callerOf, userOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { addressOf, record } from '../access/events.ts'
import { rightFor } from '../access/guard.ts'
import { refuseUnboundAddress } from '../access/ways-in.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, oneOf, timeText, titled } from '../schema/fields.ts'

const Wanted = titled(
  'TicketRequest',
  exact({
    protocol: oneOf(['VNC', 'RDP'] as const, 'what the viewer speaks'),
    client_ip: Type.Optional(
      Type.String({
        maxLength: 64,
        description: "the address that the viewer will come from; default: the caller's",
        examples: ['192.0.2.7'],
      }),
    ),
  }),
)
const View = titled(
  'Ticket',
  exact({
    user: Type.String({ description: 'the login string, for viewers that ask for a user name' }),
    password: Type.String({ description: 'signs in once' }),
    expires: Type.String({ format: 'date-time' }),
    rdp_file: Type.Optional(
      Type.String({
        description:
          'for RDP, where this broker listens for it: what an .rdp file holds; the client asks for the password',
      }),
    ),
  }),
)
const params = Type.Object({
  ref: Type.String({
    description: 'canonical name of a target, or the part of a login string after the user',
    examples: ['root@local:srv1:vnc'],
  }),
})

export function registerTickets(app: Api, { deps }: Context): void {
  const { tickets, audit, rdpAddress } = deps

  app.post(
    '/targets/:ref/ticket',
    {
      schema: {
        tags: ['Targets'],
        summary: 'Ask for a one-time ticket',
        description:
          'A password that opens this target once, within minutes (`ticket_lifetime`), for a viewer that comes from `client_ip`. It is shown in this answer only. A target that does not exist and one that the caller may not open get the same answer.',
        params,
        body: Wanted,
        response: { 201: View, ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const user = userOf(request)
      const { protocol, client_ip: given } = request.body
      if (given !== undefined && isIP(given) === 0) {
        throw fieldError('invalid_field', 'client_ip', 'expected an IPv4 or IPv6 address such as 192.0.2.7')
      }
      const address = sameAddress(given ?? addressOf(request))
      refuseUnboundAddress(request, address)
      const { ref } = request.params as { ref: string }
      const { key, hasFactor } = callerOf(request)
      const basis = basisOf(request, rightFor('POST', '/targets/:ref/ticket'))
      const answer = await tickets.issue({
        ...{ user, basis, target: ref, protocol, address },
        ...(hasFactor && { hasFactor }),
      })
      const fields = {
        user: user.userName,
        protocol,
        ...(key && { method: 'api_key', api_key: key.keyName }),
      }
      if (answer.result !== 'issued') {
        const { error, reason } = refusalOf(answer)
        await record(audit, request, 'ticket.denied', {
          ...fields,
          object_type: 'target',
          object: ref,
          reason,
        })
        throw error
      }
      const { target, login, password, expires, id } = answer
      try {
        await record(audit, request, 'ticket.issue', {
          ...fields,
          account: target.accountName,
          domain: target.domainName,
          device: target.deviceName,
          service: target.serviceName,
          object_type: 'address',
          object: address,
          duration: tickets.lifetime,
        })
        const where = protocol === 'RDP' ? rdpAddress : undefined
        const body = {
          user: login,
          password: password.revealText(),
          expires: timeText(expires),
          ...(where && { rdp_file: formatRdpFile({ ...where, login, rights: target.rights }) }),
        }
        return await reply.code(201).send(body)
      } catch (error) {
        // The ticket was never delivered.
        await tickets.withdraw(id)
        throw error
      } finally {
        password.wipe()
      }
    },
  )
}

function refusalOf(answer: Exclude<TicketAnswer, { result: 'issued' }>): { error: ApiError; reason: string } {
  switch (answer.result) {
    case 'unknown':
      return { error: new ApiError('not_found'), reason: 'it does not exist, or they may not open it' }
    case 'ambiguous': {
      const details = answer.candidates.map((message) => ({ message }))
      return { error: new ApiError('ambiguous_reference', details), reason: 'it may mean several targets' }
    }
    case 'too_many':
      return { error: new ApiError('too_many_tickets'), reason: 'too many tickets wait to be used' }
  }
}
