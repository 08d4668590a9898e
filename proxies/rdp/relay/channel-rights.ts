/** Rights and connection policy as what a session may do with its channels, and the right that each thing takes. */
import { dynamicChannelFlaw, type RdpOptions } from '../../../src/model/rdp-options.ts'
import type { Right } from '../../../src/model/rights.ts'
import type { ChannelPolicy, KnownChannel } from '../channels/plan.ts'
import { INFO_FLAG } from '../codec/client-info.ts'
import { DISPLAY_CONTROL } from '../codec/display-control.ts'
import { DEVICE_TYPE } from '../codec/rdpdr.ts'

/** Dynamic channel of a microphone (MS-RDPEAI). */
const AUDIO_INPUT = 'AUDIO_INPUT'
/** Dynamic channels that sounds are played by in place of the static one (MS-RDPEA). */
const AUDIO_OUTPUTS: ReadonlySet<string> = new Set(['AUDIO_PLAYBACK_DVC', 'AUDIO_PLAYBACK_LOSSY_DVC'])

/** For viewing only nothing of the client's goes to the target: no device, no voice, no wish for another size. */
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

/** The right that somebody misses first who does without a static channel; undefined: no right is about it. */
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
 * Whether the client has asked for what takes the right: the flags of its Client Info say so of sound. Clients join the
 * channels of both, and of devices, whatever their user wants.
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

/** undefined: a kind of device that never passes. */
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

/** undefined: no right is about it. */
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
