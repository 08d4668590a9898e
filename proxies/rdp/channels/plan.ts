/** Chooses the static channels that are requested from the target: those that rights have a use for. */
import type { ChannelDefinition } from '../codec/client-data.ts'
import { CLIPRDR } from '../codec/cliprdr.ts'
import { DRDYNVC } from '../codec/drdynvc.ts'
import { RDPDR } from '../codec/rdpdr.ts'
import type { ClipboardRights } from './clipboard-filter.ts'
import type { DeviceRights } from './device-filter.ts'

/** Name of the audio output channel (MS-RDPEA). */
export const RDPSND = 'rdpsnd'

/** The rights of a session about channels. */
export interface ChannelPolicy {
  clipboard: ClipboardRights
  devices: DeviceRights
  audioOutput: boolean
  audioInput: boolean
  /** The client may change the desktop's size. */
  resizing: boolean
  /** Names of further dynamic channels that are allowed. */
  dynamic: readonly string[]
}

/** Static channels that the bastion knows, in lower case. */
export type KnownChannel = typeof CLIPRDR | typeof RDPDR | typeof RDPSND | typeof DRDYNVC

export interface PlannedChannel {
  definition: ChannelDefinition
  /** Absent if the bastion does not know the channel. */
  known: KnownChannel | undefined
  /** Index in `ChannelPlan.channels`. Absent if the target is not asked for the channel. */
  target: number | undefined
}

export interface ChannelPlan {
  /** By the client's index. */
  planned: readonly PlannedChannel[]
  /** The channels requested from the target. */
  channels: readonly ChannelDefinition[]
  /** The client's index by the target's index. */
  clients: readonly number[]
}

/** Of two channels with the same name only the first is planned. */
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
    // Windows plays audio only for clients that have this channel too, even without devices.
    rdpdr: drives || printers || ports || smartCards || audioOutput,
    rdpsnd: audioOutput,
    drdynvc: true,
  }
}

const KNOWN: ReadonlySet<string> = new Set<KnownChannel>([CLIPRDR, RDPDR, RDPSND, DRDYNVC])
const isKnown = (name: string): name is KnownChannel => KNOWN.has(name)
