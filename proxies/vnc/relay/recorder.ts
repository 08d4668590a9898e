/** Records a VNC desktop: the target's own bytes, and its users' actions. */
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

  /** Records the format, which holds from the next `graphics` frame on. */
  pixelFormat(format: PixelFormat): void {
    this.write(FRAME.pixelFormat, encodePixelFormat(format))
  }

  /** Records a participant's arrival, leaving, or change of rights. */
  participant(entry: Participant): void {
    this.json(FRAME.participant, entry)
  }
}
