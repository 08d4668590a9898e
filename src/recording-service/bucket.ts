/** Opens the configuration's bucket. */
import { readFileSync } from 'node:fs'
import { Bucket, type BucketOptions } from '../../recordings/storage/bucket/bucket.ts'

/**
 * `ca` is the path of a PEM file with the authorities of the store's certificate. Sends no request yet.
 * Throws if that file cannot be read.
 */
export function openBucket({ ca, ...store }: BucketOptions): Bucket {
  const { endpoint, region, bucket, prefix, accessKey, secretKey, pathStyle, rate } = store
  return new Bucket({
    ...(endpoint !== undefined && { endpoint }),
    ...(ca !== undefined && { ca: readFileSync(ca, 'utf8') }),
    region,
    bucket,
    prefix,
    accessKey,
    secretKey,
    pathStyle,
    rate,
  })
}
