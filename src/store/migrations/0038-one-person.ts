/** A server's id of a person is one person of the domain. */
export const version = 38

export const sql = `
-- Persons are made anew by their next sign-in: of two of one id the older goes, whose name may be an old one.
delete from users where auth_domain_id is not null and stable_id <> '' and exists (
  select 1 from users as other
  where other.auth_domain_id = users.auth_domain_id and other.stable_id = users.stable_id and other.id > users.id
);
create unique index persons_by_stable_id on users (auth_domain_id, stable_id) where stable_id <> '';
`
