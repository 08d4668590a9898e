/**
 * Detects how streams of rsync and git begin. Their recorders keep operation and hash only, so a stream that
 * begins otherwise must be detected at once.
 */

import { latin1 } from '../../bytes/text.ts'
import type { GitOperation } from './classify.ts'

/** `more`: too few bytes to decide. */
export type Verdict = 'yes' | 'no' | 'more'
export type Preamble = (begin: Uint8Array) => Verdict

const RSYNC_OLDEST = 20
const RSYNC_NEWEST = 40

/** rsync, both sides: the protocol version as four bytes, little-endian (its compat.c, setup_protocol). */
export function rsyncPreamble(begin: Uint8Array): Verdict {
  const version = begin[0]
  if (version === undefined) return 'more'
  if (version < RSYNC_OLDEST || RSYNC_NEWEST < version) return 'no'
  if (begin.subarray(1, 4).some((byte) => byte !== 0)) return 'no'
  return begin.length < 4 ? 'more' : 'yes'
}

/** Enough for the length and the longest beginning below. */
const GIT_HEAD = 24
const LENGTH =
  /^(000[0-9a-f]|00[1-9a-f][0-9a-f]|0[1-9a-f][0-9a-f]{2}|[1-9a-e][0-9a-f]{3}|f[0-9a-e][0-9a-f]{2}|ff[0-9a-e][0-9a-f]|fff0)$/
const OBJECT = '[0-9a-f]{20}'

/**
 * git: packet lines (gitprotocol-common, pkt-line), four hexadecimal digits of length and a line. The first
 * lines of each side: gitprotocol-pack, gitprotocol-v2, git-upload-archive.
 */
export function gitPreamble(operation: GitOperation, side: 'client' | 'target'): Preamble {
  const first = new RegExp(`^(${FIRST[operation][side]})`)
  return (begin) => {
    const head = latin1(begin.subarray(0, GIT_HEAD))
    const length = head.slice(0, 4)
    if (length.length < 4) return /^[0-9a-f]*$/.test(length) ? 'more' : 'no'
    if (!LENGTH.test(length)) return 'no'
    const size = Number.parseInt(length, 16)
    // 0000 to 0002 stand alone: flush, delimiter, end of response.
    if (size < 4) return size < 3 ? 'yes' : 'no'
    const line = head.slice(4, Math.max(4, size))
    if (head.length < Math.min(GIT_HEAD, size)) return 'more'
    return first.test(line) ? 'yes' : 'no'
  }
}

const FIRST: Readonly<Record<GitOperation, Record<'client' | 'target', string>>> = {
  'git-upload-pack': {
    client: 'want |command=|shallow |deepen|filter ',
    target: `version [12]\n|ERR |${OBJECT}`,
  },
  'git-receive-pack': {
    client: `shallow |push-cert|${OBJECT}`,
    target: `version 1\n|ERR |${OBJECT}`,
  },
  'git-upload-archive': {
    client: 'argument ',
    target: 'ACK\n|NACK |ERR ',
  },
}
