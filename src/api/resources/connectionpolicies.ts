import { type Static, Type } from 'typebox'
import { type ConnectionPolicy, HOST_KEY_POLICIES } from '../../model/objects.ts'
import { PROTOCOLS } from '../../model/rights.ts'
import { SSH_OPTIONS } from '../../model/ssh-options.ts'
import { registerCollection } from '../collection.ts'
import type { Context, ResourceContext } from '../context.ts'
import type { Api } from '../deps.ts'
import { checkName, exact, name, oneOf, partial, shown, text } from '../fields.ts'
import { resource } from '../resource.ts'
import { SshFields, SshUpdate, sshFieldsOf, sshOptionsOf } from '../sshoptions.ts'

const policyName = name('unique', 'strict-ssh')
const protocol = oneOf(PROTOCOLS, 'of the services that may name it')
const hostKeyPolicy = oneOf(
  HOST_KEY_POLICIES,
  'a host key that was not seen before: pin it at `first_sight`, or `pinned`: refuse until it is accepted at /hostkeys',
)
const Create = exact({
  policy_name: policyName,
  description: Type.Optional(text('what the policy is for')),
  protocol: Type.Optional(protocol),
  host_key_policy: Type.Optional(hostKeyPolicy),
  ...SshUpdate.properties,
})
const Update = partial(Create)
const View = exact({
  ...shown,
  policy_name: policyName,
  description: Type.String(),
  protocol,
  host_key_policy: hostKeyPolicy,
  ...SshFields.properties,
  is_factory: Type.Boolean({ description: 'there from the first start: can be neither renamed nor removed' }),
})

export function connectionPolicyResource(context: ResourceContext) {
  const { store } = context.deps

  const changeOf = async (
    body: Static<typeof Update>,
    own?: ConnectionPolicy,
  ): Promise<Partial<Omit<ConnectionPolicy, 'id'>>> => {
    await checkName('policy_name', body.policy_name, own, store.connectionPolicies, 'policyName')
    return {
      ...(body.policy_name !== undefined && { policyName: body.policy_name }),
      ...(body.description !== undefined && { description: body.description }),
      ...(body.protocol !== undefined && { protocol: body.protocol }),
      ...(body.host_key_policy !== undefined && { hostKeyPolicy: body.host_key_policy }),
      ssh: sshOptionsOf(body, own?.ssh ?? SSH_OPTIONS),
    }
  }

  return resource({
    path: '/connectionpolicies',
    type: 'connectionpolicy',
    title: 'Connection policies',
    description:
      'How the broker connects to the services that name it, and what holds in their sessions from the next one on. Each protocol has one from the factory that is called like it.',
    create: {
      schema: Create,
      async plan(body) {
        const change = await changeOf(body)
        return () =>
          store.connectionPolicies.create({
            policyName: body.policy_name,
            description: '',
            protocol: 'SSH',
            hostKeyPolicy: 'first_sight',
            ssh: SSH_OPTIONS,
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
      host_key_policy: policy.hostKeyPolicy,
      ...sshFieldsOf(policy.ssh),
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
