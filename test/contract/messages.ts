/** A message of each kind, as honest sides send them, for tests of their form and of their schemas. */
import { Buffer } from 'node:buffer'
import { FRAME } from '../../recordings/container/frames.ts'
import type { GateNotice, OpenAnswer, ProxyEventCode } from '../../src/contract/gate.ts'
import {
  type FromWorker,
  type GateMethod,
  type GateRequest,
  type ToWorker,
  WORKER_VERSION,
} from '../../src/contract/worker.ts'
import { LOGIN_OPTIONS } from '../../src/model/login-options.ts'
import { RDP_OPTIONS } from '../../src/model/rdp-options.ts'
import { RIGHTS } from '../../src/model/rights.ts'
import { SSH_OPTIONS } from '../../src/model/ssh-options.ts'
import { VNC_OPTIONS } from '../../src/model/vnc-options.ts'

const source = { address: '2001:db8::7', port: 4711 }
const bytes = (length: number) => Buffer.alloc(length, 'bytes')
const authenticate = (proof: GateRequest<'authenticate'>['proof']): GateRequest<'authenticate'> => ({
  protocol: 'SSH',
  source,
  login: 'ops1:root@srv1',
  proof,
})
const event = (code: ProxyEventCode, fields: object): GateRequest<'event'> => ({ session: 'S', code, fields })

/** Each request in each of its forms. */
export const EVERY_REQUEST: { readonly [M in GateMethod]: readonly GateRequest<M>[] } = {
  authenticate: [
    authenticate({ method: 'none' }),
    authenticate({ method: 'password', password: 'pässword\u0000\u{1f511}' }),
    authenticate({ method: 'keyboard-interactive', password: '' }),
    authenticate({ method: 'keyboard-interactive', challenge: 'C', answers: ['123456', ''] }),
    authenticate({ method: 'publickey', key: bytes(51) }),
    authenticate({ method: 'publickey', key: bytes(51), signed: { data: bytes(200), signature: bytes(83) } }),
    authenticate({ method: 'gssapi-with-mic', token: bytes(900) }),
    authenticate({ method: 'gssapi-with-mic', context: 'C', data: bytes(100), mic: bytes(28) }),
    authenticate({ method: 'ticket', challenge: bytes(16), response: bytes(16) }),
    authenticate({
      method: 'ntlm',
      proof: { user: 'ops1', domain: '', serverChallenge: bytes(8), response: bytes(300) },
    }),
  ],
  targets: [{ identity: 'T', protocol: 'VNC' }],
  open: [
    { identity: 'T', protocol: 'SSH', source },
    { identity: 'T', protocol: 'RDP', source, target: 'root@local:srv1:ssh', logon: { password: 'p' } },
    { identity: 'T', protocol: 'TELNET', source, logon: { login: 'root', password: '' } },
    { identity: 'T', protocol: 'SSH', source, reason: { comment: 'two\nlines', ticket: '' } },
    { identity: 'T', protocol: 'SSH', source, reason: { comment: '', ticket: 'CHG-1', duration: 600 } },
    { identity: 'T', protocol: 'SSH', source, approval: 'A' },
    { identity: 'T', protocol: 'VNC', source, factor: { challenge: 'C', answers: ['123456'] } },
  ],
  targetGssapi: [{ session: 'S' }, { session: 'S', answer: { token: bytes(200), data: bytes(100) } }],
  dial: [{ session: 'S' }],
  serviceTicket: [{ session: 'S' }],
  hostKey: [
    { session: 'S', key: bytes(51) },
    { session: 'S', key: bytes(900), kind: 'x509' },
  ],
  event: [
    event('command', { object: 'ls -l', confidence: 'exact' }),
    event('file.transfer', { path: '/tmp/x', direction: 'up', size: 2 ** 40, sha256: 'ab' }),
  ],
  denied: [{ identity: 'T', protocol: 'SSH', what: 'x11-req', reason: 'no session' }],
  sign: [{ session: 'S', statement: bytes(120) }],
  beginRecording: [{ session: 'S', parts: [bytes(300), new Uint8Array(0)] }],
  appendRecording: [{ session: 'S', offset: 2 ** 41, parts: [bytes(5), bytes(70_000)] }],
  endRecording: [{ session: 'S' }],
  close: [
    { session: 'S', result: 'success', bytesIn: 0, bytesOut: 2 ** 50, rightsUsed: [] },
    { session: 'S', result: 'killed', reason: 'idle', bytesIn: 1, bytesOut: 1, rightsUsed: [...RIGHTS] },
  ],
  live: [
    { session: 'S', frames: [] },
    {
      session: 'S',
      frames: [{ type: FRAME.output, channel: 0, time: 1_500_000, payload: bytes(80), after: 7 }],
      synced: { sync: 1, frames: 6 },
      lost: true,
    },
  ],
  counted: [{ session: 'S', bytesIn: 0, bytesOut: 2 ** 50 }],
  askCommand: [{ session: 'S', ask: 1, line: 'reboot', rule: 'reboot', screen: ['$ reboot', ''] }],
  giveUpCommand: [{ session: 'S', ask: 1 }],
  withdraw: [{ identity: 'T', approval: 'A' }],
  leave: [{ identity: 'T' }],
}

const opened: OpenAnswer = {
  result: 'opened',
  session: {
    id: 'S',
    user: 'ops1',
    target: {
      canonical: 'root@local:srv1:ssh',
      protocol: 'SSH',
      host: '192.0.2.1',
      port: 22,
      login: 'root',
      device: 'srv1',
      service: 'ssh',
    },
    credentials: [
      { type: 'password', password: 'p' },
      { type: 'ssh_certificate', privateKey: 'PEM', certificate: bytes(400) },
    ],
    hostKeyTypes: ['ssh-ed25519'],
    wantsHostCertificate: false,
    rights: ['SSH_SHELL'],
    limits: { forcedCommand: bytes(4), noTerminal: true },
    options: SSH_OPTIONS,
    loginOptions: LOGIN_OPTIONS,
    vncOptions: VNC_OPTIONS,
    rdpOptions: RDP_OPTIONS,
    isStrict: true,
    isSuspended: { reason: 'a watcher is missing' },
  },
}

const NOTICES: readonly GateNotice[] = [
  { type: 'stop', session: 'S', reason: 'ended by admin: ünd so' },
  { type: 'leave', identity: 'T', reason: 'expired' },
  { type: 'approval', identity: 'T', approval: 'A', state: 'accepted', text: 'accepted by ops2' },
  { type: 'suspend', session: 'S', reason: 'the watcher has left' },
  { type: 'resume', session: 'S' },
  { type: 'count', session: 'S' },
  { type: 'tell', session: 'S', text: 'in 5 minutes' },
  { type: 'watch', session: 'S', sync: 3 },
  { type: 'guest', session: 'S', invitation: 'I', change: { mode: 'control', by: 'admin' } },
  { type: 'guest', session: 'S', invitation: 'I', change: { out: 'withdrawn' } },
]

const settings = {
  hostname: 'bastion',
  loginGraceMs: 60_000,
  ssh: {
    hostKeys: ['PEM'],
    nextHostKeys: [],
    hostCertificates: [{ blob: bytes(300), key: bytes(51), validBefore: Date.UTC(2100) }],
  },
}

export const EVERY_MESSAGE: readonly (FromWorker | ToWorker)[] = [
  {
    type: 'ready',
    version: WORKER_VERSION,
    cage: {
      uid: 65_533,
      gid: 65_533,
      capabilities: false,
      noNewPrivileges: true,
      landlock: 7,
      seccomp: true,
      dumpable: false,
      permission: true,
      missing: ['no core dumps'],
    },
  },
  ...Object.entries(EVERY_REQUEST).flatMap(([method, requests]) =>
    requests.map((request, id): FromWorker => ({ type: 'ask', id, method: method as GateMethod, request })),
  ),
  { type: 'pong', number: 1, delayMs: 10.5 },
  { type: 'closed', connection: 1 },
  { type: 'drained' },
  { type: 'begin', version: WORKER_VERSION, settings },
  { type: 'settings', settings },
  { type: 'answer', id: 1, answer: opened },
  {
    type: 'answer',
    id: 1,
    answer: {
      result: 'reason_needed',
      question: { target: 'root@local:srv1:ssh', comment: 'mandatory', ticket: 'none', asksDuration: true },
    } satisfies OpenAnswer,
  },
  {
    type: 'answer',
    id: 1,
    answer: {
      result: 'approval_pending',
      wait: {
        approval: 'A',
        target: 'root@local:srv1:ssh',
        lines: ['asked: ops'],
        expires: 1_800_000_000_000,
      },
    } satisfies OpenAnswer,
  },
  { type: 'answer', id: 2, answer: bytes(64) },
  { type: 'failure', id: 3, message: 'there is no such session' },
  ...NOTICES.map((notice): ToWorker => ({ type: 'notice', notice })),
  { type: 'ping', number: 1 },
  { type: 'drain', graceMs: 1000, reason: 'the bastion is stopping' },
]
