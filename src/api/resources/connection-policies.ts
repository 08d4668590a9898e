import { type Static, Type } from 'typebox'
import { LOGIN_OPTIONS } from '../../model/login-options.ts'
import { type ConnectionPolicy, HOST_KEY_POLICIES, hostKeyPolicyFlaw } from '../../model/objects.ts'
import { RDP_OPTIONS } from '../../model/rdp-options.ts'
import { PROTOCOLS, type Protocol } from '../../model/rights.ts'
import { SSH_OPTIONS } from '../../model/ssh-options.ts'
import { VNC_OPTIONS } from '../../model/vnc-options.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import { registerCollection } from '../collection/collection.ts'
import { resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { DesktopFields, DesktopUpdate, desktopFieldsOf } from '../schema/desktop-options.ts'
import { check, checkName, exact, name, oneOf, partial, shown, text } from '../schema/fields.ts'
import { LoginFields, LoginUpdate, loginFieldsOf, loginOptionsOf } from '../schema/login-options.ts'
import { RdpFields, RdpUpdate, rdpFieldsOf, rdpOptionsOf } from '../schema/rdp-options.ts'
import { SshFields, SshUpdate, sshFieldsOf, sshOptionsOf } from '../schema/ssh-options.ts'
import { VncFields, VncUpdate, vncFieldsOf, vncOptionsOf } from '../schema/vnc-options.ts'

const policyName = name('unique', 'strict-ssh')
const protocol = oneOf(PROTOCOLS, 'of the services that may name it')
const hostKeyPolicy = oneOf(
  HOST_KEY_POLICIES,
  'why a host key is believed. `first_sight`: pin the first one; `pinned`: refuse one until it is accepted at /hostkeys; `ca`: a certificate by one of `host_ca_keys`; `dns`: SSHFP records that DNSSEC authenticates',
)

/** Fields that only policies of these protocols have. */
const PROTOCOLS_OF: ReadonlyMap<string, readonly Protocol[]> = new Map([
  ...[
    'legacy_algorithms',
    'host_ca_keys',
    'forward_to',
    'listen_on',
    'file_rules',
    'recording_quota',
    'past_recording_quota',
    'subsystems',
  ].map((field): [string, Protocol[]] => [field, ['SSH']]),
  ['host_key_policy', ['SSH', 'VNC', 'RDP']],
  ...['terminal_quota', 'past_terminal_quota', 'command_rules', 'ask_timeout'].map(
    (field): [string, Protocol[]] => [field, ['SSH', 'TELNET', 'RLOGIN']],
  ),
  ...Object.keys(LoginFields.properties).map((field): [string, Protocol[]] => [field, ['TELNET', 'RLOGIN']]),
  ...Object.keys(DesktopFields.properties).map((field): [string, Protocol[]] => [field, ['VNC', 'RDP']]),
  ...Object.keys(VncFields.properties).map((field): [string, Protocol[]] => [field, ['VNC']]),
  ...Object.keys(RdpFields.properties).map((field): [string, Protocol[]] => [field, ['RDP']]),
  ['client_user', ['RLOGIN']],
  ['privileged_port', ['RLOGIN']],
])

/**
 * @throws ApiError `invalid_field` that names each changed field that policies of this protocol do not have
 */
function refuseOthers(protocol: Protocol, body: object, now: Readonly<Record<string, unknown>>): void {
  const details = Object.entries(body)
    .filter(
      ([field, value]) => PROTOCOLS_OF.get(field)?.includes(protocol) === false && !isSame(value, now[field]),
    )
    .map(([field]) => ({ field, message: `it means nothing in a policy for ${protocol}` }))
  if (details.length > 0) throw new ApiError('invalid_field', details)
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

const Create = exact({
  policy_name: policyName,
  description: Type.Optional(text('what the policy is for')),
  protocol: Type.Optional(protocol),
  host_key_policy: Type.Optional(hostKeyPolicy),
  ...SshUpdate.properties,
  ...LoginUpdate.properties,
  ...DesktopUpdate.properties,
  ...VncUpdate.properties,
  ...RdpUpdate.properties,
})
const Update = partial(Create)
const View = exact({
  ...shown,
  policy_name: policyName,
  description: Type.String(),
  protocol,
  host_key_policy: hostKeyPolicy,
  ...SshFields.properties,
  ...LoginFields.properties,
  ...DesktopFields.properties,
  ...VncFields.properties,
  ...RdpFields.properties,
  is_factory: Type.Boolean({ description: 'there from the first start: can be neither renamed nor removed' }),
})

const DEFAULTS = {
  hostKeyPolicy: 'first_sight',
  ssh: SSH_OPTIONS,
  login: LOGIN_OPTIONS,
  vnc: VNC_OPTIONS,
  rdp: RDP_OPTIONS,
} as const

function optionFields(
  { hostKeyPolicy, ssh, login, vnc, rdp }: Pick<ConnectionPolicy, keyof typeof DEFAULTS>,
  protocol: Protocol,
) {
  return {
    host_key_policy: hostKeyPolicy,
    ...sshFieldsOf(ssh),
    ...loginFieldsOf(login),
    ...desktopFieldsOf(protocol === 'RDP' ? rdp : vnc),
    ...vncFieldsOf(vnc),
    ...rdpFieldsOf(rdp),
  }
}

export function connectionPolicyResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: ConnectionPolicy,
  ): Promise<Partial<Omit<ConnectionPolicy, 'id'>>> => {
    const protocol = body.protocol ?? own?.protocol ?? 'SSH'
    refuseOthers(protocol, body, optionFields(own ?? DEFAULTS, protocol))
    check('host_key_policy', hostKeyPolicyFlaw(protocol, body.host_key_policy ?? own?.hostKeyPolicy))
    await checkName('policy_name', body.policy_name, own, store.connectionPolicies, 'policyName')
    return {
      ...(body.policy_name !== undefined && { policyName: body.policy_name }),
      ...(body.description !== undefined && { description: body.description }),
      ...(body.protocol !== undefined && { protocol: body.protocol }),
      ...(body.host_key_policy !== undefined && { hostKeyPolicy: body.host_key_policy }),
      ssh: sshOptionsOf(body, own?.ssh ?? SSH_OPTIONS),
      login: loginOptionsOf(body, own?.login ?? LOGIN_OPTIONS),
      ...(protocol === 'RDP'
        ? { rdp: rdpOptionsOf(body, own?.rdp ?? RDP_OPTIONS) }
        : { vnc: vncOptionsOf(body, own?.vnc ?? VNC_OPTIONS) }),
    }
  }

  return resource({
    path: '/connectionpolicies',
    type: 'connectionpolicy',
    title: 'Connection policies',
    description:
      'How the broker connects to the services that use the policy, and rules for their sessions from the next one on. Fields of other protocols keep their defaults. Each protocol has a built-in policy of the same name.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.connectionPolicies.create({
            policyName: body.policy_name,
            description: '',
            protocol: 'SSH',
            ...DEFAULTS,
            ...change,
            isFactory: false,
          })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = await changeOf(body, old)
        return () => store.connectionPolicies.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.connectionPolicies.remove(old.id, old),
    view: View,
    show: async (policy) => ({
      policy_name: policy.policyName,
      description: policy.description,
      protocol: policy.protocol,
      ...optionFields(policy, policy.protocol),
      is_factory: policy.isFactory,
    }),
    label: (policy) => String(policy['policy_name']),
    secrets: [],
    list: (_request, page) => store.connectionPolicies.list(page),
    find: (_request, ref) => store.connectionPolicies.find(ref),
  })
}

export function registerConnectionPolicies(app: Api, context: Context): void {
  registerCollection(app, context, connectionPolicyResource(context))
}
