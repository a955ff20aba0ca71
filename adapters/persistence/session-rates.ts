import type { Cipher } from '../../application/ports/cipher.ts';
import type { CountedSessions, CountQuery, OutcomeQuery, SessionCount } from '../../application/ports/session-rates.ts';
import type { SessionKind, SessionOutcome, SessionStatus } from '../../domain/sessions/session.ts';
import { MOVES, OPEN_STATUSES } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { HIDDEN, SESSIONS } from './rows/session-codec.ts';
import { listOf, namedStatement, type Row, type Statement } from './statement.ts';

type Query = { readonly statement: Statement; readonly parameters: readonly (string | number)[] };

/** Condition for one kind, or for all kinds that lists show. */
function kindOf(kinds: readonly SessionKind[], parameterNumber: number) {
  const [kind] = kinds;
  return kinds.length === 1 && kind !== undefined
    ? { condition: `kind = $${parameterNumber}`, parameters: [kind], shape: 'of_kind' }
    : { condition: `kind <> '${HIDDEN}'`, parameters: [], shape: 'of_all' };
}

const COUNTS = namedStatement(
  'count_sessions',
  `select kind, status, is_over, count(*) as number, min(created_at) as oldest from (
    select kind, status, created_at,
      case when status in (${listOf(OPEN_STATUSES)}) and expires_at <= $3 then 1 else 0 end as is_over
    from sessions where tenant_id = $1 and created_at >= $2
    order by created_at desc, id desc limit $4) s
   group by kind, status, is_over order by kind, status, is_over`,
);

/**
 * Reads at most `limit` sessions from the end of `sessions_by_creation`, however many there are. The index does not contain kinds, so other
 * kinds are left out afterwards.
 */
export function countQuery({ since: startTime, now, limit }: CountQuery): Query {
  return { statement: COUNTS, parameters: [startTime.getTime(), now.getTime(), limit] };
}

/** Open sessions past their expiry count as expired, also before that was written. */
export function readCounts(rows: readonly Row[], { kinds, limit }: CountQuery): CountedSessions {
  const counts = new Map<string, SessionCount>();
  let [read, oldestRead] = [0, Number.POSITIVE_INFINITY];
  for (const row of rows) {
    const [count, oldest] = [Number(row['number']), Number(row['oldest'])];
    read += count;
    oldestRead = Math.min(oldestRead, oldest);
    const kind = kinds.find((requestedKind) => requestedKind === row['kind']);
    if (kind === undefined) continue;
    const status = Number(row['is_over']) === 1 ? MOVES.expire.to : (row['status'] as SessionStatus);
    const previousCount = counts.get(`${kind} ${status}`);
    counts.set(`${kind} ${status}`, {
      ...{ kind, status, count: count + (previousCount?.count ?? 0) },
      oldest: new Date(Math.min(oldest, previousCount?.oldest.getTime() ?? oldest)),
    });
  }
  return { counts: [...counts.values()], ...(read >= limit && { from: new Date(oldestRead) }) };
}

export function outcomeQuery({ kinds, since: startTime, failed, limit, after: cursor }: OutcomeQuery): Query {
  const kind = kindOf(kinds, cursor === undefined ? 4 : 6);
  const conditions = [
    ...['tenant_id = $1', 'created_at >= $2', 'outcome is not null', kind.condition],
    ...(failed ? [`status = 'failed'`] : []),
    ...(cursor === undefined ? [] : ['(created_at, id) < ($4, $5)']),
  ];
  const text = `select tenant_id, id, created_at, outcome from sessions where ${conditions.join(' and ')}
   order by created_at desc, id desc limit $3`;
  const shape = `${kind.shape}${failed ? '_failed' : ''}${cursor === undefined ? '' : '_after'}`;
  const cursorValues = cursor === undefined ? [] : [cursor.createdAt.getTime(), cursor.id];
  return {
    statement: namedStatement(`session_outcomes_${shape}`, text),
    parameters: [startTime.getTime(), limit, ...cursorValues, ...kind.parameters],
  };
}

export function readOutcome(cipher: Cipher, row: Row) {
  const id = row['id'] as SessionId;
  const location = { cipher, tenantId: row['tenant_id'] as string, id };
  const outcome = SESSIONS.readField('outcome', row['outcome'], location) as SessionOutcome;
  return { id, createdAt: new Date(Number(row['created_at'])), outcome };
}
