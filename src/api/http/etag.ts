/**
 * Entity tags (RFC 9110 8.8.3): the state of an object when it was read. `If-Match` makes a change
 * conditional on it (13.1.1).
 */
import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { ApiError } from './errors.ts'

export const ifMatch = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      maxLength: 4096,
      description:
        'entity tags of which the object has to have one, or `*`: else 412, and nothing is changed',
    }),
  ),
})

/**
 * Returns the tag of an object as the API shows it. `url` is left out, since it depends on the API's version;
 * `secretRevision` stands for the secrets, which are not shown.
 */
export function etagOf(
  { url: _url, ...view }: Readonly<Record<string, unknown>>,
  secretRevision = 0,
): string {
  const digest = createHash('sha256').update(`${secretRevision} ${JSON.stringify(view)}`)
  return `"${digest.digest('base64url').slice(0, 22)}"`
}

/** @throws ApiError `precondition_failed` if the header names tags, but not this one */
export function refuseUnmatched(header: string | undefined, etag: string): void {
  if (header === undefined || header.trim() === '*') return
  // A weak tag never matches here (RFC 9110 8.8.3.2).
  const tags = header.split(',').map((tag) => tag.trim())
  if (!tags.includes(etag)) throw new ApiError('precondition_failed')
}
