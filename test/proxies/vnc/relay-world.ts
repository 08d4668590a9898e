/** A relay between two ends in memory, with a session whose rights the test sets. */
import { Buffer } from 'node:buffer'
import type { ByteStream } from '../../../proxies/net/byte-stream.ts'
import { RGB888 } from '../../../proxies/vnc/codec/pixel-format.ts'
import { encodeServerInit } from '../../../proxies/vnc/codec/server-init.ts'
import type { SharedSession } from '../../../proxies/vnc/guests/shared-session.ts'
import type { ViewerState } from '../../../proxies/vnc/local/display.ts'
import { type LastWords, VncRelay } from '../../../proxies/vnc/relay/relay.ts'
import { VncSession } from '../../../proxies/vnc/relay/session.ts'
import { Viewer } from '../../../proxies/vnc/relay/viewer.ts'
import { FRAME, type FrameType } from '../../../recordings/container/frames.ts'
import type { Gate, OpenSession } from '../../../src/contract/gate.ts'
import { RDP_OPTIONS } from '../../../src/model/rdp-options.ts'
import type { Right } from '../../../src/model/rights.ts'
import { SESSION_OPTIONS } from '../../../src/model/session-options.ts'
import { VNC_OPTIONS, type VncOptions } from '../../../src/model/vnc-options.ts'
import { FakeStream } from '../net/fake-stream.ts'

export const INIT = { width: 100, height: 80, format: RGB888, name: 'desk' }

export interface World {
  viewer: FakeStream
  target: FakeStream
  session: VncSession
  /** The session for its guests. */
  room: SharedSession
  events: [code: string, fields: object][]
  frames: [type: FrameType, payload: Buffer][]
  /** Returns the recorded graphics, joined. */
  graphics(): Buffer
  lastWords: [LastWords, string][]
  closed: { result: string; reason?: string }[]
}

export const STATE: ViewerState = {
  size: { width: 100, height: 80 },
  format: RGB888,
  encodings: [],
  request: undefined,
  wish: undefined,
  cutText: undefined,
}

export async function newWorld(
  rights: Right[],
  options: Partial<VncOptions> = {},
  state: Partial<ViewerState> = {},
  opened: Partial<OpenSession> = {},
): Promise<World> {
  const events: World['events'] = []
  const closed: World['closed'] = []
  const gate = {
    event: async ({ code, fields }: { code: string; fields: object }) => void events.push([code, fields]),
    close: async ({ result, reason }: { result: string; reason?: string }) =>
      void closed.push({ result, ...(reason !== undefined && { reason }) }),
  } as unknown as Gate
  const session = await VncSession.of(
    {
      id: 'S',
      user: 'ops1',
      target: { canonical: 'root@local:desk1:vnc' },
      rights: ['VNC', ...rights],
      options: SESSION_OPTIONS,
      vncOptions: { ...VNC_OPTIONS, ...options },
      rdpOptions: RDP_OPTIONS,
      ...opened,
    } as unknown as OpenSession,
    gate,
  )
  const frames: World['frames'] = []
  Object.defineProperty(session.recording, 'isOn', { value: true })
  session.recording.write = (type, _channel, payload) => void frames.push([type, Buffer.from(payload)])
  const viewer = new FakeStream()
  const target = new FakeStream()
  const lastWords: World['lastWords'] = []
  const connected = new Viewer(viewer as unknown as ByteStream)
  connected.begin(encodeServerInit(INIT))
  viewer.take()
  const relay = new VncRelay({
    viewer: connected,
    state: { ...STATE, ...state },
    target: { stream: target as unknown as ByteStream, init: INIT },
    session,
    onLastWords: (last, reason) => void lastWords.push([last, reason]),
    onClosed: () => undefined,
  })
  // Without a viewer's SetEncodings the target gets the bastion's own.
  if ((state.encodings ?? []).length === 0) target.take()
  connected.onBroken = (error) => relay.broken(error)
  const graphics = () =>
    Buffer.concat(frames.filter(([type]) => type === FRAME.graphics).map(([, payload]) => payload))
  return { viewer, target, session, room: relay.room, events, frames, graphics, lastWords, closed }
}
