/** Describes frames other than terminal output in a line of text that is safe to show. */
import { FRAME, type Frame, type FrameType } from '../container/frames.ts'
import { countOf, jsonOf, sizeOf } from './frames/payload.ts'
import { parseDesktopSize, parseKey, parsePointer } from './graphics/events.ts'
import { harmless } from './terminal/filter.ts'

const NAMES = new Map<FrameType, string>(
  Object.entries(FRAME).map(([name, type]): [FrameType, string] => [
    type,
    name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
  ]),
)

/** Returns a frame type's name in exports: `output`, `channel_open` … */
export function frameName(type: FrameType): string {
  return NAMES.get(type) ?? String(type)
}

/** Returns the fields of a structured frame, or undefined for streams and malformed payloads. */
export function fieldsOf(frame: Frame): Record<string, unknown> | undefined {
  switch (frame.type) {
    case FRAME.output:
    case FRAME.errorOutput:
    case FRAME.input:
    case FRAME.graphics:
    case FRAME.pixelFormat:
      return undefined
    case FRAME.inputWithheld: {
      const bytes = countOf(frame.payload)
      return bytes === undefined ? undefined : { bytes }
    }
    case FRAME.resize: {
      const size = sizeOf(frame.payload)
      return size && { ...size }
    }
    case FRAME.desktopSize:
      return copyOf(parseDesktopSize(frame.payload))
    case FRAME.pointer:
      return copyOf(parsePointer(frame.payload))
    case FRAME.key:
      return copyOf(parseKey(frame.payload))
    case FRAME.channelClose:
      return {}
    default:
      return copyOf(jsonOf(frame.payload))
  }
}

function copyOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? { ...value } : undefined
}

/** Returns `[12.345 file operation=open path=/etc/motd result=ok]`: time in seconds. */
export function describeFrame(frame: Frame): string {
  const fields = Object.entries(fieldsOf(frame) ?? { bytes: frame.payload.length })
  const words = fields.map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return harmless(`[${(frame.time / 1e6).toFixed(3)} ${[frameName(frame.type), ...words].join(' ')}]`)
}
