/** Why something with the bucket failed, in the kinds that decide what is done next. */
export const BUCKET_FAULTS = {
  /** No connection, a timeout, an answer of 5xx: the store is asked again later. */
  unavailable: 'the object store cannot be reached, or cannot answer now',
  /** Credentials, rights, no such bucket: nothing works until somebody has changed something. */
  refused: 'the object store refuses the credentials or the bucket',
  missing: 'there is no such object, or no such upload',
  /** What the store has, or took, is not what was sent. */
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

/** Whether all objects are met by it, and not this one alone. */
export function isOfTheStore(error: unknown): boolean {
  return error instanceof BucketError && (error.fault === 'unavailable' || error.fault === 'refused')
}

interface Answered {
  $metadata?: { httpStatusCode?: number }
  code?: string
}

/** The store's own words are cut: they come from outside, and go into the log. */
const MAX_WORDS = 300

/** What the SDK threw, in our kinds; `doing` says what was tried. */
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
  // The SDK could not read an answer that says all is well: something on the way has changed it.
  if (status < 300) return 'unavailable'
  return status === 404 ? 'missing' : 'failed'
}
