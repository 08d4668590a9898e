/**
 * The numbers of the container (docs/recording-format.md). Those above the line are part of the format; those
 * below limit the cost of a forged file for a reader.
 */

export const FORMAT_VERSION = 1
export const FILE_NAME = 'session.rec'
export const KEY_FILE_NAME = 'key.age'

export const SESSION_KEY_LENGTH = 32
export const LINK_LENGTH = 32
export const SIGNATURE_LENGTH = 64
export const PUBLIC_KEY_LENGTH = 32
export const GCM_TAG_LENGTH = 16
export const GCM_NONCE_LENGTH = 12

// ---

/** A group's frames before compression. */
export const MAX_GROUP_PLAIN = 256 * 1024
/** A frame's payload; a longer one is split over several frames. */
export const MAX_FRAME_PAYLOAD = 64 * 1024
/** A structured payload (JSON) joined from its frames. */
export const MAX_STRUCTURED_PAYLOAD = 2 * 1024 * 1024
/** The header's metadata. */
export const MAX_METADATA = 64 * 1024
/** A session's id. */
export const MAX_SESSION_ID = 64
/** A record's body: a group that did not compress, with its header and tag. */
export const MAX_RECORD_BODY = MAX_GROUP_PLAIN + 1024
/** Channel numbers. */
export const MAX_CHANNEL = 0xffff_ffff
/** The wrapped key: about a hundred recipients. */
export const MAX_KEY_FILE = 64 * 1024

/** Bytes of a batch of groups that a writer appends at once, before sealing; and the number of its groups. */
export const MAX_BATCH = 4 * 1024 * 1024
export const MAX_BATCH_GROUPS = 1024
