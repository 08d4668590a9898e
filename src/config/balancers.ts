/** Finds networks of balancers that are so wide that strangers are in them. */
import { isTooWide } from '../model/networks.ts'
import type { Config } from './config.ts'

/** Returns a sentence for each, with the remedy. */
export function wideBalancers({ proxyProtocol, trustedProxies }: Config): string[] {
  const settings = { 'proxy_protocol.from': proxyProtocol.from, trusted_proxies: trustedProxies }
  return Object.entries(settings).flatMap(([name, networks]) =>
    networks
      .filter(isTooWide)
      .map(
        (network) =>
          `${name} holds ${network}: whoever connects from there can give any address as the client's, and so pass lock-outs and rules about addresses: name the balancers only`,
      ),
  )
}
