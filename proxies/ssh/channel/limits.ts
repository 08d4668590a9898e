/** Bounds on the channels of an SSH connection: how many, and what each may hold. */

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
