/** Requests to the bucket's thread and their results: plain data both ways. */
import type { BucketFault } from './error.ts'
import type { BucketSettings } from './s3.ts'

export interface ThreadData {
  settings: BucketSettings
  /** Bytes a second, both ways together, or 0 for no limit. */
  rate: number
}

/** Each operation's arguments and result. */
export interface Operations {
  segment: { takes: { file: string; offset: number; prefix: string }; answers: number }
  beginUpload: { takes: { key: string }; answers: string }
  whole: { takes: { file: string; key: string; upload?: string | undefined }; answers: null }
  verify: { takes: { file: string; key: string }; answers: { size: number; sha256: string } }
  abandon: { takes: { key: string; upload: string }; answers: null }
  removeBelow: { takes: { prefix: string }; answers: null }
  size: { takes: { key: string }; answers: number | undefined }
  range: { takes: { key: string; offset: number; length: number }; answers: Uint8Array }
  probe: { takes: { prefix: string; name: string }; answers: null }
}
export type Operation = keyof Operations

export interface ToThread {
  id: number
  operation: Operation
  takes: Operations[Operation]['takes']
}

export type FromThread =
  | { id: number; answer: Operations[Operation]['answers'] }
  | { id: number; fault: BucketFault; message: string }
