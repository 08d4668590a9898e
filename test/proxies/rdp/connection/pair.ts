/** The front's and the back's end of RDP, joined in memory: the bastion as its own client. */
import { parseClientData } from '../../../../proxies/rdp/codec/client-data.ts'
import { type ClientInfo, forTarget, INFO_FLAG } from '../../../../proxies/rdp/codec/client-info.ts'
import { BLOCK } from '../../../../proxies/rdp/codec/data-blocks.ts'
import { buildNoLicense } from '../../../../proxies/rdp/codec/licensing.ts'
import {
  BackConnection,
  type BackConnectionOptions,
  type Licensee,
} from '../../../../proxies/rdp/connection/back-connection.ts'
import { FrontConnection } from '../../../../proxies/rdp/connection/front-connection.ts'
import { type Event, hex, keep } from '../../stream-events.ts'
import { clientCore } from './target.ts'

export const CHANNELS = [
  { name: 'rdpdr', options: 0x80800000 },
  { name: 'cliprdr', options: 0xc0a00000 },
]

const INFO: ClientInfo = {
  codePage: 0x409,
  flags: INFO_FLAG.mouse,
  domain: '',
  login: '',
  password: '',
  alternateShell: '',
  workingFolder: '',
  extended: new Uint8Array(0),
}

/** Has no license, and requests none. */
export const WITHOUT_LICENSE: Licensee = { answer: () => buildNoLicense() }

export interface Pair {
  front: FrontConnection
  back: BackConnection
  /** Events of each end, in order; `info` without its irrelevant fields. */
  heard: { front: Event[]; back: Event[] }
  /** Carries bytes between the ends until neither sends any; `through` may change them. */
  run(through?: (to: 'front' | 'back', bytes: Uint8Array) => Uint8Array): void
}

export interface PairOptions {
  licensing?: BackConnectionOptions['licensing']
  /** Called when the front has login and password. Default: calls `licensed`. */
  logon?: (front: FrontConnection) => void
}

export function joinEnds({ licensing = WITHOUT_LICENSE, logon }: PairOptions = {}): Pair {
  const heard: Pair['heard'] = { front: [], back: [] }
  const waiting: { to: 'front' | 'back'; bytes: Uint8Array }[] = []
  const note =
    (end: 'front' | 'back', kind: string) =>
    (...values: unknown[]): void =>
      keep(heard[end], kind, ...values.map((value) => (value instanceof Uint8Array ? hex(value) : value)))
  const session = (end: 'front' | 'back') => ({
    license: note(end, 'license'),
    io: note(end, 'io'),
    channel: note(end, 'channel'),
    fastPath: note(end, 'fastPath'),
    disconnect: note(end, 'disconnect'),
  })
  const front = new FrontConnection({
    requestedProtocols: 3,
    write: (bytes) => waiting.push({ to: 'back', bytes }),
    visitor: {
      ...session('front'),
      settings: ({ core, channels }) => note('front', 'settings')(core.width, core.height, channels),
      logon: ({ login, password }) => {
        note('front', 'logon')(login, password)
        if (logon) logon(front)
        else front.licensed()
      },
    },
  })
  const back = new BackConnection({
    client: parseClientData([{ type: BLOCK.clientCore, body: clientCore(800, 600) }]),
    view: { selectedProtocol: 1, channels: CHANNELS, colourDepth: 32 },
    info: forTarget(INFO, { domain: '', login: 'root', password: 'Target-Pass1' }),
    licensing,
    write: (bytes) => waiting.push({ to: 'front', bytes }),
    visitor: { ...session('back'), licensed: note('back', 'licensed') },
  })
  return {
    front,
    back,
    heard,
    run: (through = (_, bytes) => bytes) => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const bytes = through(next.to, next.bytes)
        if (next.to === 'front') front.receive(bytes)
        else back.receive(bytes)
      }
    },
  }
}
