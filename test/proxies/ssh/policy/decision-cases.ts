/**
 * The peers' requests to the connection layer and the rights that each needs, written from the rights'
 * meaning and not from the code's table.
 */
import { Buffer } from 'node:buffer'
import {
  buildChannelRequest,
  buildChannelSuccess,
  buildEnv,
  buildExec,
  buildGlobalRequest,
  buildPtyRequest,
  buildRequestSuccess,
  buildShell,
  buildSubsystem,
} from '../../../../proxies/ssh/codec/build.ts'
import {
  buildAddress,
  buildConnection,
  buildDirectSocket,
  buildForwardedSocket,
  buildSocketPath,
  buildX11Request,
} from '../../../../proxies/ssh/codec/forwarding.ts'
import {
  MSG,
  parseChannelOpen,
  parseChannelRequest,
  parseGlobalRequest,
} from '../../../../proxies/ssh/codec/messages.ts'
import type { Right } from '../../../../src/model/rights.ts'
import { open, type Peers } from '../relay-world.ts'

const NOTHING = new Uint8Array(0)
const TO = { host: 'db1', port: 5432 }
const FROM = { host: '192.0.2.1', port: 1 }
const BIND = { host: 'localhost', port: 8080 }
const X11 = buildX11Request({
  singleConnection: false,
  protocol: 'MIT-MAGIC-COOKIE-1',
  cookie: '00112233445566778899aabbccddeeff',
  screen: 0,
})
const PTY = { terminal: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0, modes: NOTHING }

/** The connection policy that the cases need. */
export const POLICY = { subsystems: ['netconf'] }

export interface Case {
  title: string
  /** All of these rights, or one of them; `always` for any rights. Undefined if no rights suffice. */
  needs: Right[] | { oneOf: Right[] } | 'always' | undefined
  /** Sends the request, and returns whether the bastion has forwarded it to the other side. */
  passes: (peers: Peers) => Promise<boolean>
}

const names = (sent: Buffer[], type: number, name: (message: Buffer) => string): string[] =>
  sent.filter(([first]) => first === type).map(name)
const opensAt = (sent: Buffer[]) => names(sent, MSG.channelOpen, (message) => parseChannelOpen(message).type)
const requestsAt = (sent: Buffer[]) =>
  names(sent, MSG.channelRequest, (message) => parseChannelRequest(message).type)
const globalsAt = (sent: Buffer[]) =>
  names(sent, MSG.globalRequest, (message) => parseGlobalRequest(message).name)

function clientOpens(type: string, needs: Case['needs'], data: Uint8Array = NOTHING): Case {
  return {
    title: `the client opens ${type}`,
    needs,
    passes: async ({ client, target, settle }) => {
      client.say(open(type, 9, data))
      await settle()
      return opensAt(target.sent).includes(type)
    },
  }
}

function clientAsks(name: string, needs: Case['needs'], data: Uint8Array = NOTHING): Case {
  return {
    title: `the client asks ${name}`,
    needs,
    passes: async ({ client, target, settle }) => {
      client.say(buildGlobalRequest({ name, wantReply: true, data }))
      await settle()
      return globalsAt(target.sent).includes(name)
    },
  }
}

function clientRequests(title: string, needs: Case['needs'], ...messages: ((id: number) => Buffer)[]): Case {
  return {
    title: `the client requests ${title}`,
    needs,
    passes: async ({ client, target, settle, openSession }) => {
      const id = await openSession()
      const built = messages.map((message) => message(id))
      const { type } = parseChannelRequest(built.at(-1)!)
      client.say(...built)
      await settle()
      return requestsAt(target.sent).includes(type)
    },
  }
}

function targetOpens(
  title: string,
  type: string,
  needs: Case['needs'],
  data: Uint8Array,
  prepare?: (peers: Peers) => Promise<void>,
): Case {
  return {
    title: `the target opens ${title}`,
    needs,
    passes: async (peers) => {
      await prepare?.(peers)
      peers.target.say(open(type, 9, data))
      await peers.settle()
      return opensAt(peers.client.sent).includes(type)
    },
  }
}

async function bound({ client, target, settle }: Peers, name: string, data: Uint8Array): Promise<void> {
  client.say(buildGlobalRequest({ name, wantReply: true, data }))
  await settle()
  if (globalsAt(target.sent).includes(name)) target.say(buildRequestSuccess())
}

async function runs(peers: Peers, request: (id: number) => Buffer): Promise<void> {
  const id = await peers.openSession()
  peers.client.say(request(id))
  await peers.settle()
  if (requestsAt(peers.target.sent).length > 0) peers.target.say(buildChannelSuccess(id))
  peers.client.say(buildExec(id, false, 'id'))
  await peers.settle()
}

const connection = buildConnection({ to: TO, from: FROM })
const bind = buildAddress(BIND)
const atBind = buildConnection({ to: BIND, from: FROM })

export const CASES: Case[] = [
  clientOpens('session', 'always'),
  clientOpens('direct-tcpip', ['SSH_DIRECT_TCPIP'], connection),
  clientOpens('direct-streamlocal@openssh.com', ['SSH_DIRECT_UNIXSOCK'], buildDirectSocket('/run/x')),
  ...['tun@openssh.com', 'forwarded-tcpip', 'x11', 'auth-agent@openssh.com', 'unknown', '', 'Session'].map(
    (type) => clientOpens(type, undefined, connection),
  ),
  clientAsks('tcpip-forward', ['SSH_REVERSE_TCPIP'], bind),
  clientAsks('streamlocal-forward@openssh.com', ['SSH_REVERSE_UNIXSOCK'], buildSocketPath('/run/x')),
  // There is no bind to cancel.
  clientAsks('cancel-tcpip-forward', undefined, bind),
  clientAsks('cancel-streamlocal-forward@openssh.com', undefined, buildSocketPath('/run/x')),
  ...['no-more-sessions@openssh.com', 'keepalive@openssh.com', 'hostkeys-prove-00@openssh.com', 'x'].map(
    (name) => clientAsks(name, undefined),
  ),
  clientRequests('a shell', ['SSH_SHELL'], (id) => buildShell(id, true)),
  clientRequests('a command', ['SSH_REMOTE_COMMAND'], (id) => buildExec(id, true, 'id')),
  clientRequests('a copy to', ['SSH_SCP_UP'], (id) => buildExec(id, true, 'scp -t /tmp/x')),
  clientRequests('a copy from', ['SSH_SCP_DOWN'], (id) => buildExec(id, true, 'scp -f /tmp/x')),
  clientRequests(
    'a copy on a terminal',
    ['SSH_REMOTE_COMMAND'],
    (id) => buildPtyRequest(id, true, PTY),
    (id) => buildExec(id, true, 'scp -f /tmp/x'),
  ),
  clientRequests('more than a copy', ['SSH_REMOTE_COMMAND'], (id) =>
    buildExec(id, true, 'scp -t /tmp/x; sh'),
  ),
  clientRequests('rsync', ['SSH_REMOTE_COMMAND'], (id) => buildExec(id, true, 'rsync --server -e. . /tmp')),
  clientRequests('SFTP, if only one way', { oneOf: ['SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN'] }, (id) =>
    buildSubsystem(id, true, 'sftp'),
  ),
  clientRequests(
    'SFTP on a terminal',
    undefined,
    (id) => buildPtyRequest(id, true, PTY),
    (id) => buildSubsystem(id, true, 'sftp'),
  ),
  clientRequests('a subsystem of POLICY', ['SSH_REMOTE_COMMAND'], (id) =>
    buildSubsystem(id, true, 'netconf'),
  ),
  clientRequests('another subsystem', undefined, (id) => buildSubsystem(id, true, 'netconf2')),
  clientRequests('x11-req', ['SSH_X11'], (id) => buildChannelRequest(id, 'x11-req', true, X11)),
  clientRequests('auth-agent-req', ['SSH_AUTH_AGENT'], (id) =>
    buildChannelRequest(id, 'auth-agent-req@openssh.com', true),
  ),
  clientRequests('a terminal', 'always', (id) => buildPtyRequest(id, true, PTY)),
  clientRequests('LANG', 'always', (id) => buildEnv(id, true, 'LANG', 'C')),
  clientRequests('LD_PRELOAD', undefined, (id) => buildEnv(id, true, 'LD_PRELOAD', '/tmp/x.so')),
  clientRequests('something else', undefined, (id) => buildChannelRequest(id, 'unknown', true)),
  clientRequests('an exit status', undefined, (id) => buildChannelRequest(id, 'exit-status', false, NOTHING)),
  targetOpens('forwarded-tcpip', 'forwarded-tcpip', undefined, atBind),
  targetOpens('forwarded-tcpip of a bind', 'forwarded-tcpip', ['SSH_REVERSE_TCPIP'], atBind, (peers) =>
    bound(peers, 'tcpip-forward', bind),
  ),
  targetOpens(
    'forwarded-tcpip of another port',
    'forwarded-tcpip',
    undefined,
    buildConnection({ to: { ...BIND, port: 8081 }, from: FROM }),
    (peers) => bound(peers, 'tcpip-forward', bind),
  ),
  targetOpens(
    'forwarded-streamlocal of a bind',
    'forwarded-streamlocal@openssh.com',
    ['SSH_REVERSE_UNIXSOCK'],
    buildForwardedSocket('/run/x'),
    (peers) => bound(peers, 'streamlocal-forward@openssh.com', buildSocketPath('/run/x')),
  ),
  targetOpens(
    'forwarded-streamlocal',
    'forwarded-streamlocal@openssh.com',
    undefined,
    buildForwardedSocket('/run/x'),
  ),
  targetOpens('x11', 'x11', undefined, buildAddress(FROM)),
  targetOpens('x11 for a program', 'x11', ['SSH_X11', 'SSH_REMOTE_COMMAND'], buildAddress(FROM), (peers) =>
    runs(peers, (id) => buildChannelRequest(id, 'x11-req', true, X11)),
  ),
  targetOpens('auth-agent', 'auth-agent@openssh.com', undefined, NOTHING),
  targetOpens(
    'auth-agent for a program',
    'auth-agent@openssh.com',
    ['SSH_AUTH_AGENT', 'SSH_REMOTE_COMMAND'],
    NOTHING,
    (peers) => runs(peers, (id) => buildChannelRequest(id, 'auth-agent-req@openssh.com', true)),
  ),
  ...['session', 'direct-tcpip', 'direct-streamlocal@openssh.com', 'tun@openssh.com', 'unknown'].map((type) =>
    targetOpens(type, type, undefined, connection),
  ),
  ...['tcpip-forward', 'hostkeys-00@openssh.com', 'keepalive@openssh.com', 'unknown'].map(
    (name): Case => ({
      title: `the target asks ${name}`,
      needs: undefined,
      passes: async ({ client, target }) => {
        target.say(buildGlobalRequest({ name, wantReply: true, data: bind }))
        return globalsAt(client.sent).length > 0
      },
    }),
  ),
  ...Array.from({ length: 48 }, (_, n) => 80 + n)
    .filter((type) => !Object.values<number>(MSG).includes(type))
    .map(
      (type): Case => ({
        title: `the client sends a message ${type}`,
        needs: undefined,
        passes: async ({ client, target, settle, openSession }) => {
          const id = await openSession()
          client.say(Buffer.from([type, 0, 0, 0, id, 0, 0, 0, 0]))
          await settle()
          return target.sent.some(([first]) => first === type)
        },
      }),
    ),
]

/** Whether a request with these needs may be forwarded under these rights. */
export function isGranted(needs: Case['needs'], rights: readonly Right[]): boolean {
  if (needs === 'always' || needs === undefined) return needs === 'always'
  if ('oneOf' in needs) return needs.oneOf.some((right) => rights.includes(right))
  return needs.every((right) => rights.includes(right))
}
