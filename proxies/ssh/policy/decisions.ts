/**
 * The one table of what a peer may ask of the connection layer (RFC 4254), and the right that it takes. What is not in
 * it is refused, whoever asks. Values that a right alone does not decide (a command's bytes, an address, a bind that
 * was granted before) are looked at where the message is handled, after this table has been asked.
 */
import type { Right } from '../../../src/model/rights.ts'

/**
 * A right; `free`: needs none; `main`: the right follows from the request's own bytes (request.ts); `begun`: goes with
 * the channel, whose main request is asked for its right, and does nothing without that.
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
  // Each of these also needs what the client was granted before: a bind, or a request on a channel.
  channel: rules({
    'forwarded-tcpip': 'SSH_REVERSE_TCPIP',
    'forwarded-streamlocal@openssh.com': 'SSH_REVERSE_UNIXSOCK',
    x11: 'SSH_X11',
    'auth-agent@openssh.com': 'SSH_AUTH_AGENT',
  }),
  // Among what is refused is hostkeys-00@openssh.com: the target's keys are none of the client's business.
  'global request': rules({ 'keepalive@openssh.com': 'free' }),
  'channel request': rules({
    'exit-status': 'begun',
    'exit-signal': 'begun',
    'xon-xoff': 'begun',
    'eow@openssh.com': 'begun',
  }),
}

/** The rule for what a peer asks for; undefined: it is refused. `name` has one character for each byte. */
export function ruleOf(peer: 'client' | 'target', asking: Asking, name: string): Rule | undefined {
  return (peer === 'client' ? OF_CLIENT : OF_TARGET)[asking].get(name)
}

/** Whether a rule is a right that the session has to have. */
export function isRight(rule: Rule): rule is Right {
  return rule !== 'free' && rule !== 'main' && rule !== 'begun'
}

/** All that the table knows, for its test. */
export function tableOf(peer: 'client' | 'target'): Table {
  return peer === 'client' ? OF_CLIENT : OF_TARGET
}
