/** The TLS contexts and keys of the fronts, made from their settings. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { FrontSettings } from '../../src/contract/front-settings.ts'
import { serverContext } from '../net/tls.ts'
import type { RdpFrontSecurity } from '../rdp/front/front.ts'
import type { Security } from '../terminal/front.ts'
import type { VncFrontSecurity } from '../vnc/front.ts'
import { anonymousContext, certificateContext } from '../vnc/tls.ts'

export interface Securities {
  telnet?: Security
  rlogin?: Security
  telnets?: Security
  vnc?: VncFrontSecurity
  rdp?: RdpFrontSecurity
}

/** Throws if a certificate and its key do not match, or if one of them is malformed. */
export function securitiesOf({ telnet, rlogin, telnets, vnc, rdp }: FrontSettings): Securities {
  return {
    ...(telnet && { telnet }),
    ...(rlogin && { rlogin }),
    ...(telnets && { telnets: { tls: serverContext(telnets.tls) } }),
    ...(vnc && {
      vnc: {
        certificate: certificateContext(vnc.tls),
        anonymous: anonymousContext(),
        rsaKey: createPrivateKey(vnc.rsaKey),
        types: vnc.types,
        allowClear: vnc.allowClear,
      },
    }),
    ...(rdp && {
      rdp: {
        tls: serverContext(rdp.tls),
        // In a file with a chain the first is the server's own, as in TLS.
        certificate: new X509Certificate(rdp.tls.cert).raw,
        nla: rdp.nla,
      },
    }),
  }
}
