/**
 * All limits of the API for what a client may send, hold open or make the broker keep. Times in milliseconds.
 */

export const MAX_BODY = 1024 * 1024
export const MAX_HEADERS = 16 * 1024
/** Characters of one part of a path: the longest account reference, percent-encoded. */
export const MAX_PATH_PART = 2048
export const MAX_CONNECTIONS = 1000
/** Connections per user and per API key, and those reserved for administrators. */
export const MAX_CONNECTIONS_OF_HOLDER = 100
export const CONNECTIONS_KEPT = 50
/** Refused requests on one connection without sign-in; the last one closes it. */
export const MAX_REFUSED = 6
/** Time from the first byte of a request to its last. */
export const REQUEST_TIMEOUT = 30_000
export const HEADERS_TIMEOUT = 10_000
export const HANDSHAKE_TIMEOUT = 10_000
/**
 * Long lists: characters per piece; lists in progress per user or key, in all, and reserved for
 * administrators; time for which a client may read nothing, and total time.
 */
export const PIECE_LENGTH = 64 * 1024
export const MAX_LONG_ANSWERS_OF_HOLDER = 8
export const MAX_LONG_ANSWERS = 48
export const LONG_ANSWERS_KEPT = 8
export const ANSWER_STALL = 30_000
export const ANSWER_TIME = 10 * 60_000
/** Time without traffic after which a connection is closed, even within an answer. */
export const IDLE_CONNECTION = 120_000
export const KEEP_ALIVE = 30_000

/** Connections without sign-in, in all and per address (for IPv6: per /64). */
export const MAX_ANONYMOUS = 500
export const MAX_ANONYMOUS_PER_ADDRESS = 100

/** Sign-in cookies: time without a request, accuracy with which a request is noted, and total time. */
export const SIGN_IN_IDLE = 15 * 60_000
export const SIGN_IN_NOTED = 60_000
export const SIGN_IN_LIFETIME = 12 * 3_600_000
export const MAX_SIGN_INS = 10_000
export const MAX_SIGN_INS_PER_USER = 20
/** Interval at which an API key's use is audited, per user and address. */
export const KEY_USE_INTERVAL = 15 * 60_000
export const MAX_KEY_USES = 10_000

/** Imported tables: bytes, rows, and number of reported errors. */
export const MAX_IMPORT_BODY = 64 * 1024 * 1024
export const MAX_IMPORT_ROWS = 200_000
export const MAX_IMPORT_PROBLEMS = 100
/** Time from the last byte of a table to the answer: hashing its passwords is slow. */
export const IMPORT_TIMEOUT = 3_600_000

/**
 * Answers kept for repeated requests: time, number, and characters of each; time after which the work of a request
 * counts as dead, and between looks at the work of another process.
 */
export const IDEMPOTENCY_LIFETIME = 24 * 3_600_000
export const MAX_IDEMPOTENCY_KEYS = 10_000
export const MAX_IDEMPOTENCY_ANSWER = 64 * 1024
export const IDEMPOTENCY_CLAIM = 60_000
export const IDEMPOTENCY_LOOK = 100

/** WebSockets: bytes and number of a client's messages, interval of pings, and time for closing. */
export const MAX_SOCKET_MESSAGE = 4096
export const MAX_SOCKET_MESSAGES = 100
export const SOCKET_PING_MS = 5_000
export const SOCKET_CLOSE_MS = 2000
/** Longest time for which watching continues after its right was removed. */
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
/** Events of the audit log: of one page, and rows that are read for it. */
export const MAX_EVENT_PAGE = 1000
export const MAX_ROWS_OF_PAGE = 1_000_000
