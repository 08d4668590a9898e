/**
 * Definitions of the tables. The rules are those of the API's resources; a table only adds how a row names
 * its object and its place.
 */
import { type TObject, Type } from 'typebox'
import type { AuthDomainMapping } from '../../model/external-auths.ts'
import { groupKey } from '../../model/group-names.ts'
import { nameKey } from '../../model/names.ts'
import type { Account, Id } from '../../model/objects.ts'
import type { Page, Store } from '../../store/store.ts'
import type { ApiRequest } from '../access/caller.ts'
import type { ResourceContext } from '../access/context.ts'
import type { CsvName } from '../access/table-names.ts'
import { accountOf, localDomainOf } from '../collection/references.ts'
import type { Resource } from '../collection/resource.ts'
import { accountResource } from '../resources/accounts.ts'
import { authDomainMappingResource, authDomainResource } from '../resources/auth-domains.ts'
import { authorizationResource } from '../resources/authorizations.ts'
import { checkoutPolicyResource } from '../resources/checkout-policies.ts'
import { connectionPolicyResource } from '../resources/connection-policies.ts'
import { deviceResource } from '../resources/devices.ts'
import { domainResource, localDomainResource } from '../resources/domains.ts'
import { externalAuthResource, SECTIONS } from '../resources/external-auths.ts'
import { NOTIFICATION_SECTIONS, notificationResource } from '../resources/notifications.ts'
import { passwordChangePolicyResource } from '../resources/password-change-policies.ts'
import { profileResource } from '../resources/profiles.ts'
import { serviceResource } from '../resources/services.ts'
import { targetGroupResource } from '../resources/target-groups.ts'
import { timeframeResource } from '../resources/timeframes.ts'
import { userGroupResource } from '../resources/user-groups.ts'
import { userResource } from '../resources/users.ts'
import { periodIn, periodText } from '../schema/periods.ts'
import { serverIn, serverText } from '../schema/servers.ts'
import { type Column, columnsOf } from './columns.ts'

export type Body = Record<string, unknown>
export type AnyResource = Resource<{ id: Id }, TObject, TObject, TObject>

/** A resource of a table. */
export interface Member {
  resource: AnyResource
  find(request: ApiRequest, body: Body): Promise<{ id: Id } | undefined>
}

export interface Table {
  name: CsvName
  columns: readonly Column[]
  /** Columns that name an object; the first one, and those with `isRequired`, must be present. */
  key: readonly string[]
  required: readonly string[]
  /** Resource for objects that stand alone, and resource for those of the device in the column `device`. */
  single: Member | undefined
  ofDevice: Member | undefined
  /** Converts cells to fields where they differ. @returns the invalid column and the error */
  finish?: (body: Body) => { column: string; message: string } | undefined
  /** Converts fields to cells where they differ. */
  written?: (view: Body) => Body
  /** Returns the cell of a body's field, if the field's last part is no column's name. */
  cellOf?: (field: string, body: Body) => string
}

const DEVICE: Column = { name: 'device', kind: 'word', path: ['device'] }

/** Returns the table, with its resources in this context. */
export function tableOf(name: CsvName, context: ResourceContext): Table {
  const { store } = context.deps
  switch (name) {
    case 'profiles':
      return single(name, profileResource(context), ['profile_name'])
    case 'checkoutpolicies':
      return single(name, checkoutPolicyResource(context), ['policy_name'])
    case 'connectionpolicies':
      return single(name, connectionPolicyResource(context), ['policy_name'])
    case 'passwordchangepolicies':
      return single(name, passwordChangePolicyResource(context), ['password_change_policy_name'])
    case 'timeframes':
      return { ...single(name, timeframeResource(context), ['timeframe_name']), ...PERIOD_CELLS }
    case 'externalauths':
      return { ...single(name, externalAuthResource(context), ['authentication_name']), ...SERVER_CELLS }
    case 'authdomains':
      return single(name, authDomainResource(context), ['domain_name'])
    case 'authdomainmappings':
      return mappings(context, store)
    case 'users':
      return single(name, userResource(context), ['user_name'])
    case 'usergroups':
      return single(name, userGroupResource(context), ['group_name'])
    case 'devices':
      return single(name, deviceResource(context), ['device_name'])
    case 'services':
      return ofDevice(name, serviceResource(context), ['device', 'service_name'])
    case 'domains':
      return {
        ...single(name, domainResource(context), ['domain_name']),
        ...ofDevice(name, localDomainResource(context), ['device', 'domain_name']),
        single: member(domainResource(context)),
        required: ['domain_name'],
      }
    case 'accounts':
      return accounts(context, store)
    case 'targetgroups':
      return single(name, targetGroupResource(context), ['group_name'])
    case 'authorizations':
      return single(name, authorizationResource(context), ['user_group', 'target_group'])
    case 'notifications':
      return { ...single(name, notificationResource(context), ['notification_name']), ...NOTIFICATION_CELLS }
  }
}

/** Finds objects by their names in events, or by a field. */
function member(resource: AnyResource, field?: string): Member {
  const nameOf = (body: Body) => (field === undefined ? resource.label(body) : String(body[field]))
  return { resource, find: (request, body) => resource.find(request, nameOf(body)) }
}

function single(name: CsvName, resource: AnyResource, key: readonly string[]): Table {
  const columns = columnsOf(resource.create.schema, resource.secrets)
  return { name, columns, key, required: key, single: member(resource), ofDevice: undefined }
}

function ofDevice(name: CsvName, resource: AnyResource, key: readonly string[]): Table {
  const columns = [DEVICE, ...columnsOf(resource.create.schema, resource.secrets)]
  return { name, columns, key, required: key, single: undefined, ofDevice: member(resource, key.at(-1)) }
}

/** Columns of the other type are empty. */
const NOTIFICATION_CELLS: Pick<Table, 'finish'> = {
  finish(body) {
    dropEmpty(body, Object.values(NOTIFICATION_SECTIONS))
    return undefined
  },
}

function dropEmpty(body: Body, sections: readonly string[]): void {
  for (const section of sections) {
    if (Object.values(body[section] ?? {}).every(isEmptyCell)) delete body[section]
  }
}

/** Each further server is a text in the list of the cell: `ldap2:636`, `[2001:db8::1]:636`, or without a port. */
const SERVER_CELLS: Pick<Table, 'finish' | 'written' | 'cellOf'> = {
  finish(body) {
    const texts = body['backup_servers'] as string[] | undefined
    if (texts) body['backup_servers'] = texts.map(serverIn)
    // Columns of other types are empty.
    dropEmpty(body, Object.values(SECTIONS))
    return undefined
  },
  written: (view) => ({
    ...view,
    backup_servers: (view['backup_servers'] as { host: string; port: number | null }[]).map(serverText),
  }),
  cellOf: (field) => (field.startsWith('backup_servers') ? 'backup_servers' : field),
}

const isEmptyCell = (cell: unknown): boolean =>
  cell === '' || cell === null || (Array.isArray(cell) && cell.length === 0)

/** Mappings stand alone in a table: a column names their domain. */
function mappings(context: ResourceContext, store: Store): Table {
  const resource = authDomainMappingResource(context)
  const own = { ...resource.create.schema.properties }
  const schema = Type.Object(
    { auth_domain: Type.String({ minLength: 1, maxLength: 512 }), ...own },
    { additionalProperties: false },
  )
  const at = (request: ApiRequest, domain: unknown): ApiRequest => ({
    ...request,
    params: { domain: String(domain) },
  })
  const domainOf = async (id: Id) => (await store.authDomains.find(id))?.domainName
  const flat = {
    ...resource,
    create: {
      schema,
      plan: ({ auth_domain, ...body }: Body, request: ApiRequest) =>
        resource.create.plan(body as Parameters<typeof resource.create.plan>[0], at(request, auth_domain)),
    },
    update: {
      schema: Type.Partial(schema, { additionalProperties: false }),
      plan: async (old: AuthDomainMapping, { auth_domain: _domain, ...body }: Body, request: ApiRequest) =>
        resource.update.plan(old, body, at(request, await domainOf(old.authDomainId))),
    },
    list: (_request: ApiRequest, page: Page | undefined) => store.authDomainMappings.list(page),
  } as unknown as AnyResource
  const find = async (_request: ApiRequest, body: Body) => {
    const domain = await store.authDomains.find(String(body['auth_domain']))
    const group = await store.userGroups.find(String(body['user_group']))
    if (!domain || !group) return undefined
    const { items } = await store.authDomainMappings.list(undefined, domain.id)
    const wanted = groupKey(String(body['external_group']))
    return items.find((one) => one.userGroupId === group.id && groupKey(one.externalGroup) === wanted)
  }
  const key = ['auth_domain', 'user_group', 'external_group']
  return {
    name: 'authdomainmappings',
    columns: columnsOf(schema, []),
    key,
    required: key,
    single: { resource: flat, find },
    ofDevice: undefined,
  }
}

/** Separate columns of an account, in place of the API's `credentials`. */
const SECRETS = ['password', 'enable', 'private_key', 'passphrase']

function accounts(context: ResourceContext, store: Store): Table {
  const resource: AnyResource = accountResource(context)
  const fields = columnsOf(resource.create.schema, []).filter(({ name }) => name !== 'credentials')
  const secrets = SECRETS.map((name): Column => ({ name, kind: 'secret', path: [name] }))
  return {
    name: 'accounts',
    columns: [...fields, ...secrets],
    key: ['account_name', 'domain', 'device'],
    required: ['account_name'],
    single: { resource, find: (_request, body) => accountAt(store, body) },
    ofDevice: undefined,
    finish: withCredentials,
    cellOf: secretCell,
  }
}

/** Each period is a text in the list of the cell. */
const PERIOD_CELLS: Pick<Table, 'finish' | 'written' | 'cellOf'> = {
  finish(body) {
    const texts = body['periods'] as string[] | undefined
    const periods = texts?.map(periodIn)
    if (periods?.includes(undefined))
      return { column: 'periods', message: 'expected 08:00-18:00 monday,friday 2027-01-01..2027-01-31' }
    if (periods) body['periods'] = periods
    return undefined
  },
  written: (view) => ({
    ...view,
    periods: (view['periods'] as Parameters<typeof periodText>[0][]).map(periodText),
  }),
  cellOf: (field) => (field.startsWith('periods') ? 'periods' : field),
}

/** Finds by the complete place, while a reference may omit parts of it. */
async function accountAt(store: Store, body: Body): Promise<Account | undefined> {
  const text = (field: string) => body[field] as string | undefined
  const name = text('account_name') ?? ''
  const deviceName = text('device')
  if (deviceName === undefined) {
    const domain = await store.domains.find(text('domain') ?? '')
    return domain && domain.deviceId === undefined ? accountOf(store, domain, name) : undefined
  }
  const device = await store.devices.find(deviceName)
  const domain = device && (await localDomainOf(store, device, text('domain') ?? 'local'))
  return domain && accountOf(store, domain, name)
}

/** Converts the cells of secrets to the API's `credentials`. */
function withCredentials(body: Body): { column: string; message: string } | undefined {
  const { password, enable, private_key, passphrase } = body
  for (const field of SECRETS) delete body[field]
  if (passphrase !== undefined && private_key === undefined)
    return { column: 'passphrase', message: 'a passphrase goes with a private key in the same row' }
  const credentials = [
    ...(password === undefined ? [] : [{ type: 'password', password }]),
    ...(enable === undefined ? [] : [{ type: 'enable', password: enable }]),
    ...(private_key === undefined
      ? []
      : [{ type: 'ssh_key', private_key, ...(passphrase === undefined ? {} : { passphrase }) }]),
  ]
  if (credentials.length > 0) body['credentials'] = credentials
  return undefined
}

/** Two kinds of credentials have a field `password`: finds the column by the kind. */
function secretCell(field: string, body: Body): string {
  const [, index] = /^credentials\/(\d+)\//.exec(field) ?? []
  const credentials = (body['credentials'] ?? []) as { type: string }[]
  return credentials[Number(index)]?.type === 'enable' ? 'enable' : field
}

/** Returns a key that is equal for two rows that name the same object. */
export function keyOf(table: Table, body: Body, device: string | undefined): string {
  return JSON.stringify(
    table.key.map((field) => nameKey(String((field === 'device' ? device : undefined) ?? body[field] ?? ''))),
  )
}
