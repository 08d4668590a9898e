/** Converts every failure of a request to a code of the catalogue. */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { BucketError } from '../../../recordings/storage/bucket/error.ts'
import { ContentsBusyError } from '../../contents/contents.ts'
import { UnauditedError } from '../../gate/approvals.ts'
import { BusyError } from '../../identity/errors.ts'
import { SearchError } from '../../search/grammar.ts'
import {
  ChangedError,
  ConflictError,
  DuplicateError,
  FactoryError,
  InUseError,
  LastAdministratorError,
  MissingReferenceError,
  SortError,
  StoreBusyError,
  StoreUnavailableError,
  TooManyError,
} from '../../store/engine/errors.ts'
import { CheckoutError, type CheckoutRefusal } from '../../vault/checkout-refusals.ts'
import { RewriterBusyError } from '../../vault/formats/rewriter.ts'
import { ApiError, ERRORS, type ErrorCode, errorBody } from './errors.ts'

/** Fastify's own errors (fastify.dev/docs/latest/Reference/Errors) that a client can cause. */
const FASTIFY_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_EMPTY_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_body',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'malformed_body',
  FST_ERR_CTP_INVALID_JSON_BODY: 'malformed_body',
  FST_ERR_BAD_URL: 'malformed_url',
  FST_ERR_INVALID_URL: 'malformed_url',
  FST_ERR_MAX_PARAM_LENGTH: 'url_too_long',
}

export const ErrorSchema = Type.Object(
  {
    error: Type.String({ description: 'stable code' }),
    description: Type.String({ description: 'what to do' }),
    details: Type.Array(
      Type.Object({
        row: Type.Optional(Type.Integer({ description: 'of a table, from 1, as a spreadsheet shows it' })),
        column: Type.Optional(Type.Integer({ description: 'likewise' })),
        field: Type.Optional(Type.String({ description: 'the field at fault, as a path' })),
        message: Type.String(),
        position: Type.Optional(
          Type.Integer({ description: 'in an expression: offset of the fault, in characters from 0' }),
        ),
        until: Type.Optional(
          Type.String({ format: 'date-time', description: 'when it will be possible at the latest' }),
        ),
      }),
    ),
    challenge: Type.Optional(
      Type.Object(
        {
          id: Type.String({ description: 'to repeat with the answers' }),
          message: Type.String(),
          uri: Type.Optional(Type.String({ description: 'for an authenticator, as a QR code' })),
          prompts: Type.Array(
            Type.Object({
              text: Type.String(),
              echo: Type.Boolean({ description: 'whether what is typed may be seen' }),
            }),
          ),
        },
        { description: 'of second_factor_required: one round of prompts' },
      ),
    ),
  },
  { title: 'Error' },
)

/** Returns response schemas for the error statuses of a route. */
export function errorResponses(...statuses: number[]): Record<number, typeof ErrorSchema> {
  return Object.fromEntries(statuses.map((status) => [status, ErrorSchema]))
}

const CHECKOUT_CODES: Readonly<Record<CheckoutRefusal, ErrorCode>> = {
  no_secret: 'no_secret',
  checked_out: 'checked_out',
  not_allowed: 'not_found',
  too_long: 'invalid_field',
  not_extendable: 'not_extendable',
  not_out: 'not_found',
  approval_required: 'approval_required',
  second_factor_required: 'forbidden',
  no_reason: 'invalid_field',
  changing: 'secret_changing',
}

/** Converts an error to the API's form. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof DuplicateError) return new ApiError('duplicate', [{ message: error.message }])
  if (error instanceof FactoryError) return new ApiError('factory_object', [{ message: error.message }])
  if (error instanceof LastAdministratorError) return new ApiError('last_administrator')
  if (error instanceof TooManyError)
    return new ApiError(
      error.objectType === 'notification' ? 'too_many_notifications' : 'too_many_scim_tokens',
    )
  if (error instanceof ChangedError) return new ApiError('changed_meanwhile')
  if (error instanceof InUseError)
    return new ApiError(
      'in_use',
      error.users.map((message) => ({ message })),
    )
  if (error instanceof MissingReferenceError) {
    // The object, or one to which it refers, was deleted between the check and the change.
    return error.field === 'id'
      ? new ApiError('not_found')
      : new ApiError('unknown_reference', [{ message: error.message }])
  }
  if (error instanceof CheckoutError) return checkoutErrorOf(error)
  if (error instanceof UnauditedError) return new ApiError('audit_unavailable')
  if (error instanceof ContentsBusyError) return new ApiError('busy')
  if (error instanceof StoreBusyError || error instanceof ConflictError) return new ApiError('busy')
  if (error instanceof StoreUnavailableError) return new ApiError('store_unavailable')
  if (error instanceof BusyError || error instanceof RewriterBusyError) return new ApiError('busy')
  if (error instanceof BucketError) return new ApiError('object_store_unavailable')
  if (error instanceof SearchError) {
    const { fault, position, message } = error
    return new ApiError(fault === 'field' ? 'unknown_field' : 'invalid_search', [
      { field: 'q', message, position },
    ])
  }
  if (error instanceof SortError)
    return new ApiError('invalid_field', [{ field: 'sort', message: error.message }])
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') {
    const code = Object.hasOwn(FASTIFY_CODES, error.code) ? FASTIFY_CODES[error.code] : undefined
    if (code) return new ApiError(code)
  }
  // Thrown by the JSON parser for __proto__ and constructor (secure-json-parse).
  if (error instanceof SyntaxError && 'statusCode' in error && error.statusCode === 400)
    return new ApiError('malformed_body')
  return new ApiError('internal')
}

function checkoutErrorOf({ reason, message, until }: CheckoutError): ApiError {
  const code = CHECKOUT_CODES[reason]
  if (reason === 'too_long') return new ApiError(code, [{ field: 'duration', message }])
  if (reason === 'not_extendable' || reason === 'no_secret') return new ApiError(code, [{ message }])
  if (reason !== 'checked_out') return new ApiError(code)
  return new ApiError(code, [
    { message, ...(until !== undefined && { until: new Date(until).toISOString() }) },
  ])
}

export function errorCodeOf(error: unknown): ErrorCode {
  return apiErrorOf(error).code
}

/**
 * Whether the client has disconnected, or was disconnected, before its request was complete: no client reads
 * the answer.
 */
export function isGone({ raw }: FastifyRequest): boolean {
  return raw.errored !== null && !raw.complete
}

/** Codes of failures whose cause only the log says. */
const LOGGED: readonly ErrorCode[] = ['internal', 'object_store_unavailable', 'store_unavailable']
/** Codes with which a client may try again soon. */
const PASSING: readonly ErrorCode[] = ['busy', 'audit_unavailable', 'store_unavailable']

/** Converts an error for an answer; logs only the broker's own failures, which are never shown. */
export function noteError(error: unknown, request: FastifyRequest, reply: FastifyReply): ApiError {
  const isClients = isGone(request) && error === request.raw.errored
  const known = isClients ? new ApiError('request_timeout') : apiErrorOf(error)
  if (isClients) request.log.debug('the client went away before its request was whole')
  if (LOGGED.includes(known.code) && known !== error) request.log.error({ err: error }, 'the request failed')
  if (PASSING.includes(known.code)) reply.header('retry-after', '5')
  return known
}

/** Sends the error as JSON. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { code, details, challenge, status } = noteError(error, request, reply)
  reply
    .code(status)
    .type('application/json')
    .send({ ...errorBody(code, details), ...(challenge && { challenge }) })
}

/** Answers bytes that are no HTTP request, below Fastify. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const code = clientErrorCode(error.code)
  const { status } = ERRORS[code]
  const body = JSON.stringify(errorBody(code))
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\nconnection: close\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

function clientErrorCode(code: string | undefined): ErrorCode {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  return 'malformed_request'
}
