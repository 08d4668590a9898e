/** Kinds of failures of the bucket; the kind decides the next action. */
export const BUCKET_FAULTS = {
  /** No connection, a timeout, a response of 5xx: tried again later. */
  unavailable: 'the object store cannot be reached, or cannot answer now',
  /**
   * Wrong credentials, missing rights or no such bucket: fails until the configuration or the store is
   * changed.
   */
  refused: 'the object store refuses the credentials or the bucket',
  missing: 'there is no such object, or no such upload',
  /** The stored or received bytes differ from the sent ones. */
  content: 'the object is not what was sent',
  /** The recording on this machine's disk cannot be read. */
  local: 'the file cannot be read',
  failed: 'the store refused this object',
} as const
export type BucketFault = keyof typeof BUCKET_FAULTS

export class BucketError extends Error {
  readonly fault: BucketFault

  constructor(fault: BucketFault, message: string) {
    super(message)
    this.name = 'BucketError'
    this.fault = fault
  }
}

/** Returns whether the failure concerns all objects, and not this one alone. */
export function isOfTheStore(error: unknown): boolean {
  return error instanceof BucketError && (error.fault === 'unavailable' || error.fault === 'refused')
}

interface Answered {
  $metadata?: { httpStatusCode?: number }
  code?: string
}

/** Limit of the store's own text: it comes from outside, and goes into the log. */
const MAX_WORDS = 300

/** Converts an error of the SDK to one of our kinds; `doing` describes the attempt. */
export function bucketError(error: unknown, doing: string): BucketError {
  if (error instanceof BucketError) return error
  const { name, message, $metadata, code } = error as Error & Answered
  const status = $metadata?.httpStatusCode
  const words = [code, name, message].filter((word) => word !== undefined && word !== '' && word !== 'Error')
  const said = `${doing}: ${status === undefined ? '' : `answered ${status}, `}${words.join(' ')}`.slice(
    0,
    MAX_WORDS,
  )
  return new BucketError(faultOf(status, name), said)
}

function faultOf(status: number | undefined, name: string): BucketFault {
  if (name === 'BadDigest') return 'content'
  if (name === 'NoSuchBucket' || status === 401 || status === 403) return 'refused'
  if (status === undefined || status >= 500 || status === 429 || status === 408) return 'unavailable'
  // The SDK could not read a successful response, so it was changed on the way.
  if (status < 300) return 'unavailable'
  return status === 404 ? 'missing' : 'failed'
}
