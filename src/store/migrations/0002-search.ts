/** Indexes for the searches and orders that the API offers: names with the id that breaks ties, and labels. */
export const version = 2

export const sql = `
drop index accounts_name;
create index accounts_name on accounts (name_key, id);
create index domains_name on domains (name_key, id);
create index devices_host on devices (host);
create index sessions_user on sessions (lower(user_name), begin_time);
create index sessions_device on sessions (lower(device), begin_time);
`
