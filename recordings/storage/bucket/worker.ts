/**
 * The thread that uses the bucket, so that reading, hashing, signing and TLS do not burden the relay's
 * thread.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { giveWay } from '../../../src/threads/priority.ts'
import { BucketError } from './error.ts'
import { segmentKey } from './keys.ts'
import type { FromThread, Operation, Operations, ThreadData, ToThread } from './messages.ts'
import { Rate } from './rate.ts'
import { probe, S3Bucket } from './s3.ts'
import { Transfer } from './transfer.ts'

/** Of 19: on a busy machine, users' input takes precedence over copies of files. */
const NICENESS = 10

giveWay(NICENESS)

const { settings, rate } = workerData as ThreadData
const bucket = new S3Bucket(settings)
const transfer = new Transfer(bucket, new Rate(rate, () => performance.now(), sleep))

const done = async (work: Promise<void>): Promise<null> => {
  await work
  return null
}

const OPERATIONS: { [O in Operation]: (takes: Operations[O]['takes']) => Promise<Operations[O]['answers']> } =
  {
    segment: ({ file, offset, prefix }) => transfer.segment(file, offset, (at) => segmentKey(prefix, at)),
    beginUpload: ({ key }) => bucket.beginUpload(key),
    whole: ({ file, key, upload }) => done(transfer.whole(file, key, upload)),
    verify: ({ file, key }) => transfer.verify(file, key),
    abandon: ({ key, upload }) => done(bucket.abandon(key, upload)),
    removeBelow: ({ prefix }) => done(transfer.removeBelow(prefix)),
    size: ({ key }) => bucket.size(key),
    range: ({ key, offset, length }) => bucket.range(key, offset, length),
    probe: ({ prefix, name }) => done(probe(bucket, prefix, name)),
  }

function post(message: FromThread): void {
  const moved = 'answer' in message && message.answer instanceof Uint8Array ? [message.answer.buffer] : []
  parentPort?.postMessage(message, moved as ArrayBuffer[])
}

parentPort?.on('message', ({ id, operation, takes }: ToThread) => {
  const work = OPERATIONS[operation] as (
    takes: ToThread['takes'],
  ) => Promise<Operations[Operation]['answers']>
  work(takes).then(
    (answer) => post({ id, answer }),
    (error: unknown) => {
      const fault = error instanceof BucketError ? error.fault : 'failed'
      post({ id, fault, message: error instanceof Error ? error.message : String(error) })
    },
  )
})
