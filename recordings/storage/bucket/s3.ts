/**
 * The few operations of S3 that recordings need, each one request with a time limit and a limited response.
 * There are no retries here: each caller has its own schedule for them.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { Agent as HttpsAgent } from 'node:https'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { BucketError, bucketError } from './error.ts'

export interface BucketSettings {
  /** `https://HOST[:PORT]`. Absent for Amazon's endpoint of the region. */
  endpoint?: string
  region: string
  bucket: string
  accessKey: string
  secretKey: string
  /** `ENDPOINT/BUCKET/KEY` instead of `BUCKET.ENDPOINT/KEY`. */
  pathStyle: boolean
  /** PEM of the authorities for the endpoint's certificate. Absent for the system's authorities. */
  ca?: string
}

export interface Part {
  number: number
  etag: string
  size: number
}

const CONNECT_MS = 10_000
/** Limit of silence on a connection. */
const SILENCE_MS = 30_000
/** Time limit of a request: a part of some MiB over a slow line. */
const REQUEST_MS = 180_000
const MAX_SOCKETS = 16
/** S3's own limit; a longer list of parts is cut. */
const MAX_PARTS = 10_000
/** Objects under one session's folder: segments of 15 seconds for months. */
const MAX_LISTED = 1_000_000

export class S3Bucket {
  readonly #client: S3Client
  readonly #bucket: string

  constructor(settings: BucketSettings) {
    this.#bucket = settings.bucket
    this.#client = new S3Client({
      region: settings.region,
      ...(settings.endpoint !== undefined && { endpoint: settings.endpoint }),
      forcePathStyle: settings.pathStyle,
      credentials: { accessKeyId: settings.accessKey, secretAccessKey: settings.secretKey },
      maxAttempts: 1,
      // Not every store supports the trailers of flexible checksums; every store checks Content-MD5.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        socketTimeout: SILENCE_MS,
        httpAgent: { keepAlive: true, maxSockets: MAX_SOCKETS },
        httpsAgent: new HttpsAgent({
          keepAlive: true,
          maxSockets: MAX_SOCKETS,
          // NODE_TLS_REJECT_UNAUTHORIZED would decide otherwise.
          rejectUnauthorized: true,
          ...(settings.ca !== undefined && { ca: settings.ca }),
        }),
      },
    })
  }

  async put(key: string, body: Uint8Array): Promise<void> {
    await this.#ask(`put ${key}`, (signal) =>
      this.#client.send(
        new PutObjectCommand({ Bucket: this.#bucket, Key: key, Body: body, ContentMD5: md5(body) }),
        signal,
      ),
    )
  }

  /** Returns the size of the object, or undefined if it does not exist. */
  async size(key: string): Promise<number | undefined> {
    try {
      const { ContentLength } = await this.#ask(`head ${key}`, (signal) =>
        this.#client.send(new HeadObjectCommand({ Bucket: this.#bucket, Key: key }), signal),
      )
      return ContentLength ?? 0
    } catch (error) {
      if (error instanceof BucketError && error.fault === 'missing') return undefined
      throw error
    }
  }

  /** Returns exactly `length` bytes from `offset` on. */
  async range(key: string, offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#ask(`get ${key}`, async (signal) => {
      const Range = `bytes=${offset}-${offset + length - 1}`
      const { Body } = await this.#client.send(
        new GetObjectCommand({ Bucket: this.#bucket, Key: key, Range }),
        signal,
      )
      const bytes = new Uint8Array(length)
      let at = 0
      for await (const chunk of (Body ?? []) as AsyncIterable<Uint8Array>) {
        if (at + chunk.length > length)
          throw new BucketError('content', `get ${key}: more bytes came than were asked for`)
        bytes.set(chunk, at)
        at += chunk.length
      }
      if (at < length)
        throw new BucketError('unavailable', `get ${key}: the answer ended after ${at} of ${length} bytes`)
      return bytes
    })
  }

  /** Removes an object; succeeds if it does not exist. */
  async remove(key: string): Promise<void> {
    await this.#ask(`delete ${key}`, (signal) =>
      this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: key }), signal),
    )
  }

  /** Yields the keys with this prefix, a page at a time. */
  async *list(prefix: string): AsyncGenerator<string[]> {
    let token: string | undefined
    let listed = 0
    do {
      const page = await this.#ask(`list ${prefix}`, (signal) =>
        this.#client.send(
          new ListObjectsV2Command({
            Bucket: this.#bucket,
            Prefix: prefix,
            ...(token !== undefined && { ContinuationToken: token }),
          }),
          signal,
        ),
      )
      const keys = (page.Contents ?? []).flatMap(({ Key }) => (Key?.startsWith(prefix) ? [Key] : []))
      yield keys
      listed += keys.length
      token = page.IsTruncated && keys.length > 0 ? page.NextContinuationToken : undefined
    } while (token !== undefined && listed < MAX_LISTED)
  }

  async beginUpload(key: string): Promise<string> {
    const { UploadId } = await this.#ask(`begin the upload of ${key}`, (signal) =>
      this.#client.send(new CreateMultipartUploadCommand({ Bucket: this.#bucket, Key: key }), signal),
    )
    if (UploadId === undefined)
      throw new BucketError('unavailable', `begin the upload of ${key}: the answer has no upload id`)
    return UploadId
  }

  async putPart(key: string, upload: string, number: number, body: Uint8Array): Promise<Part> {
    const { ETag } = await this.#ask(`put part ${number} of ${key}`, (signal) =>
      this.#client.send(
        new UploadPartCommand({
          Bucket: this.#bucket,
          Key: key,
          UploadId: upload,
          PartNumber: number,
          Body: body,
          ContentMD5: md5(body),
        }),
        signal,
      ),
    )
    if (ETag === undefined)
      throw new BucketError('unavailable', `put part ${number} of ${key}: the answer has no etag`)
    return { number, etag: ETag, size: body.length }
  }

  /** Returns the parts of an upload that the store has. */
  async parts(key: string, upload: string): Promise<Part[]> {
    const found: Part[] = []
    let marker: string | undefined
    do {
      const page = await this.#ask(`list the parts of ${key}`, (signal) =>
        this.#client.send(
          new ListPartsCommand({
            Bucket: this.#bucket,
            Key: key,
            UploadId: upload,
            ...(marker !== undefined && { PartNumberMarker: marker }),
          }),
          signal,
        ),
      )
      for (const { PartNumber, ETag, Size } of page.Parts ?? []) {
        if (PartNumber !== undefined && ETag !== undefined && Size !== undefined)
          found.push({ number: PartNumber, etag: ETag, size: Size })
      }
      marker = page.IsTruncated ? page.NextPartNumberMarker : undefined
    } while (marker !== undefined && found.length < MAX_PARTS)
    return found
  }

  async complete(key: string, upload: string, parts: readonly Part[]): Promise<void> {
    const Parts = parts.map(({ number, etag }) => ({ PartNumber: number, ETag: etag }))
    await this.#ask(`complete ${key}`, (signal) =>
      this.#client.send(
        new CompleteMultipartUploadCommand({
          Bucket: this.#bucket,
          Key: key,
          UploadId: upload,
          MultipartUpload: { Parts },
        }),
        signal,
      ),
    )
  }

  /** Aborts an upload; succeeds if it does not exist. */
  async abandon(key: string, upload: string): Promise<void> {
    try {
      await this.#ask(`abandon the upload of ${key}`, (signal) =>
        this.#client.send(
          new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key: key, UploadId: upload }),
          signal,
        ),
      )
    } catch (error) {
      if (error instanceof BucketError && error.fault === 'missing') return
      throw error
    }
  }

  close(): void {
    this.#client.destroy()
  }

  async #ask<T>(doing: string, request: (options: { abortSignal: AbortSignal }) => Promise<T>): Promise<T> {
    const late = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        late.abort()
        reject(new BucketError('unavailable', `${doing}: no answer within ${REQUEST_MS / 1000} s`))
      }, REQUEST_MS)
    })
    try {
      return await Promise.race([request({ abortSignal: late.signal }), timeout])
    } catch (error) {
      throw bucketError(error, doing)
    } finally {
      clearTimeout(timer)
    }
  }
}

const md5 = (bytes: Uint8Array): string => createHash('md5').update(bytes).digest('base64')

/** The bytes of a probe, which must come back unchanged. */
const PROBE = Buffer.from('sallyport: this object may be deleted\n')

/** Puts, reads and deletes an object under the prefix. Throws BucketError if any of these fails. */
export async function probe(bucket: S3Bucket, prefix: string, name: string): Promise<void> {
  const key = `${prefix}probe-${name}`
  await bucket.put(key, PROBE)
  const back = await bucket.range(key, 0, PROBE.length)
  await bucket.remove(key)
  if (!PROBE.equals(back)) throw new BucketError('content', `get ${key}: the object is not what was put`)
}
