/** Limits on the channels of an SSH connection: how many, and how much each may hold. */

/** Open channels of one connection that run a program or are in the lobby. */
export const MAX_SESSION_CHANNELS = 32
/**
 * Open channels of one connection that carry forwarded connections, in either direction: a browser on -D
 * opens over a hundred. They hold no data here: each peer sends only as much as the other accepts.
 */
export const MAX_FORWARDED_CHANNELS = 256
/** Bytes of a channel's messages that wait for a decision, or for the target chosen in a menu. */
export const MAX_QUEUED = 256 * 1024
/**
 * Bytes of a suspended client's messages that wait in all channels of a session; above that the client is not read, and
 * may not see the target's output any more.
 */
export const MAX_KEPT = 8 * 1024 * 1024
/** Messages of a target that wait behind data the client has no window for. */
export const MAX_LATE = 64
/** Listeners on the target for one connection. */
export const MAX_BINDS = 64
/** Bytes of a channel's data that one side may send before the other reads them. */
export const MAX_WINDOW = 2 * 1024 * 1024
/** Bytes of a terminal's output that wait for a client that does not read; then the target waits. */
export const HELD_OUTPUT = 256 * 1024
/** Bytes that a client may type into a terminal before the target reads them. */
export const TYPED_WINDOW = 64 * 1024
/**
 * When a client leaves, its terminals' targets are read until they are silent for DRAIN_QUIET_MS, for at most
 * DRAIN_MS and DRAIN_BYTES. So the immediate output of a command is recorded, and a flood delays nothing.
 */
export const DRAIN_QUIET_MS = 500
export const DRAIN_MS = 2_000
export const DRAIN_BYTES = 16 * 1024 * 1024
/** The largest payload of one CHANNEL_DATA message; ssh2 refuses packets over 35,000 bytes. */
export const MAX_CHANNEL_PACKET = 32 * 1024
