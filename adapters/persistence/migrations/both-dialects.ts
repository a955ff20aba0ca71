/**
 * Statements that both dialects run, in the words of PostgreSQL, by migration. Where a dialect needs more, a file of the migration's
 * name in its folder stands in for the entry.
 */
export const BOTH_DIALECTS = {
  Migration00000000000001_initial: [
    'create table "clients" ("client_id" varchar(255) not null, "tenant_id" varchar(255) null, "roles" jsonb not null, "description" text null, "allowed_presentation_configs" jsonb null, "allowed_issuance_configs" jsonb null, "secret_hash" text not null, "pick_up" jsonb null, "version" int not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("client_id"))',
    'create index "clients_of_tenant" on "clients" ("tenant_id", "client_id")',
    'create table "credential_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
    'create table "grants" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "kind" varchar(255) not null, "session_id" varchar(255) not null, "public_id" varchar(255) not null, "code_hash" varchar(255) not null, "tx_code_hash" varchar(255) null, "configuration_ids" text not null, "expires_at" bigint not null, "attempts" int not null, "consumed_at" bigint null, primary key ("tenant_id", "id"))',
    'create index "grants_by_expiry" on "grants" using brin ("expires_at")',
    'alter table "grants" add constraint "grants_code" unique ("tenant_id", "code_hash")',
    'create table "issuance_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
    'create table "issued_batches" ("tenant_id" varchar(255) not null, "session_id" varchar(255) not null, "id" varchar(255) not null, "credential_configuration_id" varchar(255) not null, "count" int not null, "status_list_id" varchar(255) null, "first_counter" int null, "issued_at" bigint not null, primary key ("tenant_id", "session_id", "id"))',
    'create table "key_chains" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
    'create table "leases" ("name" varchar(255) not null, "holder" varchar(255) not null, "expires_at" bigint not null, primary key ("name"))',
    'create table "presentation_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
    'create table "session_events" ("tenant_id" varchar(255) not null, "session_id" varchar(255) not null, "version" int not null, "status" varchar(255) not null, "at" bigint not null, primary key ("tenant_id", "session_id", "version"))',
    'create table "sessions" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "public_id" varchar(255) not null, "kind" varchar(255) not null, "status" varchar(255) not null, "version" int not null, "created_at" bigint not null, "updated_at" bigint not null, "expires_at" bigint not null, "configuration_ids" text not null, "use_dc_api" boolean not null, "request" text null, "outcome" text null, "issued_mask" int not null, "revoked_mask" int not null, "issued_count" int not null, "claimed_at" bigint null, primary key ("tenant_id", "id"))',
    'create index "sessions_by_creation" on "sessions" ("tenant_id", "created_at", "id")',
    'create index "sessions_by_expiry" on "sessions" using brin ("expires_at")',
    'alter table "sessions" add constraint "sessions_public_id" unique ("tenant_id", "public_id")',
    'create table "status_entries" ("tenant_id" varchar(255) not null, "list_id" varchar(255) not null, "idx" int not null, "status" int not null, "changed_version" int not null, primary key ("tenant_id", "list_id", "idx"))',
    'create index "status_entries_changed" on "status_entries" ("tenant_id", "list_id", "changed_version")',
    'create table "status_lists" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "credential_configuration_id" varchar(255) null, "key_chain_id" varchar(255) null, "bits" int not null, "capacity" int not null, "ttl_seconds" int not null, "immediate_update" boolean not null, "enable_aggregation" boolean not null, "secret" text not null, "used_entries" int not null, "version" int not null, "created_at" bigint not null, "token" text null, "token_version" int null, "token_issued_at" bigint null, "token_expires_at" bigint null, primary key ("tenant_id", "id"))',
    'create table "tenants" ("id" varchar(255) not null, "name" varchar(255) not null, "description" text null, "status" varchar(255) not null, "session_config" jsonb null, "status_list_config" jsonb null, "revision" int not null, "version" int not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("id"))',
    'create table "used_values" ("tenant_id" varchar(255) not null, "kind" varchar(255) not null, "hash" varchar(255) not null, "expires_at" bigint not null, primary key ("tenant_id", "kind", "hash"))',
    'create index "used_values_by_expiry" on "used_values" using brin ("expires_at")',
  ],
  Migration00000000000002_issuance: [
    'create table "authorizations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "version" int not null, "document" text not null, "expires_at" bigint not null, primary key ("tenant_id", "id"))',
    'create index "authorizations_by_expiry" on "authorizations" using brin ("expires_at")',
    'create table "deferred_transactions" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "session_id" varchar(255) not null, "public_id" varchar(255) not null, "grant_id" varchar(255) null, "credential_configuration_id" varchar(255) not null, "holder_keys" text not null, "status" varchar(255) not null, "interval_seconds" int not null, "credentials" text null, "batch_id" varchar(255) null, "error_message" text null, "created_at" bigint not null, "updated_at" bigint not null, "expires_at" bigint not null, primary key ("tenant_id", "id"))',
    'create index "deferred_by_session" on "deferred_transactions" ("tenant_id", "session_id")',
    'create index "deferred_by_expiry" on "deferred_transactions" using brin ("expires_at")',
    'create table "session_subjects" ("tenant_id" varchar(255) not null, "subject_hash" varchar(255) not null, "session_id" varchar(255) not null, primary key ("tenant_id", "subject_hash", "session_id"))',
    'create index "session_subjects_by_session" on "session_subjects" ("tenant_id", "session_id")',
    `alter table "grants" add "server" varchar(255) not null default 'built-in'`,
    'alter table "grants" add "document" text null',
    'alter table "grants" add "holder" text null',
    'alter table "grants" add "generation" int not null default 0',
    'alter table "grants" add "revoked_at" bigint null',
  ],
  Migration00000000000003_trust: [
    'create table "registrar_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
    'create table "registration_certificates" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
    'create table "seen_releases" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "sequence_number" bigint not null, "content_hash" varchar(255) not null, "seen_at" bigint not null, primary key ("tenant_id", "id"))',
    'create table "trust_lists" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "sequence_number" int not null, "jwt" text not null, "next_update" bigint not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
    'create index "trust_lists_by_end" on "trust_lists" ("next_update")',
    'create table "trust_list_versions" ("tenant_id" varchar(255) not null, "trust_list_id" varchar(255) not null, "sequence_number" int not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, primary key ("tenant_id", "trust_list_id", "sequence_number"))',
    'alter table "trust_list_versions" add constraint "trust_list_versions_id" unique ("tenant_id", "trust_list_id", "id")',
  ],
  Migration00000000000004_audit: [
    'create table "audit_entries" ("tenant_id" varchar(255) not null, "sequence" bigint not null, "at" bigint not null, "actor" text not null, "action" varchar(255) not null, "kind" varchar(255) not null, "target" text not null, "detail" text not null, "hash" varchar(255) not null, primary key ("tenant_id", "sequence"))',
    'create index "audit_entries_of_target" on "audit_entries" ("tenant_id", "target", "sequence")',
    'create table "audit_heads" ("tenant_id" varchar(255) not null, "sequence" bigint not null, "hash" varchar(255) not null, "seal" varchar(255) not null, primary key ("tenant_id"))',
  ],
  Migration00000000000005_sealing_keys: [
    'create table "sealing_keys" ("id" varchar(255) not null, "first_used_at" bigint not null, primary key ("id"))',
  ],
  Migration00000000000006_removed_clients: [
    'create table "removed_clients" ("tenant_id" varchar(255) not null, "client_id" varchar(255) not null, primary key ("tenant_id", "client_id"))',
    // Who was removed before there were marks stands in the audit log.
    `insert into removed_clients (tenant_id, client_id)
         select distinct entry.tenant_id, entry.target from audit_entries entry
         join tenants on tenants.id = entry.tenant_id
         where entry.kind = 'client' and entry.action = 'removed'
         and not exists (select 1 from clients
           where clients.client_id = entry.target and clients.tenant_id = entry.tenant_id)`,
  ],
  Migration00000000000010_key_providers: [
    'alter table "tenants" add "kms" varchar(255) null',
    'alter table "sealing_keys" add "resealed_at" bigint null',
    'alter table "sealing_keys" add "audit_key" text null',
    'create table "retired_keys" ("owner" varchar(255) not null, "kms" varchar(255) not null, "key_id" varchar(255) not null, "algorithm" varchar(255) not null, "retired_at" bigint not null, primary key ("owner", "kms", "key_id"))',
  ],
  Migration00000000000012_webhook_secrets: [
    'create table "webhook_secrets" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"))',
  ],
  Migration00000000000014_renewals: [
    // Grants live for weeks beside their sessions, and go with them one by one.
    'create index "grants_by_session" on "grants" ("tenant_id", "session_id")',
    'create table "kept_answers" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "said" text not null, "expires_at" bigint not null, primary key ("tenant_id", "id"))',
    'create index "kept_answers_by_expiry" on "kept_answers" using brin ("expires_at")',
  ],
  Migration00000000000016_profiles: ['alter table "tenants" add "profile" varchar(255) null'],
  /** What keys of wallets are left of deferred transactions that were over before they were erased with the end. */
  Migration00000000000017_forgotten_keys: [
    `update "deferred_transactions" set "holder_keys" = '[]' where "status" in ('retrieved', 'failed', 'expired')`,
  ],
  Migration00000000000020_followed_wallets: [
    'create table "followed_lists" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "place" text not null, "next_check_at" bigint not null, "checked_at" bigint null, "failing_since" bigint null, "failures" int not null, "failure" text null, "idle_since" bigint null, primary key ("tenant_id", "id"))',
    'create index "followed_lists_due" on "followed_lists" ("next_check_at")',
    'create table "followed_statuses" ("tenant_id" varchar(255) not null, "list_id" varchar(255) not null, "idx" int not null, "batch_id" varchar(255) not null, "session_id" varchar(255) not null, "ends_at" bigint null, primary key ("tenant_id", "list_id", "idx", "batch_id"))',
    'create table "fallen_batches" ("tenant_id" varchar(255) not null, "batch_id" varchar(255) not null, "session_id" varchar(255) not null, "credential_configuration_id" varchar(255) not null, "fell_at" bigint not null, primary key ("tenant_id", "batch_id"))',
    'alter table "deferred_transactions" add "wallet_statuses" text null',
  ],
  Migration00000000000021_organizations: ['alter table "tenants" add "organization" jsonb null'],
  Migration00000000000022_issued_subjects: [
    'create table "issued_subjects" ("tenant_id" varchar(255) not null, "fingerprint" varchar(255) not null, "session_id" varchar(255) not null, "batch_id" varchar(255) not null, "credential_configuration_id" varchar(255) not null, "expires_at" bigint null, primary key ("tenant_id", "fingerprint", "session_id", "batch_id"))',
    'create index "issued_subjects_by_expiry" on "issued_subjects" using brin ("expires_at")',
    'create table "subject_keys" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "secret" text not null, primary key ("tenant_id", "id"))',
    'create table "subject_revocations" ("tenant_id" varchar(255) not null, "fingerprint" varchar(255) not null, "session_id" varchar(255) not null, "credential_configuration_id" varchar(255) not null, "due_at" bigint not null, primary key ("tenant_id", "fingerprint", "session_id", "credential_configuration_id"))',
    'create index "subject_revocations_due" on "subject_revocations" ("due_at")',
    'alter table "fallen_batches" add "told_at" bigint null',
  ],
  Migration00000000000024_kept_trust_lists: [
    'create table "kept_trust_lists" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "sequence_number" bigint not null, "place" text not null, "copy" text null, "document_hash" varchar(255) null, "ends_at" bigint null, "checked_at" bigint null, "seen_at" bigint not null, "held_since" bigint null, "finding" text null, "finding_key" varchar(255) null, "told_key" varchar(255) null, primary key ("tenant_id", "id"))',
    'create index "kept_trust_lists_by_look" on "kept_trust_lists" ("seen_at")',
  ],
  Migration00000000000025_pending_deliveries: [
    'create table "pending_deliveries" ("tenant_id" varchar(255) not null, "session_id" varchar(255) not null, "id" varchar(255) not null, "due_at" bigint not null, primary key ("tenant_id", "session_id", "id"))',
    'create index "pending_deliveries_due" on "pending_deliveries" ("due_at")',
  ],
  Migration00000000000030_terms: [
    'create table "service_terms" ("number" bigint not null, "follows" bigint not null, "id" varchar(255) not null, "lineage" varchar(255) not null, "place" varchar(255) not null, "counter" bigint not null, "began_at" bigint not null, "how" varchar(255) not null, "lost_at" bigint null, "list_floor" int not null, primary key ("number"))',
    'alter table "service_terms" add constraint "service_terms_follows" unique ("follows")',
  ],
  Migration00000000000031_tenant_ends: ['alter table "tenants" add "ends_at" bigint null'],
  /** Small indexes on rows that jobs look for; none of them is on a table that a wallet request writes. */
  Migration00000000000033_due_rows: [
    'drop index "deferred_by_expiry"',
    `create index "deferred_open_by_expiry" on "deferred_transactions" ("expires_at") where status in ('pending', 'ready')`,
    'create index "clients_with_pick_up" on "clients" ("client_id") where pick_up is not null',
    'create index "tenants_by_end" on "tenants" ("ends_at") where ends_at is not null',
  ],
  Migration00000000000034_key_and_client_integrity: [
    'create table "recorded_keys" ("tenant_id" varchar(255) not null, "thumbprint" varchar(255) not null, "compromised_at" bigint null, "certificates" jsonb not null, primary key ("tenant_id", "thumbprint"))',
    'alter table "clients" add "mac" text null',
    'create table "client_mac_markers" ("id" varchar(255) not null, "since" bigint not null, "tolerated_until" bigint not null, "code" text not null, primary key ("id"))',
    'create table "revoked_subjects" ("tenant_id" varchar(255) not null, "fingerprint" varchar(255) not null, "credential_configuration_id" varchar(255) not null, "revoked_at" bigint not null, primary key ("tenant_id", "fingerprint", "credential_configuration_id"))',
  ],
  /** The quota of open sessions counts sessions that are created from here on. */
  Migration00000000000035_open_session_bytes: [
    'create table "open_session_bytes" ("tenant_id" varchar(255) not null, "expires_at" bigint not null, "bytes" bigint not null, primary key ("tenant_id", "expires_at"))',
    'create index "open_session_bytes_by_expiry" on "open_session_bytes" ("expires_at")',
  ],
  Migration00000000000036_witnessed_terms: ['alter table "service_terms" add "witnessed_at" bigint null'],
  Migration00000000000037_grants_of_subjects: ['alter table "issued_subjects" add "grant_id" varchar(255) null'],
  /**
   * Revocations of a person and authorizations of wallets are in the order in which the database recorded them, whatever the clocks of
   * the processes say. Rows of earlier releases have no place in it.
   */
  Migration00000000000039_revocation_order: [
    'alter table "grants" add "revocations_before" bigint null',
    'alter table "revoked_subjects" add "number" bigint null',
    'create index "revoked_subjects_by_number" on "revoked_subjects" ("tenant_id", "number")',
    'create index "issued_subjects_by_session" on "issued_subjects" ("tenant_id", "session_id", "grant_id")',
    'alter table "deferred_transactions" add "authorized_at" bigint null',
  ],
  /** A process of a release before reads and writes the columns that it knows. */
  Migration00000000000040_witnessed_positions: [
    'alter table "service_terms" add "witnessed_counter" bigint null',
    'alter table "service_terms" add "witnessed_idle_checks" bigint null',
    'alter table "service_terms" add "witnessed_by" text null',
  ],
};

/** A statement in the words of SQLite, which has fewer types and no block range indexes, and adds no constraints. */
export function inSqlite(statement: string): string {
  return statement
    .replaceAll('varchar(255)', 'text')
    .replaceAll('jsonb', 'json')
    .replaceAll(/ (int|boolean) /g, ' integer ')
    .replace(' using brin', '')
    .replace(/^alter table (\S+) add constraint (\S+) unique/, 'create unique index $2 on $1');
}
