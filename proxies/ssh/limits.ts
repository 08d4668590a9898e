/** The numbers that bound what a client or a target can make the SSH proxy hold, do or wait for. */

/** Questions "would this public key do?" on one connection: agents offer many keys. */
export const MAX_KEY_OFFERS = 32
/** Sign-in requests of all kinds on one connection, proofs or not. */
export const MAX_AUTH_REQUESTS = 64
/** Channels with a program, and such in the lobby, that one connection may have open at a time. */
export const MAX_SESSION_CHANNELS = 32
/**
 * Channels of forwarded connections, either way, that one connection may have open at a time: a browser on -D opens
 * over a hundred. Such a channel holds no data here, for either peer sends only what the other takes.
 */
export const MAX_FORWARDED_CHANNELS = 256
/** Bytes of a channel's messages that wait for a decision, or for the target of a menu's channel. */
export const MAX_QUEUED = 256 * 1024
/** Messages of a target behind data that a client without window has not taken. */
export const MAX_LATE = 64
/** Answers to a channel's requests that the client still waits for. */
export const MAX_OWED = 4096
/** Listeners on the target that one connection may have at a time. */
export const MAX_BINDS = 64
/** Bytes of a channel's data that one side may send before the other takes them, whatever window it names. */
export const MAX_WINDOW = 2 * 1024 * 1024
/** Bytes of a terminal's output, recorded, that wait for a client which does not take them; then its target waits. */
export const HELD_OUTPUT = 256 * 1024
/** Bytes that a client may type into a terminal before the target takes them. */
export const TYPED_WINDOW = 64 * 1024
/**
 * At a client's end its terminals' targets are heard until they are silent for DRAIN_QUIET_MS: for DRAIN_MS and for
 * DRAIN_BYTES at most. What a command answers at once is in the recording, and a target that floods keeps nobody.
 */
export const DRAIN_QUIET_MS = 500
export const DRAIN_MS = 2_000
export const DRAIN_BYTES = 16 * 1024 * 1024
/** The largest payload of one CHANNEL_DATA message; ssh2 refuses packets over 35,000 bytes. */
export const MAX_CHANNEL_PACKET = 32 * 1024
/** A key exchange that takes longer than this ends the connection. */
export const KEX_TIMEOUT_MS = 60_000
/** What one leg's keys are used for, in either direction, before new ones are agreed (RFC 4253 9, RFC 4344 3.1). */
export const REKEY_LIMITS = { bytes: 1024 * 1024 * 1024, packets: 2 ** 31, intervalMs: 3_600_000 }
/** A target's key exchange and sign-in, after the TCP connection. */
export const TARGET_SIGN_IN_TIMEOUT_MS = 30_000
/** How long a client may take to say whether it forwards its agent, and that agent to answer: somebody may have to confirm. */
export const AGENT_REQUEST_MS = 10_000
/** And how long for its main request behind that, before its agent is asked all the same. */
export const MAIN_REQUEST_MS = 250
export const AGENT_ANSWER_MS = 20_000
/** Keys of the user's agent that are offered to a target; most end the sign-in sooner (sshd's MaxAuthTries). */
export const MAX_AGENT_KEYS = 16
/** Silence after which a leg is asked for a sign of life, and how many questions may stay unanswered. */
export const KEEPALIVE_INTERVAL_MS = 30_000
export const KEEPALIVE_MAX_UNANSWERED = 3
/** Logins at targets, typed by somebody on one connection, that were refused before it is ended. */
export const MAX_LOGON_REFUSALS = 3
/** How long somebody may take to type one. */
export const LOGON_TIMEOUT_MS = 120_000
/** What the bastion itself grants a client to type in its menu. */
export const MENU_WINDOW = 4096
/** How long somebody who has signed in may take to open a channel, or sit in the menu without a key. */
export const LOBBY_IDLE_MS = 600_000
