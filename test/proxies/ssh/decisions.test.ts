/**
 * Every message of the connection layer × every set of rights: what is granted passes, and nothing else does. The
 * expectations are written here a second time, from the rights' meaning, and not taken from the code's table.
 */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
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
} from '../../../proxies/ssh/codec/build.ts'
import {
  buildAddress,
  buildConnection,
  buildDirectSocket,
  buildForwardedSocket,
  buildSocketPath,
  buildX11Request,
} from '../../../proxies/ssh/codec/forwarding.ts'
import {
  MSG,
  parseChannelOpen,
  parseChannelRequest,
  parseGlobalRequest,
} from '../../../proxies/ssh/codec/messages.ts'
import { type Asking, tableOf } from '../../../proxies/ssh/decisions.ts'
import { RIGHTS, type Right } from '../../../src/model/rights.ts'
import { newWorld, open, type World } from './relay-world.ts'

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

interface Case {
  title: string
  /** All of these, or one of them; `always`: whatever they are; undefined: under no rights. */
  needs: Right[] | { oneOf: Right[] } | 'always' | undefined
  /** Does it, and answers whether it has passed to the other side. */
  passes: (world: World) => Promise<boolean>
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
      const id = openSession()
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
  prepare?: (world: World) => Promise<void>,
): Case {
  return {
    title: `the target opens ${title}`,
    needs,
    passes: async (world) => {
      await prepare?.(world)
      world.target.say(open(type, 9, data))
      await world.settle()
      return opensAt(world.client.sent).includes(type)
    },
  }
}

async function bound({ client, target, settle }: World, name: string, data: Uint8Array): Promise<void> {
  client.say(buildGlobalRequest({ name, wantReply: true, data }))
  await settle()
  if (globalsAt(target.sent).includes(name)) target.say(buildRequestSuccess())
}

async function runs(world: World, request: (id: number) => Buffer): Promise<void> {
  const id = world.openSession()
  world.client.say(request(id))
  if (requestsAt(world.target.sent).length > 0) world.target.say(buildChannelSuccess(id))
  world.client.say(buildExec(id, false, 'id'))
  await world.settle()
}

const connection = buildConnection({ to: TO, from: FROM })
const bind = buildAddress(BIND)
const atBind = buildConnection({ to: BIND, from: FROM })

const CASES: Case[] = [
  clientOpens('session', 'always'),
  clientOpens('direct-tcpip', ['SSH_DIRECT_TCPIP'], connection),
  clientOpens('direct-streamlocal@openssh.com', ['SSH_DIRECT_UNIXSOCK'], buildDirectSocket('/run/x')),
  ...['tun@openssh.com', 'forwarded-tcpip', 'x11', 'auth-agent@openssh.com', 'unknown', '', 'Session'].map(
    (type) => clientOpens(type, undefined, connection),
  ),
  clientAsks('tcpip-forward', ['SSH_REVERSE_TCPIP'], bind),
  clientAsks('streamlocal-forward@openssh.com', ['SSH_REVERSE_UNIXSOCK'], buildSocketPath('/run/x')),
  // Nothing is bound that could be cancelled.
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
  clientRequests('SFTP', { oneOf: ['SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN'] }, (id) =>
    buildSubsystem(id, true, 'sftp'),
  ),
  clientRequests('another subsystem', undefined, (id) => buildSubsystem(id, true, 'netconf')),
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
  targetOpens('forwarded-tcpip of a bind', 'forwarded-tcpip', ['SSH_REVERSE_TCPIP'], atBind, (world) =>
    bound(world, 'tcpip-forward', bind),
  ),
  targetOpens(
    'forwarded-tcpip of another port',
    'forwarded-tcpip',
    undefined,
    buildConnection({ to: { ...BIND, port: 8081 }, from: FROM }),
    (world) => bound(world, 'tcpip-forward', bind),
  ),
  targetOpens(
    'forwarded-streamlocal of a bind',
    'forwarded-streamlocal@openssh.com',
    ['SSH_REVERSE_UNIXSOCK'],
    buildForwardedSocket('/run/x'),
    (world) => bound(world, 'streamlocal-forward@openssh.com', buildSocketPath('/run/x')),
  ),
  targetOpens(
    'forwarded-streamlocal',
    'forwarded-streamlocal@openssh.com',
    undefined,
    buildForwardedSocket('/run/x'),
  ),
  targetOpens('x11', 'x11', undefined, buildAddress(FROM)),
  targetOpens('x11 for a program', 'x11', ['SSH_X11', 'SSH_REMOTE_COMMAND'], buildAddress(FROM), (world) =>
    runs(world, (id) => buildChannelRequest(id, 'x11-req', true, X11)),
  ),
  targetOpens('auth-agent', 'auth-agent@openssh.com', undefined, NOTHING),
  targetOpens(
    'auth-agent for a program',
    'auth-agent@openssh.com',
    ['SSH_AUTH_AGENT', 'SSH_REMOTE_COMMAND'],
    NOTHING,
    (world) => runs(world, (id) => buildChannelRequest(id, 'auth-agent-req@openssh.com', true)),
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
        passes: async ({ client, target, openSession }) => {
          const id = openSession()
          client.say(Buffer.from([type, 0, 0, 0, id, 0, 0, 0, 0]))
          return target.sent.some(([first]) => first === type)
        },
      }),
    ),
]

/** All sets of the rights that the cases are about, 2^11. */
const SETS = Array.from({ length: 2 ** RIGHTS.length }, (_, bits) =>
  RIGHTS.filter((_right, n) => bits & (1 << n)),
)

test.each(CASES.map((one) => [one.title, one] as const))('%s', async (_, { needs, passes }) => {
  for (const rights of SETS) {
    const world = newWorld(rights)
    const holds = (right: Right) => rights.includes(right)
    const expected =
      needs === 'always' ||
      (needs !== undefined && ('oneOf' in needs ? needs.oneOf.some(holds) : needs.every(holds)))
    const passed = await passes(world)
    world.end()
    if (passed !== expected) expect({ rights, passed }).toEqual({ rights, passed: expected })
  }
})

test('each entry of the table is tried', () => {
  const tried = CASES.map(({ title }) => title).join('\n')
  const other: Record<string, string> = {
    exec: 'a command',
    shell: 'a shell',
    subsystem: 'another subsystem',
    env: 'LANG',
    'pty-req': 'a terminal',
    'auth-agent-req@openssh.com': 'auth-agent-req',
    'forwarded-streamlocal@openssh.com': 'forwarded-streamlocal',
    'auth-agent@openssh.com': 'auth-agent',
  }
  /** Do nothing but for a program that runs, which its right was asked for. */
  const idle = [
    'window-change',
    'signal',
    'break',
    'xon-xoff',
    'eow@openssh.com',
    'exit-signal',
    'simple@putty.projects.tartarus.org',
  ]
  for (const peer of ['client', 'target'] as const) {
    for (const asking of Object.keys(tableOf(peer)) as Asking[]) {
      for (const name of tableOf(peer)[asking].keys()) {
        if (idle.includes(name) || (peer === 'target' && name === 'exit-status')) continue
        expect(tried).toContain(other[name] ?? name)
      }
    }
  }
})
