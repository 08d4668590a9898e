/** A session's channel policy, from rights and connection policy, and the right that each channel needs. */
import { dynamicChannelFlaw, type RdpOptions } from '../../../src/model/rdp-options.ts'
import type { Right } from '../../../src/model/rights.ts'
import type { ChannelPolicy, KnownChannel } from '../channels/plan.ts'
import { INFO_FLAG } from '../codec/client-info.ts'
import { DISPLAY_CONTROL } from '../codec/display-control.ts'
import { DEVICE_TYPE } from '../codec/rdpdr.ts'

/** Dynamic channel of a microphone (MS-RDPEAI). */
const AUDIO_INPUT = 'AUDIO_INPUT'
/** Dynamic channels of audio output, used in place of the static one (MS-RDPEA). */
const AUDIO_OUTPUTS: ReadonlySet<string> = new Set(['AUDIO_PLAYBACK_DVC', 'AUDIO_PLAYBACK_LOSSY_DVC'])

/** View-only sessions forward nothing from the client: no device, no microphone, no resizing. */
export function channelPolicy(
  rights: ReadonlySet<Right>,
  { viewOnly, dynamicChannels }: Pick<RdpOptions, 'viewOnly' | 'dynamicChannels'>,
): ChannelPolicy {
  const may = (right: Right) => rights.has(right) && !viewOnly
  return {
    clipboard: {
      up: may('RDP_CLIPBOARD_UP'),
      down: rights.has('RDP_CLIPBOARD_DOWN'),
      files: rights.has('RDP_CLIPBOARD_FILE'),
    },
    devices: {
      drives: may('RDP_DRIVE'),
      printers: may('RDP_PRINTER'),
      ports: may('RDP_COM_PORT'),
      smartCards: may('RDP_SMARTCARD'),
    },
    audioOutput: rights.has('RDP_AUDIO_OUTPUT'),
    audioInput: may('RDP_AUDIO_INPUT'),
    resizing: !viewOnly,
    dynamic: dynamicChannels,
  }
}

/** Returns the right to report for a blocked static channel, or undefined if none applies. */
export function rightOfChannel(known: KnownChannel | undefined): Right | undefined {
  switch (known) {
    case 'cliprdr':
      return 'RDP_CLIPBOARD_UP'
    case 'rdpdr':
      return 'RDP_DRIVE'
    case 'rdpsnd':
      return 'RDP_AUDIO_OUTPUT'
    default:
      return undefined
  }
}

/**
 * Reports whether the client requested the feature of this right. For audio the flags of its Client Info show
 * it; clients join the channels of audio and devices whether or not their user needs them.
 */
export function isAskedFor(right: Right, flags: number): boolean {
  switch (right) {
    case 'RDP_AUDIO_OUTPUT':
      return (flags & (INFO_FLAG.noAudioPlayback | INFO_FLAG.remoteConsoleAudio)) === 0
    case 'RDP_AUDIO_INPUT':
      return (flags & INFO_FLAG.audioCapture) !== 0
    default:
      return true
  }
}

/** Returns undefined for kinds of devices that are never allowed. */
export function rightOfDevice(type: number): Right | undefined {
  switch (type) {
    case DEVICE_TYPE.drive:
      return 'RDP_DRIVE'
    case DEVICE_TYPE.printer:
      return 'RDP_PRINTER'
    case DEVICE_TYPE.serial:
    case DEVICE_TYPE.parallel:
      return 'RDP_COM_PORT'
    case DEVICE_TYPE.smartCard:
      return 'RDP_SMARTCARD'
    default:
      return undefined
  }
}

/** Returns undefined if no right applies. */
export function rightOfDynamic(name: string): Right | undefined {
  if (name === AUDIO_INPUT) return 'RDP_AUDIO_INPUT'
  return AUDIO_OUTPUTS.has(name) ? 'RDP_AUDIO_OUTPUT' : undefined
}

export function isDynamicAllowed(name: string, policy: ChannelPolicy): boolean {
  switch (rightOfDynamic(name)) {
    case 'RDP_AUDIO_INPUT':
      return policy.audioInput
    case 'RDP_AUDIO_OUTPUT':
      return policy.audioOutput
    default:
      if (name === DISPLAY_CONTROL) return policy.resizing
      return policy.dynamic.includes(name) && dynamicChannelFlaw(name) === undefined
  }
}
