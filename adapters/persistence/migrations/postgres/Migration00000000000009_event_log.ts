/**
 * What hands the event log on looks for events of transactions that are over, so each has the id of its own. The
 * database writes it: processes of an older release and `commit_change_1` know nothing of it. Events that there are get
 * the id of this transaction, without a rewrite of the table.
 */
export const statements = [
  `create table "event_cursors" ("name" varchar(255) not null, "position" bigint not null, "tenant" varchar(255) not null, "session" varchar(255) not null, "version" int not null, primary key ("name"));`,
  `alter table "session_events" add "position" bigint not null default (pg_current_xact_id()::text::bigint);`,
  `create index "session_events_by_position" on "session_events" ("position");`,
];
