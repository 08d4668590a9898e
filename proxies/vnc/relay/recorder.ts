/** What of a VNC desktop goes into the recording: the target's own bytes, and what its users do. */
import { type ChannelOpen, FRAME, type Participant } from '../../../recordings/container/frames.ts'
import { DesktopRecorder } from '../../desktop/recorder.ts'
import { encodePixelFormat, type PixelFormat } from '../codec/pixel-format.ts'
import type { ServerInit } from '../codec/server-init.ts'

export class VncRecorder extends DesktopRecorder {
  open({ width, height, name }: ServerInit, format: PixelFormat): void {
    const open: ChannelOpen = { kind: 'vnc', subprotocol: 'VNC', desktop: { width, height, name } }
    this.json(FRAME.channelOpen, open)
    this.pixelFormat(format)
  }

  /** From the next message of `graphics` on. */
  pixelFormat(format: PixelFormat): void {
    this.write(FRAME.pixelFormat, encodePixelFormat(format))
  }

  /** Of those who take part, who comes, goes, and may do what. */
  participant(entry: Participant): void {
    this.json(FRAME.participant, entry)
  }
}
