import type { AuthorizationBeats } from '../../../application/ports/authorization-beats.ts';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { authorizationParameters, readAuthorization } from './authorization-codec.ts';
import { type PostgresRun, USE_VALUES_IF, valuesOf } from './postgres-run.ts';
import type { RecentSessions } from './recent-sessions.ts';
import { grantParameters, readGrant, readHead, readSession } from './session-codec.ts';
import { INSERT_GRANT_IF, INSERT_SESSION, LOG_FROM, sessionParameters } from './session-parts.postgres.ts';
import type { Statement } from './sql.ts';
import * as shared from './statements.ts';

const named = (name: string, text: string): Statement => ({ name, text });

const OPEN_AUTHORIZATION = named(
  'open_authorization',
  `with a as (
     insert into authorizations (tenant_id, id, version, document, expires_at)
     select id, $2::varchar, $3::int, $4::text, $5::bigint from tenants where id = $1 and status = 'active'
     returning id),
   ${USE_VALUES_IF('a', 6)}
   select id from a`,
);

/** The next version, if nobody else made it. */
const ADVANCE = `update authorizations set version = $3, document = $4, expires_at = $5
     where tenant_id = $1 and id = $2 and version = $3 - 1`;

const ADVANCE_AUTHORIZATION = named(
  'advance_authorization',
  `with a as (${ADVANCE} returning id), ${USE_VALUES_IF('a', 6)} select id from a`,
);

const GRANT_AUTHORIZATION = named(
  'grant_authorization',
  `with a as (${ADVANCE} and exists (select 1 from sessions s where s.tenant_id = $1 and s.id = $11
       and s.status in ('active', 'fetched', 'completed')) returning id),
   ${USE_VALUES_IF('a', 6)}, ${INSERT_GRANT_IF('a', 9)} select id from a`,
);

/** Parameters of a session come first, since they are numbered in the statement that inserts one. */
const GRANT_WITH_SESSION = named(
  'grant_authorization_with_session',
  `with a as (
     update authorizations set version = $18, document = $19, expires_at = $20
     where tenant_id = $1 and id = $17 and version = $18 - 1
       and exists (select 1 from tenants where id = $1 and status = 'active') returning id),
   s as (${INSERT_SESSION('$16', 'exists (select 1 from a)')}),
   ${USE_VALUES_IF('a', 21)}, ${INSERT_GRANT_IF('s', 24)},
   e as (${LOG_FROM('s', 'created_at')})
   select id from s`,
);

const REFRESH_GRANT = named(
  'refresh_grant',
  `with g as (
     update grants set generation = generation + 1
     where tenant_id = $1 and id = $2 and generation = $3 and consumed_at is not null and revoked_at is null
       and expires_at > $4 returning id),
   ${USE_VALUES_IF('g', 5)}
   select id from g`,
);

export function postgresAuthorizationBeats(
  { all, one, unlessUsed }: PostgresRun,
  cipher: Cipher,
  recent: RecentSessions,
  tenantId: TenantId,
): AuthorizationBeats {
  return {
    async openAuthorization(authorization, used) {
      const parameters = authorizationParameters(cipher, tenantId, authorization);
      const rows = await unlessUsed(used, OPEN_AUTHORIZATION, ...parameters, ...valuesOf(used));
      if (typeof rows === 'string') return rows;
      return rows.length > 0 ? 'opened' : undefined;
    },
    async findAuthorization(id) {
      const row = await one(shared.FIND_AUTHORIZATION, id);
      if (row === undefined) return undefined;
      const authorization = row['id'] === null ? undefined : readAuthorization(cipher, row);
      return { head: readHead(row), authorization };
    },
    async advanceAuthorization(next, used) {
      const parameters = authorizationParameters(cipher, tenantId, next);
      const rows = await unlessUsed(used, ADVANCE_AUTHORIZATION, ...parameters, ...valuesOf(used));
      if (typeof rows === 'string') return rows;
      return rows.length > 0 ? 'advanced' : 'stale';
    },
    async grantAuthorization(done, grant, session, used = []) {
      const step = [...authorizationParameters(cipher, tenantId, done), ...valuesOf(used)];
      const code = grantParameters(cipher, tenantId, grant);
      const rows =
        session === undefined
          ? await unlessUsed(used, GRANT_AUTHORIZATION, ...step, ...code)
          : await unlessUsed(
              used,
              GRANT_WITH_SESSION,
              ...sessionParameters(cipher, session),
              null,
              ...step,
              ...code,
            );
      const granted = typeof rows !== 'string' && rows.length > 0;
      if (granted && session !== undefined) recent.keep(session);
      return granted;
    },
    async findGrantById(id) {
      const row = await one(shared.FIND_GRANT_BY_ID, id);
      if (row === undefined) return undefined;
      return { head: readHead(row), grant: row['id'] === null ? undefined : readGrant(cipher, row) };
    },
    async refreshGrant(id, generation, used, now) {
      const rows = await unlessUsed(used, REFRESH_GRANT, id, generation, now.getTime(), ...valuesOf(used));
      if (typeof rows === 'string') return rows;
      return rows.length > 0 ? 'refreshed' : 'stale';
    },
    async revokeGrant(id, now) {
      await all(shared.REVOKE_GRANT, id, now.getTime());
    },
    async linkSubject(subjectHash, sessionId) {
      await all(shared.LINK_SUBJECT, subjectHash, sessionId);
    },
    async findBySubject(subjectHash) {
      return (await all(shared.FIND_BY_SUBJECT, subjectHash)).map((row) => readSession(cipher, row));
    },
  };
}
