/** Percent of a page that new rows fill. What a wallet moves is written three more times within minutes. */
const FILLED = { sessions: 60, grants: 75 } as const;

/** What is sealed is as good as random: no compression of it ever makes it smaller. */
const SEALED = [
  ['sessions', 'request'],
  ['sessions', 'outcome'],
  ['grants', 'document'],
  ['authorizations', 'document'],
  ['deferred_transactions', 'credentials'],
  ['kept_answers', 'said'],
] as const;

const STORED = SEALED.map(([table, column]) => `alter table "${table}" alter column "${column}" set storage external;`);

/**
 * A row that changes stays on its page where there is room, and then no index hears of it; else all of them get an entry more.
 * No row is rewritten: both count for what is written from now on.
 */
export const statements = [
  // Each change looks at its tenant first: who begins one meanwhile waits there, and holds nothing that is wanted here.
  'lock table "tenants" in access exclusive mode;',
  ...Object.entries(FILLED).map(([table, percent]) => `alter table "${table}" set (fillfactor = ${percent});`),
  // Tables that Citus has spread refuse this one.
  `do $$ begin
      if to_regclass('pg_catalog.pg_dist_partition') is null then
        ${STORED.join('\n        ')}
      end if;
    end $$;`,
];
