/** Bounds on a client that is signed in and has no target yet. */

/** How long a client may take to say whether it forwards its agent, and that agent to answer: somebody may have to confirm. */
export const AGENT_REQUEST_MS = 10_000
/** And how long for its main request behind that, before its agent is asked all the same. */
export const MAIN_REQUEST_MS = 250
export const AGENT_ANSWER_MS = 20_000
/** Keys of the user's agent that are offered to a target; most end the sign-in sooner (sshd's MaxAuthTries). */
export const MAX_AGENT_KEYS = 16
/** Logins at targets, typed by somebody on one connection, that were refused before it is ended. */
export const MAX_LOGON_REFUSALS = 3
/** How long somebody may take to type one. */
export const LOGON_TIMEOUT_MS = 120_000
/** What the bastion itself grants a client to type in its menu. */
export const MENU_WINDOW = 4096
/** How long somebody who has signed in may take to open a channel, or sit in the menu without a key. */
export const LOBBY_IDLE_MS = 600_000
