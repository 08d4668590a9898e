/**
 * The one table of a peer's requests to the connection layer (RFC 4254), each with the right that it needs. A
 * request that is not in the table is refused to every peer. Values that a right alone does not decide (a
 * command's bytes, an address, a bind granted earlier) are checked where the message is handled, after this
 * table.
 */
import type { Right } from '../../../src/model/rights.ts'

/**
 * A right; `free`: needs none; `main`: the right follows from the request's own bytes (request.ts); `begun`:
 * belongs to the channel, whose main request needs the right, and has no effect without it.
 */
export type Rule = Right | 'free' | 'main' | 'begun'

export type Asking = 'channel' | 'global request' | 'channel request'

type Table = Record<Asking, ReadonlyMap<string, Rule>>

const rules = (given: Record<string, Rule>): ReadonlyMap<string, Rule> => new Map(Object.entries(given))

const OF_CLIENT: Table = {
  channel: rules({
    session: 'free',
    'direct-tcpip': 'SSH_DIRECT_TCPIP',
    'direct-streamlocal@openssh.com': 'SSH_DIRECT_UNIXSOCK',
  }),
  'global request': rules({
    'keepalive@openssh.com': 'free',
    'no-more-sessions@openssh.com': 'free',
    'tcpip-forward': 'SSH_REVERSE_TCPIP',
    'cancel-tcpip-forward': 'SSH_REVERSE_TCPIP',
    'streamlocal-forward@openssh.com': 'SSH_REVERSE_UNIXSOCK',
    'cancel-streamlocal-forward@openssh.com': 'SSH_REVERSE_UNIXSOCK',
  }),
  'channel request': rules({
    shell: 'main',
    exec: 'main',
    subsystem: 'main',
    'pty-req': 'begun',
    'window-change': 'begun',
    env: 'begun',
    signal: 'begun',
    break: 'begun',
    'xon-xoff': 'begun',
    'eow@openssh.com': 'begun',
    'simple@putty.projects.tartarus.org': 'free',
    'x11-req': 'SSH_X11',
    'auth-agent-req@openssh.com': 'SSH_AUTH_AGENT',
  }),
}

const OF_TARGET: Table = {
  // Each of these also needs an earlier grant to the client: a bind, or a request on a channel.
  channel: rules({
    'forwarded-tcpip': 'SSH_REVERSE_TCPIP',
    'forwarded-streamlocal@openssh.com': 'SSH_REVERSE_UNIXSOCK',
    x11: 'SSH_X11',
    'auth-agent@openssh.com': 'SSH_AUTH_AGENT',
  }),
  // hostkeys-00@openssh.com is refused: the target's keys do not concern the client.
  'global request': rules({ 'keepalive@openssh.com': 'free' }),
  'channel request': rules({
    'exit-status': 'begun',
    'exit-signal': 'begun',
    'xon-xoff': 'begun',
    'eow@openssh.com': 'begun',
  }),
}

/** Returns the rule for a peer's request, or undefined to refuse it. `name` has one character per byte. */
export function ruleOf(peer: 'client' | 'target', asking: Asking, name: string): Rule | undefined {
  return (peer === 'client' ? OF_CLIENT : OF_TARGET)[asking].get(name)
}

/** Whether a rule is a right that the session must have. */
export function isRight(rule: Rule): rule is Right {
  return rule !== 'free' && rule !== 'main' && rule !== 'begun'
}

/** Returns the whole table, for its test. */
export function tableOf(peer: 'client' | 'target'): Table {
  return peer === 'client' ? OF_CLIENT : OF_TARGET
}
