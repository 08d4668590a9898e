/** Failures of one attempt at a job, and what each says about the target. */
import { ChangerError } from './changer.ts'

/** Failures after which another attempt may succeed. */
export const PASSING: readonly string[] = ['unreachable', 'timeout', 'unclear']
/** Failures of a change after which the target is as it was. After any other one it may have the new secret, or get it later. */
export const UNTOUCHED: readonly string[] = [
  'untrusted',
  'refused_sign_in',
  'refused_password',
  'not_permitted',
  'unsupported',
]
/** Failures of an account that an administrator need not have; the rules for a password bind only its owner at many targets. */
export const OF_ACCOUNT: readonly string[] = [
  'refused_sign_in',
  'refused_password',
  'not_permitted',
  'unsupported',
  'unexpected_answer',
]

/** Why a job ends, or is tried again, without a new secret. */
export class Failure extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }

  get text(): string {
    return `${this.code}: ${this.message}`
  }
}

/** Returns the changer's failure. @throws any other error as it is */
export function failureOf(error: unknown): Failure {
  if (error instanceof ChangerError) return new Failure(error.code, error.message)
  throw error
}
