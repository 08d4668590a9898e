/** Limits for a client that is signed in and has no target yet. */

/** Time for a client to request agent forwarding, and for the agent to reply: users may have to confirm. */
export const AGENT_REQUEST_MS = 10_000
/** Time after that for the client's main request, before the agent is used anyway. */
export const MAIN_REQUEST_MS = 250
export const AGENT_ANSWER_MS = 20_000
/** Keys of the user's agent offered to a target; most targets allow fewer tries (sshd's MaxAuthTries). */
export const MAX_AGENT_KEYS = 16
/** Time to type a login. */
export const LOGON_TIMEOUT_MS = 120_000
/** Time to type the reason of a session. */
export const REASON_TIMEOUT_MS = 300_000
/** Time to answer a round about a second factor: as long as the gate waits. */
export const FACTOR_TIMEOUT_MS = 180_000
/** Characters of the texts for a client that waits, for a channel that it opens later. */
export const MAX_ANNOUNCED = 8 * 1024
/** The window that the bastion grants a client for its menu. */
export const MENU_WINDOW = 4096
/** Time after sign-in without a channel, or without a key in the menu. */
export const LOBBY_IDLE_MS = 600_000
