import { namedStatement } from './statement.ts';

/** Size of a stored request, in characters, up to which an ended session keeps it for display. Ordinary requests are shorter. */
export const MAX_KEPT_REQUEST = 16_384;

/**
 * Sessions whose credentials may be renewed or revoked keep their request, because its claims and its webhook may be needed again. A
 * deferred credential that the wallet has not retrieved yet appears in `issued_count` only.
 */
const isErasable = (limit: string) => `issued_mask = 0 and issued_count = 0 and octet_length(request) > ${limit}`;

/**
 * Value of the column after the expiry of a session that no wallet answered. The length of a value is known without reading it, and
 * PostgreSQL does not rewrite a long value that stays.
 */
export const REQUEST_AT_EXPIRY = `case when claimed_at is null and ${isErasable(String(MAX_KEPT_REQUEST))} then null else request end`;

/** `$1` is the tenant, `$2` the session, `$3` the limit. PostgreSQL has it as the function `erase_request_1`. */
export const ERASE_REQUEST = namedStatement(
  'erase_request',
  `update sessions set request = null
   where tenant_id = $1 and id = $2 and status in ('failed', 'expired') and ${isErasable('$3')}`,
);
