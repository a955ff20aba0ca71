/**
 * An event has a number that never comes again, also when the last one is removed: that is what `autoincrement` is for,
 * which only the row's own id can have. It needs no index besides, and a process of an older release gives it, too.
 */
export const statements = [
  `create table \`event_cursors\` (\`name\` text not null primary key, \`position\` bigint not null, \`tenant\` text not null, \`session\` text not null, \`version\` integer not null);`,
  'alter table `session_events` rename to `former_session_events`;',
  `create table \`session_events\` (\`position\` integer not null primary key autoincrement, \`tenant_id\` text not null, \`session_id\` text not null, \`version\` integer not null, \`status\` text not null, \`at\` bigint not null, unique (\`tenant_id\`, \`session_id\`, \`version\`));`,
  'insert into `session_events` (`tenant_id`, `session_id`, `version`, `status`, `at`) select `tenant_id`, `session_id`, `version`, `status`, `at` from `former_session_events` order by `rowid`;',
  'drop table `former_session_events`;',
];
