/** Sessions and options for an RDP back in tests, without a gate or a client. */
import { openRdpTarget, type RdpBackOptions } from '../../../proxies/rdp/back/back.ts'
import type { LogonJudgement } from '../../../proxies/rdp/back/logon-watch.ts'
import type { RdpTarget } from '../../../proxies/rdp/back/target.ts'
import { buildConfirmActive, parseDemandActive } from '../../../proxies/rdp/codec/active.ts'
import { readDesktop, type Desktop as Size } from '../../../proxies/rdp/codec/capabilities.ts'
import { parseClientData } from '../../../proxies/rdp/codec/client-data.ts'
import { type ClientInfo, INFO_FLAG } from '../../../proxies/rdp/codec/client-info.ts'
import { BLOCK } from '../../../proxies/rdp/codec/data-blocks.ts'
import { SERVER_USER } from '../../../proxies/rdp/codec/mcs.ts'
import {
  buildControl,
  buildFontList,
  buildSynchronize,
  CONTROL_ACTION,
} from '../../../proxies/rdp/codec/session-pdus.ts'
import { buildShareData, CONTROL_PDU, parseShare, type ShareData } from '../../../proxies/rdp/codec/share.ts'
import type { Update } from '../../../proxies/rdp/codec/updates.ts'
import { SessionFilter } from '../../../proxies/rdp/connection/session-filter.ts'
import type { Gate, HostKeyAnswer, OpenSession } from '../../../src/contract/gate.ts'
import { LOGIN_OPTIONS } from '../../../src/model/login-options.ts'
import { RDP_OPTIONS, type RdpOptions } from '../../../src/model/rdp-options.ts'
import { SSH_OPTIONS } from '../../../src/model/ssh-options.ts'
import { VNC_OPTIONS } from '../../../src/model/vnc-options.ts'
import { clientCapabilities, clientCore } from './connection/target.ts'

export interface SessionOptions {
  port: number
  login?: string
  password?: string
  rdp?: Partial<RdpOptions>
  hasKerberos?: true
}

export function rdpSession({
  port,
  login = 'root',
  password,
  rdp,
  hasKerberos,
}: SessionOptions): OpenSession {
  return {
    id: 'session',
    user: 'ops1',
    target: {
      canonical: 'root@local:win1:rdp',
      protocol: 'RDP',
      host: '127.0.0.1',
      port,
      login,
      device: 'win1',
      service: 'rdp',
    },
    credentials: password === undefined ? [] : [{ type: 'password', password }],
    hostKeyTypes: [],
    wantsHostCertificate: false,
    rights: ['RDP'],
    options: SSH_OPTIONS,
    loginOptions: LOGIN_OPTIONS,
    vncOptions: VNC_OPTIONS,
    rdpOptions: { ...RDP_OPTIONS, ...rdp },
    ...(hasKerberos && { hasKerberos }),
  }
}

/** Client Info with a login other than the target's account. */
const INFO: ClientInfo = {
  codePage: 0,
  flags: INFO_FLAG.mouse | INFO_FLAG.compression,
  domain: '',
  login: 'alice',
  password: '',
  alternateShell: '/bin/false',
  workingFolder: '',
  // IPv4; no address, folder, time zone, session or cookie.
  extended: Buffer.concat([Buffer.from([2, 0, 2, 0, 0, 0, 2, 0, 0, 0]), Buffer.alloc(172 + 4 + 4 + 2)]),
}

export const noTicket: Gate['serviceTicket'] = async () => ({
  result: 'failed',
  message: 'none is issued here',
})

/** Opens a target for a client of 800x600; `keys` collects the certificates shown to the gate. */
export async function openTarget(
  session: SessionOptions,
  options: Partial<RdpBackOptions> & { keys?: Uint8Array[] } = {},
): Promise<RdpTarget> {
  const { keys = [], ...rest } = options
  return await openRdpTarget(rdpSession(session), {
    gate: {
      hostKey: async ({ key }): Promise<HostKeyAnswer> => {
        keys.push(key)
        return { result: 'accepted' }
      },
      serviceTicket: noTicket,
    },
    onFallback: async () => {},
    signal: AbortSignal.timeout(25_000),
    client: parseClientData([{ type: BLOCK.clientCore, body: clientCore(800, 600) }]),
    info: INFO,
    channels: [],
    licensing: 'answered',
    ...rest,
  })
}

/** A target's desktop as shown to a client of bitmaps. */
export interface Desktop {
  size?: Size
  updates: Update[]
  errorInfo: number[]
  /** Set if the target's logon is watched. */
  judgement?: LogonJudgement
  isClosed: boolean
  error?: unknown
  close(): void
}

/** Accepts the target's desktop, as a relay and its client do. */
export function takeDesktop(target: RdpTarget): Desktop {
  const { stream, connection, watch } = target
  const seen: Desktop = {
    updates: [],
    errorInfo: [],
    isClosed: stream.closed,
    close: () => {
      watch?.stop()
      stream.destroy()
    },
  }
  const send = (data: ShareData) => connection.sendIo(buildShareData(data, connection.user))
  const filter = new SessionFilter(
    {
      desktop: (size) => {
        seen.size = size
      },
      deactivated: () => {},
      confirmed: () => {},
      update: ({ code, data }) => {
        const update = { code, data: Uint8Array.from(data) }
        seen.updates.push(update)
        watch?.update(update)
      },
      skips: () => false,
      input: () => true,
      sessionInfo: (info) => watch?.sessionInfo(info),
      errorInfo: (code) => {
        seen.errorInfo.push(code)
        watch?.errorInfo(code)
      },
      redirected: () => {},
    },
    connection.user,
  )
  const confirm = (demand: Uint8Array): void => {
    const { shareId, capabilities } = parseDemandActive(parseShare(demand)[0]!.body)
    const ours = { shareId, capabilities: clientCapabilities(readDesktop(capabilities)) }
    for (const pdu of filter.fromClient(buildConfirmActive(ours, connection.user))) connection.sendIo(pdu)
    send(buildSynchronize(shareId, SERVER_USER))
    send(buildControl(shareId, CONTROL_ACTION.cooperate))
    send(buildControl(shareId, CONTROL_ACTION.requestControl))
    send(buildFontList(shareId))
  }
  if (watch) {
    watch.onJudged = (judgement) => {
      seen.judgement = judgement
    }
    watch.start()
  }
  stream.onData = (chunk) => {
    try {
      target.receive(chunk)
    } catch (error) {
      seen.error = error
      stream.destroy()
    }
  }
  stream.onClosed = () => {
    seen.isClosed = true
  }
  target.visitor = {
    license: () => {},
    licensed: () => {},
    channel: () => {},
    fastPath: (pdu) => filter.fastPathFromTarget(pdu),
    disconnect: () => stream.destroy(),
    io: (data) => {
      for (const pdu of filter.fromTarget(data)) {
        if (parseShare(pdu)[0]?.type === CONTROL_PDU.demandActive) confirm(pdu)
      }
    },
  }
  stream.paused = false
  return seen
}
