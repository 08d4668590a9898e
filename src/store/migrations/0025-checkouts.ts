/** How long a checkout lasts, what it is for, and who took it back. */
export const version = 25

export const sql = `
-- null: as long as max_duration
alter table checkout_policies add column duration integer;
-- 0: none
alter table checkout_policies add column extension integer not null default 0;
alter table checkouts add column comment text not null default '';
alter table checkouts add column ticket text not null default '';
-- empty: nobody
alter table checkouts add column forced_by text not null default '';
alter table checkouts add column forced_comment text not null default '';
create index checkouts_by_begin on checkouts (begin_time desc, id);
-- those that have to be ended
create index checkouts_out on checkouts (expires) where end_time is null;
`
