import type { AuthorizationBeats } from '../../../application/ports/authorization-beats.ts';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { authorizationParameters, readAuthorization } from './authorization-codec.ts';
import type { RecentSessions } from './recent-sessions.ts';
import { grantParameters, readGrant, readHead, readSession } from './session-codec.ts';
import { INSERT_GRANT, INSERT_SESSION, sessionParameters } from './session-parts.sqlite.ts';
import type { SqliteRun, SqliteSql, Statement } from './sql.ts';
import { type SqliteSteps, unlessReplayed } from './sqlite-steps.ts';
import * as shared from './statements.ts';

const named = (name: string, text: string): Statement => ({ name, text });

const INSERT_AUTHORIZATION = named(
  'insert_authorization',
  `insert into authorizations (tenant_id, id, version, document, expires_at)
   select id, $2, $3, $4, $5 from tenants where id = $1 and status = 'active'`,
);
const ADVANCE_AUTHORIZATION = named(
  'advance_authorization',
  `update authorizations set version = $3, document = $4, expires_at = $5
   where tenant_id = $1 and id = $2 and version = $3 - 1
     and exists (select 1 from tenants where id = $1 and status = 'active')`,
);
const IS_OPEN = named(
  'is_open',
  `select 1 from sessions where tenant_id = $1 and id = $2 and status in ('active', 'fetched', 'completed')`,
);
const REFRESH_GRANT = named(
  'refresh_grant',
  `update grants set generation = generation + 1
   where tenant_id = $1 and id = $2 and generation = $3 and consumed_at is not null and revoked_at is null
     and expires_at > $4`,
);

export function sqliteAuthorizationBeats(
  sql: SqliteSql,
  { first, use, log }: SqliteSteps,
  cipher: Cipher,
  recent: RecentSessions,
  tenantId: TenantId,
): AuthorizationBeats {
  const advance = (run: SqliteRun, next: Authorization) =>
    run.change(ADVANCE_AUTHORIZATION, tenantId, ...authorizationParameters(cipher, tenantId, next)) > 0;

  return {
    openAuthorization: (authorization, used) =>
      unlessReplayed(
        sql.beat((run) => {
          const parameters = authorizationParameters(cipher, tenantId, authorization);
          if (run.change(INSERT_AUTHORIZATION, tenantId, ...parameters) === 0) return undefined;
          use(run, used);
          return 'opened' as const;
        }),
        (kind) => kind,
      ),
    findAuthorization: (id) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_AUTHORIZATION, id);
        if (row === undefined) return undefined;
        const authorization = row['id'] === null ? undefined : readAuthorization(cipher, row);
        return { head: readHead(row), authorization };
      }),
    advanceAuthorization: (next, used) =>
      unlessReplayed(
        sql.beat((run) => {
          if (!advance(run, next)) return 'stale' as const;
          use(run, used);
          return 'advanced' as const;
        }),
        (kind) => kind,
      ),
    grantAuthorization: (done, grant, session, used = []) =>
      unlessReplayed(
        sql.beat((run) => {
          const isPossible = session !== undefined || first(run, IS_OPEN, grant.sessionId) !== undefined;
          if (!isPossible || !advance(run, done)) return false;
          use(run, used);
          if (session !== undefined) {
            run.change(INSERT_SESSION, tenantId, ...sessionParameters(cipher, session), null);
            log(run, session.id, session.version, session.status, session.createdAt);
            recent.keep(session);
          }
          run.change(INSERT_GRANT, tenantId, ...grantParameters(cipher, tenantId, grant));
          return true;
        }),
        () => false,
      ),
    findGrantById: (id) =>
      sql.single((run) => {
        const row = first(run, shared.FIND_GRANT_BY_ID, id);
        if (row === undefined) return undefined;
        return { head: readHead(row), grant: row['id'] === null ? undefined : readGrant(cipher, row) };
      }),
    refreshGrant: (id, generation, used, now) =>
      unlessReplayed(
        sql.beat((run) => {
          if (run.change(REFRESH_GRANT, tenantId, id, generation, now.getTime()) === 0) {
            return 'stale' as const;
          }
          use(run, used);
          return 'refreshed' as const;
        }),
        (kind) => kind,
      ),
    revokeGrant: (id, now) =>
      sql.single((run) => void run.change(shared.REVOKE_GRANT, tenantId, id, now.getTime())),
    linkSubject: (subjectHash, sessionId) =>
      sql.single((run) => void run.change(shared.LINK_SUBJECT, tenantId, subjectHash, sessionId)),
    findBySubject: (subjectHash) =>
      sql.single((run) =>
        run.all(shared.FIND_BY_SUBJECT, tenantId, subjectHash).map((row) => readSession(cipher, row)),
      ),
  };
}
