/** The beginning of Tight's security type toward a server: no tunnel, and one of its authentication types. */
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'
import { bounded, type Channel, readUint32, uint32 } from './channel.ts'
import { TIGHT_AUTH } from './numbers.ts'

const CAPABILITY_BYTES = 16
/** Capabilities in one list: servers have a dozen at most. */
const MAX_CAPABILITIES = 256
const NO_TUNNEL = { code: 0, name: 'TGHTNOTUNNEL' }

/** Vendor and name of each code: the code alone is ambiguous. */
const NAMES: Readonly<Record<number, string>> = {
  [TIGHT_AUTH.NONE]: 'STDVNOAUTH__',
  [TIGHT_AUTH.VNC]: 'STDVVNCAUTH_',
  [TIGHT_AUTH.UNIX_LOGIN]: 'TGHTULGNAUTH',
}

interface Capability {
  code: number
  name: string
}

/**
 * Requests no tunnel, and returns the server's authentication types, as numbers of TIGHT_AUTH, or 'none' if
 * it requires no authentication. Throws MalformedError.
 */
export async function readTightTypes(channel: Channel): Promise<number[] | 'none'> {
  const tunnels = await readCapabilities(channel)
  if (tunnels.length > 0) {
    if (!tunnels.some(({ code, name }) => code === NO_TUNNEL.code && name === NO_TUNNEL.name)) {
      throw new MalformedError(
        'vnc: a tunnel type of none was expected in the list of Tight, found others only',
      )
    }
    channel.write(uint32(NO_TUNNEL.code))
  }
  const types = await readCapabilities(channel)
  if (types.length === 0) return 'none'
  return types.filter(({ code, name }) => NAMES[code] === name).map(({ code }) => code)
}

async function readCapabilities(channel: Channel): Promise<Capability[]> {
  const count = bounded(await readUint32(channel), MAX_CAPABILITIES, 'a list of capabilities')
  const list: Capability[] = []
  for (let at = 0; at < count; at++) {
    const bytes = await channel.read(CAPABILITY_BYTES)
    list.push({ code: bytes.readInt32BE(), name: latin1(bytes.subarray(4)) })
  }
  return list
}

/**
 * Skips Tight's additions to ServerInit: three lists of capabilities, none of which is needed. Throws
 * MalformedError.
 */
export async function skipTightInit(channel: Channel): Promise<void> {
  const counts = await channel.read(8)
  for (const at of [0, 2, 4]) {
    const count = bounded(counts.readUInt16BE(at), MAX_CAPABILITIES, 'a list of capabilities')
    await channel.read(count * CAPABILITY_BYTES)
  }
}
