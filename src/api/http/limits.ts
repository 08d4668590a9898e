/** Every bound that the API puts on what a client may send, hold open or make it keep. Times in milliseconds. */

export const MAX_BODY = 1024 * 1024
export const MAX_HEADERS = 16 * 1024
/** Characters of one part of a path: the longest account reference, percent-encoded. */
export const MAX_PATH_PART = 2048
export const MAX_CONNECTIONS = 1000
/** Of them, of one user and of one API key; and kept for those who administrate. */
export const MAX_CONNECTIONS_OF_HOLDER = 100
export const CONNECTIONS_KEPT = 50
/** Requests refused on one connection on which nobody has signed in: the last one ends it. */
export const MAX_REFUSED = 6
/** From the first byte of a request to its last. */
export const REQUEST_TIMEOUT = 30_000
export const HEADERS_TIMEOUT = 10_000
export const HANDSHAKE_TIMEOUT = 10_000
/** Long lists: characters of a piece, how many are under way of one user and of one key, in all, and of those kept for administrators, how long a client may take nothing, and take in all. */
export const PIECE_LENGTH = 64 * 1024
export const MAX_LONG_ANSWERS_OF_HOLDER = 8
export const MAX_LONG_ANSWERS = 48
export const LONG_ANSWERS_KEPT = 8
export const ANSWER_STALL = 30_000
export const ANSWER_TIME = 10 * 60_000
/** A connection on which nothing moves, also in the middle of an answer. */
export const IDLE_CONNECTION = 120_000
export const KEEP_ALIVE = 30_000

/** Connections without sign-in, in all and from one address (of IPv6: one /64). */
export const MAX_ANONYMOUS = 500
export const MAX_ANONYMOUS_PER_ADDRESS = 100

/** Sign-in cookies: how long without a request, and how long at most. */
export const SIGN_IN_IDLE = 15 * 60_000
export const SIGN_IN_LIFETIME = 12 * 3_600_000
export const MAX_SIGN_INS = 10_000
export const MAX_SIGN_INS_PER_USER = 20
/** An API key's use is written to the audit once in this time per user and address. */
export const KEY_USE_INTERVAL = 15 * 60_000
export const MAX_KEY_USES = 10_000

/** Bytes of a table that is imported, its rows, and how many of its errors are told. */
export const MAX_IMPORT_BODY = 64 * 1024 * 1024
export const MAX_IMPORT_ROWS = 200_000
export const MAX_IMPORT_PROBLEMS = 100
/** From the last byte of a table to the answer: passwords take their time to be hashed. */
export const IMPORT_TIMEOUT = 3_600_000

/** Answers kept for repetitions of a request: how long, how many, and characters of one. */
export const IDEMPOTENCY_LIFETIME = 24 * 3_600_000
export const MAX_IDEMPOTENCY_KEYS = 10_000
export const MAX_IDEMPOTENCY_ANSWER = 64 * 1024

/** WebSockets: bytes and number of a client's messages, how often it is asked for a sign of life, and how long it may take to close. */
export const MAX_SOCKET_MESSAGE = 4096
export const MAX_SOCKET_MESSAGES = 100
export const SOCKET_PING_MS = 30_000
export const SOCKET_CLOSE_MS = 2000
/** How long somebody watches on after the right to do so has gone, at most. */
export const WATCH_REVIEW_MS = 1500

/** Members of one list in a body. */
export const MAX_LIST = 10_000
export const MAX_TEXT = 1024
export const MAX_DEFAULT_PAGE = 100
/** Characters of the `changes` field of an event, and of one value in it. */
export const MAX_CHANGES = 1500
export const MAX_CHANGE_VALUE = 256
/** Events of one session in one answer. */
export const MAX_EVENTS = 10_000
