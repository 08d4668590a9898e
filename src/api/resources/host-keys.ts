/** Host keys that targets have shown: to accept or to delete. */
import { type TObject, Type } from 'typebox'
import type { HostKey } from '../../model/objects.ts'
import type { Context } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import type { Api } from '../http/deps.ts'
import { exact, oneOf, shown, timeText } from '../schema/fields.ts'

const View = exact({
  ...shown,
  device: Type.String(),
  service: Type.String(),
  key_type: Type.String({
    description: 'x509: of a certificate in TLS (VNC, RDP); rsa: of RA2 in VNC',
    examples: ['ssh-ed25519'],
  }),
  fingerprint: Type.String({ description: 'SHA256:…, as OpenSSH shows it' }),
  key: Type.String({
    description: 'base64 of the key (RFC 4253 6.6); of x509 and rsa of its SubjectPublicKeyInfo',
  }),
  first_seen: Type.String({ format: 'date-time' }),
  state: oneOf(['accepted', 'offered'] as const, '`accepted` is trusted; `offered` was shown and refused'),
})
const Update = exact({ state: oneOf(['accepted'] as const, 'trust this key from now on') })

export function registerHostKeys(app: Api, context: Context): void {
  const { hostKeys } = context.deps.store

  registerCollection<HostKey, TObject, typeof Update, typeof View>(app, context, {
    path: '/hostkeys',
    type: 'hostkey',
    title: 'Host keys',
    description:
      'What targets showed. When a key is removed, the next one that the target shows counts as seen for the first time.',
    update: {
      schema: Update,
      plan:
        async (old, { state }) =>
        () =>
          hostKeys.update(old.id, { state }, old),
    },
    removeFrom: (old) => hostKeys.remove(old.id, old),
    view: View,
    show: async (key, read) => ({
      device: await read.device(key.deviceId),
      service: await read.service(key.serviceId),
      key_type: key.keyType,
      fingerprint: key.fingerprint,
      key: key.key,
      first_seen: timeText(key.firstSeen),
      state: key.state,
    }),
    label: ({ device, service, fingerprint }) => `${device}:${service} ${fingerprint}`,
    secrets: [],
    list: (_request, page) => hostKeys.list(page),
    find: (_request, ref) => hostKeys.find(ref.toUpperCase()),
  })
}
