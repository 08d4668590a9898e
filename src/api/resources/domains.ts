/** Domains: the global ones, and those of a device. */
import { type Static, Type } from 'typebox'
import type { Device, Domain } from '../../model/objects.ts'
import type { Store } from '../../store/store.ts'
import type { ApiRequest } from '../access/caller.ts'
import type { Context, ResourceContext } from '../access/context.ts'
import {
  AUTHORITY_SECRETS,
  type AuthorityChange,
  authorityChange,
  authorityIn,
  authorityOut,
} from '../collection/authority.ts'
import { registerCollection } from '../collection/collection.ts'
import {
  domainChangeIn,
  domainChangeOf,
  domainChangeOut,
  showDomainChange,
} from '../collection/domain-change.ts'
import {
  domainKerberosIn,
  domainKerberosOf,
  domainKerberosOut,
  showDomainKerberos,
} from '../collection/domain-kerberos.ts'
import { deviceOf } from '../collection/parents.ts'
import { localDomainOf } from '../collection/references.ts'
import { announced, type Plan, resource } from '../collection/resource.ts'
import type { Api } from '../http/deps.ts'
import { checkName, exact, name, partial, shown, text } from '../schema/fields.ts'

const domainName = name('unique among the global domains, or on its device', 'corp.example')
const Create = exact({
  domain_name: domainName,
  description: Type.Optional(text('what the domain is')),
  ...authorityIn,
  ...domainChangeIn,
  ...domainKerberosIn,
})
const Update = partial(Create)
const View = exact({
  ...shown,
  domain_name: domainName,
  description: Type.String(),
  ...authorityOut,
  ...domainChangeOut,
  ...domainKerberosOut,
})
const LocalView = exact({ ...View.properties, device: Type.String() })
const localLabel = (device: unknown, domain: unknown) => `${domain}@${device}`

/** `others` are the domains from which the name must differ. */
async function changeOf(
  body: Static<typeof Update>,
  others: { find(name: string): Promise<Domain | undefined> },
  own?: Domain,
): Promise<Partial<Omit<Domain, 'id'>>> {
  await checkName('domain_name', body.domain_name, own, others, 'domainName')
  return {
    ...(body.domain_name !== undefined && { domainName: body.domain_name }),
    ...(body.description !== undefined && { description: body.description }),
  }
}

/** Parts that global and local domains share. */
function anywhere(store: Store) {
  return {
    removeFrom: (old: Domain) => store.domains.remove(old.id, old),
    secrets: AUTHORITY_SECRETS,
  }
}

/** Creates the domain; removes it again if its authority cannot be stored. */
function made(
  store: Store,
  authority: AuthorityChange | undefined,
  create: () => Promise<Domain>,
): Plan<Domain> {
  return async () => {
    const domain = await create()
    if (!authority) return domain
    try {
      return await authority.apply(domain)
    } catch (error) {
      await store.domains.remove(domain.id)
      throw error
    }
  }
}

function changed(
  authority: AuthorityChange | undefined,
  called: { type: string; object: string },
  update: () => Promise<Domain>,
): Plan<Domain> {
  if (!authority) return update
  return announced([authority.event(called.type, called.object)], async () => authority.apply(await update()))
}

const shownOf = (domain: Domain) => ({
  domain_name: domain.domainName,
  description: domain.description,
  ca_public_key: domain.caPublicKey ?? null,
  kerberos: showDomainKerberos(domain),
})

export function domainResource(context: ResourceContext) {
  const { store } = context.deps

  return resource({
    ...anywhere(store),
    path: '/domains',
    type: 'domain',
    title: 'Domains',
    description: 'Global domains: accounts that work on several devices.',
    create: {
      schema: Create,
      async plan(body, request) {
        const change = {
          ...(await changeOf(body, store.domains)),
          ...(await domainChangeOf(store, request, body, { own: undefined, isLocal: false })),
          ...domainKerberosOf(request, body, { own: undefined, isLocal: false }),
        }
        return made(store, authorityChange(context, body), () =>
          store.domains.create({ domainName: body.domain_name, description: '', ...change }),
        )
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        const change = {
          ...(await changeOf(body, store.domains, old)),
          ...(await domainChangeOf(store, request, body, { own: old, isLocal: false })),
          ...domainKerberosOf(request, body, { own: old, isLocal: false }),
        }
        const called = { type: 'domain', object: old.domainName }
        return changed(authorityChange(context, body), called, () =>
          store.domains.update(old.id, change, old),
        )
      },
    },
    view: View,
    show: async (domain) => ({ ...shownOf(domain), ...(await showDomainChange(store, domain)) }),
    label: (domain) => String(domain['domain_name']),
    list: (_request, page) => store.domains.list(page),
    async find(_request, ref) {
      const domain = await store.domains.find(ref)
      return domain?.deviceId === undefined ? domain : undefined
    },
  })
}

export function registerDomains(app: Api, context: Context): void {
  registerCollection(app, context, domainResource(context))
}

export function localDomainResource(context: ResourceContext) {
  const { store } = context.deps
  const parent = (request: ApiRequest) => deviceOf(store, request)
  const namesakes = (device: Device) => ({ find: (name: string) => localDomainOf(store, device, name) })

  return resource({
    ...anywhere(store),
    path: '/devices/:device/localdomains',
    type: 'localdomain',
    title: 'Local domains',
    description: 'Domains of one device: its own accounts. The usual one is called `local`.',
    create: {
      schema: Create,
      async plan(body, request) {
        const device = await parent(request)
        const change = {
          ...(await changeOf(body, namesakes(device))),
          ...(await domainChangeOf(store, request, body, { own: undefined, isLocal: true })),
          ...domainKerberosOf(request, body, { own: undefined, isLocal: true }),
        }
        const plan = made(store, authorityChange(context, body), () =>
          store.domains.create({
            deviceId: device.id,
            domainName: body.domain_name,
            description: '',
            ...change,
          }),
        )
        return Object.assign(plan, { label: localLabel(device.deviceName, body.domain_name) })
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        const device = await parent(request)
        const change = {
          ...(await changeOf(body, namesakes(device), old)),
          ...(await domainChangeOf(store, request, body, { own: old, isLocal: true })),
          ...domainKerberosOf(request, body, { own: old, isLocal: true }),
        }
        const called = { type: 'localdomain', object: localLabel(device.deviceName, old.domainName) }
        return changed(authorityChange(context, body), called, () =>
          store.domains.update(old.id, change, old),
        )
      },
    },
    view: LocalView,
    show: async (domain, read) => ({
      ...shownOf(domain),
      ...(await showDomainChange(store, domain)),
      device: domain.deviceId === undefined ? '' : await read.device(domain.deviceId),
    }),
    label: (domain) => localLabel(domain['device'], domain['domain_name']),
    parents: ({ deviceId = '' }) => ({ device: deviceId }),
    async list(request, page) {
      return store.domains.list(page, (await parent(request)).id)
    },
    find: async (request, ref) => localDomainOf(store, await parent(request), ref),
  })
}

export function registerLocalDomains(app: Api, context: Context): void {
  registerCollection(app, context, localDomainResource(context))
}
