/** VNC: its factory policy, whose name is reserved, and the settings of such a policy, as JSON. */
export const version = 11

export const sql = `
alter table connection_policies add column vnc_options text not null default '{}';
update connection_policies set policy_name = policy_name || '-' || id, name_key = name_key || '-' || lower(id)
  where name_key = 'vnc';
insert into connection_policies (id, policy_name, name_key, description, protocol, host_key_policy, is_factory)
  values ('00000000000000000000000304', 'VNC', 'vnc', 'of services that name no other', 'VNC', 'first_sight', 1);
`
