import { formatLoginOptions, parseLoginOptions } from '../model/login-options.ts'
import { nameKey } from '../model/names.ts'
import type { ConnectionPolicy, HostKeyPolicy } from '../model/objects.ts'
import { formatRdpOptions, parseRdpOptions } from '../model/rdp-options.ts'
import type { Protocol } from '../model/rights.ts'
import { formatSshOptions, parseSshOptions } from '../model/ssh-options.ts'
import { formatVncOptions, parseVncOptions } from '../model/vnc-options.ts'
import { FactoryError } from './engine/errors.ts'
import type { ConnectionPolicyRow, Db, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { key, refuseInUse, setColumns } from './query.ts'
import { column } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'connection policy'
export const CONNECTION_POLICY_FIELDS = {
  policy_name: column('name', 'name_key'),
  description: column('text', 'description'),
  protocol: column('label', 'protocol'),
  host_key_policy: column('label', 'host_key_policy'),
  is_factory: column('flag', 'is_factory'),
  id: column('id', 'id'),
}

/** Factory policies can be changed, but neither renamed nor removed: other objects rely on them. */
export function connectionPolicyRepository(context: StoreContext): Repository<ConnectionPolicy> {
  return namedRepository(context, {
    type: TYPE,
    table: 'connection_policies',
    fields: CONNECTION_POLICY_FIELDS,
    standard: 'policy_name',
    select,
    object: policy,
    nameOf: ({ policyName }) => policyName,

    insert: async (tx, id, object: Omit<ConnectionPolicy, 'id'>) => {
      await tx
        .insertInto('connection_policies')
        .values({
          id,
          policy_name: object.policyName,
          name_key: nameKey(object.policyName),
          description: object.description,
          protocol: object.protocol,
          host_key_policy: object.hostKeyPolicy,
          ssh_options: formatSshOptions(object.ssh),
          login_options: formatLoginOptions(object.login),
          vnc_options: formatVncOptions(object.vnc),
          rdp_options: formatRdpOptions(object.rdp),
          is_factory: 0,
        })
        .execute()
    },

    change: async (tx, id, change, old) => {
      const isRenamed = change.policyName !== undefined && change.policyName !== old.policyName
      if (old.isFactory && isRenamed) throw new FactoryError(TYPE, old.policyName, 'renamed')
      await setColumns(tx, 'connection_policies', id, {
        policy_name: change.policyName,
        name_key: key(change.policyName),
        description: change.description,
        protocol: change.protocol,
        host_key_policy: change.hostKeyPolicy,
        ssh_options: change.ssh && formatSshOptions(change.ssh),
        login_options: change.login && formatLoginOptions(change.login),
        vnc_options: change.vnc && formatVncOptions(change.vnc),
        rdp_options: change.rdp && formatRdpOptions(change.rdp),
      })
    },

    requireUnused: async (tx, { id, policyName, isFactory }) => {
      if (isFactory) throw new FactoryError(TYPE, policyName, 'removed')
      await refuseInUse(TYPE, policyName, [
        {
          type: 'service',
          query: tx
            .selectFrom('services as s')
            .innerJoin('devices as d', 'd.id', 's.device_id')
            .select((e) => e(e('d.device_name', '||', ':'), '||', e.ref('s.service_name')).as('name'))
            .where('s.connection_policy_id', '=', id)
            .orderBy('d.name_key'),
        },
      ])
    },
  })
}

function select(db: Db) {
  return db.selectFrom('connection_policies').selectAll()
}

function policy(row: ConnectionPolicyRow): ConnectionPolicy {
  return {
    id: row.id,
    policyName: row.policy_name,
    description: row.description,
    protocol: row.protocol as Protocol,
    hostKeyPolicy: row.host_key_policy as HostKeyPolicy,
    ssh: parseSshOptions(row.ssh_options),
    login: parseLoginOptions(row.login_options),
    vnc: parseVncOptions(row.vnc_options),
    rdp: parseRdpOptions(row.rdp_options),
    isFactory: row.is_factory !== 0,
  }
}
