/** Errors of an exchange with a KDC or a service, beside malformed bytes. */
import type { KdcError } from './messages.ts'

/** Characters of an error's text that are said on. */
const MAX_TEXT = 200

type Said = Pick<KdcError, 'code' | 'serverTime' | 'text'>

/** An error that the KDC answered with. */
export class KdcRefusal extends Error {
  override name = 'KdcRefusal'
  readonly code: number
  /** It refused the ticket for a service: the password was accepted. */
  readonly isOfService: boolean

  /** `now`: milliseconds since the epoch. */
  constructor(error: Said, now: number, isOfService = false) {
    super(`the KDC answers${isOfService ? ' the request for our service' : ''} with ${wordsOf(error, now)}`)
    this.code = error.code
    this.isOfService = isOfService
  }
}

/** The answer does not come from a KDC that knows the key. */
export class UnprovedKdcError extends Error {
  override name = 'UnprovedKdcError'
}

/** An error that a service answered with, instead of taking the ticket. */
export class ServiceRefusal extends Error {
  override name = 'ServiceRefusal'
  readonly code: number

  /** `now`: milliseconds since the epoch. */
  constructor(error: Said, now: number) {
    super(`the service answers with ${wordsOf(error, now)}`)
    this.code = error.code
  }
}

/** The answer does not come from a service that has opened the ticket. */
export class UnprovedServiceError extends Error {
  override name = 'UnprovedServiceError'
}

/** `serverTime`: milliseconds since the epoch, as `now`. */
function wordsOf({ code, serverTime, text }: Said, now: number): string {
  const seconds = Math.round((serverTime - now) / 1000)
  const said = text.slice(0, MAX_TEXT).replaceAll(/\p{Cc}/gu, ' ')
  const clock = ` (its clock is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} ours)`
  return `error ${code}${said && `: ${said}`}${seconds === 0 ? '' : clock}`
}
