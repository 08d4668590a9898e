/**
 * Finds the address of a receiver, and holds it to those that an administrator of the bastion may name: a
 * receiver must not be the bastion's own machine, or a service that gives out the machine's credentials.
 */
import type { LookupAllOptions } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { performance } from 'node:perf_hooks'
import { isGuardedAddress } from '../model/metadata-services.ts'
import { isFrom, plainAddress } from '../model/networks.ts'
import { Lookups } from './lookups.ts'

const OWN = ['127.0.0.0/8', '::1', '0.0.0.0/8', '::']

/** Returns whether no receiver may have this address. */
export type Barred = (address: string) => boolean

export const isOwnOrGuarded: Barred = (address) =>
  isGuardedAddress(address) || isFrom(plainAddress(address), OWN)

/** For mail: a mail server of the machine itself is common. */
export const isGuarded: Barred = isGuardedAddress

/** One for the process, as libuv's threads are. */
const lookups = new Lookups({ lookup, monotonic: () => performance.now() })

class BarredError extends Error {
  readonly code = 'EBARRED'
}

/**
 * Returns a `lookup` that finds only addresses that are not barred. The connection goes to these and not to the
 * name again, which could have changed meanwhile (DNS rebinding).
 */
export function lookupOf(isBarred: Barred): LookupFunction {
  return (host, options, callback) => {
    const all: LookupAllOptions = { ...options, all: true }
    lookups.find(host, all).then(
      (found) => {
        const allowed = found.filter(({ address }) => !isBarred(address))
        const [first] = allowed
        if (!first) callback(new BarredError('expected an address that may be connected to'), '')
        else if (options.all) callback(null, allowed)
        else callback(null, first.address, first.family)
      },
      (error: Error) => callback(error, ''),
    )
  }
}

/** @throws Error for an address, written as such, that is barred: no lookup sees it */
export function requireAllowed(host: string, isBarred: Barred): void {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) && isBarred(bare)) throw new BarredError('expected an address that may be connected to')
}
