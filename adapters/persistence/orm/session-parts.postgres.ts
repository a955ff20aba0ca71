import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import { GRANT_COLUMNS, SESSION_COLUMNS, sealOutcome, sealRequest } from './session-codec.ts';
import type { Parameter } from './sql.ts';
import { SESSION_VALUES } from './statements.ts';

// Data-modifying CTEs make each beat one round trip and one transaction.
export const INSERT_SESSION = (
  revision: string,
  condition = 'true',
) => `insert into sessions (${SESSION_COLUMNS})
  select ${SESSION_VALUES} from tenants
  where id = $1 and status = 'active' and (${revision}::int is null or revision = ${revision}) and ${condition}
  returning tenant_id, id, version, status, created_at`;
export const LOG_FROM = (source: string, time: string) =>
  `insert into session_events (tenant_id, session_id, version, status, at)
   select tenant_id, id, version, status, ${time} from ${source}`;

/** A new grant, its parameters from `$first` on, if the part of the statement that is called `source` yields a row. */
export const INSERT_GRANT_IF = (source: string, first: number) => {
  const at = (place: number) => `$${first + place}`;
  return `g as (insert into grants (${GRANT_COLUMNS})
     select $1::varchar, ${[0, 1, 2, 3, 4, 5].map((place) => `${at(place)}::varchar`).join(', ')}, ${at(6)}::text,
       ${at(7)}::bigint, ${at(8)}::varchar, ${at(9)}::text, 0, 0 from ${source})`;
};

/** Without the tenant, which the caller puts first. */
export function sessionParameters(cipher: Cipher, session: Session): Parameter[] {
  return [
    session.id,
    session.publicId,
    session.kind,
    session.status,
    session.version,
    session.createdAt.getTime(),
    session.updatedAt.getTime(),
    session.expiresAt.getTime(),
    JSON.stringify(session.configurationIds),
    session.useDcApi,
    sealRequest(cipher, session),
    sealOutcome(cipher, session.tenantId, session.id, session.outcome),
    session.issuedMask,
    session.claimedAt?.getTime() ?? null,
  ];
}
