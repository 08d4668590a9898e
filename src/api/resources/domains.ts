/** Domains: the global ones, and those of a device. */
import { type Static, Type } from 'typebox'
import { nameKey, objectNameError } from '../../model/names.ts'
import type { Domain } from '../../model/objects.ts'
import type { ApiRequest } from '../caller.ts'
import { registerCollection, resource } from '../collection.ts'
import type { Context, ResourceContext } from '../context.ts'
import type { Api } from '../deps.ts'
import { fieldError } from '../errors.ts'
import { check, exact, name, partial, shown, text } from '../fields.ts'
import { deviceOf } from '../parents.ts'
import { localDomainOf } from '../references.ts'

const domainName = name('unique among the global domains, or on its device', 'corp.example')
const Create = exact({ domain_name: domainName, description: Type.Optional(text('what the domain is')) })
const Update = partial(Create)
const View = exact({ ...shown, domain_name: domainName, description: Type.String() })

function changeOf(
  body: Static<typeof Update>,
  others: readonly Domain[],
  own?: Domain,
): Partial<Omit<Domain, 'id'>> {
  if (body.domain_name !== undefined) {
    const { domain_name: wanted } = body
    check('domain_name', objectNameError(wanted))
    const taken = others.find(
      (other) => other.id !== own?.id && nameKey(other.domainName) === nameKey(wanted),
    )
    if (taken) throw fieldError('duplicate', 'domain_name', `"${taken.domainName}" exists`)
  }
  return {
    ...(body.domain_name !== undefined && { domainName: body.domain_name }),
    ...(body.description !== undefined && { description: body.description }),
  }
}

const show = async (domain: Domain) => ({ domain_name: domain.domainName, description: domain.description })
const label = (domain: Readonly<Record<string, unknown>>) => String(domain['domain_name'])

export function domainResource(context: ResourceContext) {
  const { store } = context.deps

  const namesakes = async (body: Static<typeof Update>): Promise<Domain[]> => {
    const one = body.domain_name === undefined ? undefined : await store.domains.find(body.domain_name)
    return one ? [one] : []
  }

  return resource({
    path: '/domains',
    type: 'domain',
    title: 'Domains',
    description: 'Global domains: accounts that work on several devices.',
    create: {
      schema: Create,
      async plan(body) {
        const change = changeOf(body, await namesakes(body))
        return () => store.domains.create({ domainName: body.domain_name, description: '', ...change })
      },
    },
    update: {
      schema: Update,
      async plan(old, body) {
        const change = changeOf(body, await namesakes(body), old)
        return () => store.domains.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.domains.remove(old.id, old),
    view: View,
    show,
    label,
    secrets: [],
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

  return resource({
    path: '/devices/:device/localdomains',
    type: 'localdomain',
    title: 'Local domains',
    description: 'Domains of one device: its own accounts. The usual one is called `local`.',
    create: {
      schema: Create,
      async plan(body, request) {
        const device = await parent(request)
        const change = changeOf(body, await store.domains.ofDevice(device.id))
        return () =>
          store.domains.create({
            deviceId: device.id,
            domainName: body.domain_name,
            description: '',
            ...change,
          })
      },
    },
    update: {
      schema: Update,
      async plan(old, body, request) {
        const change = changeOf(body, await store.domains.ofDevice((await parent(request)).id), old)
        return () => store.domains.update(old.id, change, old)
      },
    },
    removeFrom: (old) => store.domains.remove(old.id, old),
    view: View,
    show,
    label,
    secrets: [],
    async list(request, page) {
      return store.domains.list(page, (await parent(request)).id)
    },
    find: async (request, ref) => localDomainOf(store, await parent(request), ref),
  })
}

export function registerLocalDomains(app: Api, context: Context): void {
  registerCollection(app, context, localDomainResource(context))
}
