/**
 * Telnet and rlogin: their factory policies, whose names are reserved, and the login settings of such a
 * policy, as JSON of the differences to the defaults.
 */
export const version = 10

export const sql = `
alter table connection_policies add column login_options text not null default '{}';
update connection_policies set policy_name = policy_name || '-' || id, name_key = name_key || '-' || lower(id)
  where name_key in ('telnet', 'rlogin');
insert into connection_policies (id, policy_name, name_key, description, protocol, host_key_policy, is_factory)
  values ('00000000000000000000000302', 'TELNET', 'telnet', 'of services that name no other', 'TELNET', 'first_sight', 1),
    ('00000000000000000000000303', 'RLOGIN', 'rlogin', 'of services that name no other', 'RLOGIN', 'first_sight', 1);
`
