/** Which of a client's static channels a target is asked for: those that rights have a use for, and no other. */
import type { ChannelDefinition } from '../codec/client-data.ts'
import { CLIPRDR } from '../codec/cliprdr.ts'
import { DRDYNVC } from '../codec/drdynvc.ts'
import { RDPDR } from '../codec/rdpdr.ts'
import type { ClipboardRights } from './clipboard-filter.ts'
import type { DeviceRights } from './device-filter.ts'

/** Name of the channel that sounds are played by (MS-RDPEA). */
export const RDPSND = 'rdpsnd'

/** What a session may do with channels. */
export interface ChannelPolicy {
  clipboard: ClipboardRights
  devices: DeviceRights
  audioOutput: boolean
  audioInput: boolean
  /** The client may change the desktop's size. */
  resizing: boolean
  /** Names of dynamic channels that pass beside those that the above is about. */
  dynamic: readonly string[]
}

/** Static channels that are known, by their names in small letters. */
export type KnownChannel = typeof CLIPRDR | typeof RDPDR | typeof RDPSND | typeof DRDYNVC

export interface PlannedChannel {
  definition: ChannelDefinition
  /** undefined: nobody knows what goes through it. */
  known: KnownChannel | undefined
  /** In `ChannelPlan.channels`; undefined: the target does not know of it. */
  target: number | undefined
}

export interface ChannelPlan {
  /** By the client's index. */
  planned: readonly PlannedChannel[]
  /** What the target is asked for. */
  channels: readonly ChannelDefinition[]
  /** The client's index of the target's channel. */
  clients: readonly number[]
}

/** A name that comes twice is known the first time only. */
export function planChannels(definitions: readonly ChannelDefinition[], policy: ChannelPolicy): ChannelPlan {
  const isUsed = usedBy(policy)
  const seen = new Set<string>()
  const channels: ChannelDefinition[] = []
  const clients: number[] = []
  const planned = definitions.map((definition, index): PlannedChannel => {
    const name = definition.name.toLowerCase()
    const known = !seen.has(name) && isKnown(name) ? name : undefined
    seen.add(name)
    if (known === undefined || !isUsed[known]) return { definition, known, target: undefined }
    clients.push(index)
    return { definition, known, target: channels.push(definition) - 1 }
  })
  return { planned, channels, clients }
}

function usedBy({ clipboard, devices, audioOutput }: ChannelPolicy): Readonly<Record<KnownChannel, boolean>> {
  const { drives, printers, ports, smartCards } = devices
  return {
    cliprdr: clipboard.up || clipboard.down,
    // Windows plays sounds only for a client that has this channel too, with devices or without.
    rdpdr: drives || printers || ports || smartCards || audioOutput,
    rdpsnd: audioOutput,
    drdynvc: true,
  }
}

const KNOWN: ReadonlySet<string> = new Set<KnownChannel>([CLIPRDR, RDPDR, RDPSND, DRDYNVC])
const isKnown = (name: string): name is KnownChannel => KNOWN.has(name)
