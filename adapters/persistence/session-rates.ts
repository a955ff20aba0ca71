import type { Cipher } from '../../application/ports/cipher.ts';
import type { CountedSessions, CountQuery, OutcomeQuery, SessionCount } from '../../application/ports/session-rates.ts';
import type { SessionKind, SessionOutcome, SessionStatus } from '../../domain/sessions/session.ts';
import { MOVES, OPEN_STATUSES } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { HIDDEN, SESSIONS } from './rows/session-codec.ts';
import { listOf, named, type Row, type Statement } from './statement.ts';

type Query = { readonly statement: Statement; readonly parameters: readonly (string | number)[] };

/** One kind, or all that lists show. */
function kindOf(kinds: readonly SessionKind[], place: number) {
  const [kind] = kinds;
  return kinds.length === 1 && kind !== undefined
    ? { condition: `kind = $${place}`, parameters: [kind], shape: 'of_kind' }
    : { condition: `kind <> '${HIDDEN}'`, parameters: [], shape: 'of_all' };
}

const COUNTS = named(
  'count_sessions',
  `select kind, status, is_over, count(*) as number, min(created_at) as oldest from (
    select kind, status, created_at,
      case when status in (${listOf(OPEN_STATUSES)}) and expires_at <= $3 then 1 else 0 end as is_over
    from sessions where tenant_id = $1 and created_at >= $2
    order by created_at desc, id desc limit $4) s
   group by kind, status, is_over order by kind, status, is_over`,
);

/**
 * By `sessions_by_creation`, from its end: however many sessions there are, `limit` of them are read. It does not know kinds, so
 * those that nobody asked for are left out afterwards.
 */
export function countQuery({ since, now, limit }: CountQuery): Query {
  return { statement: COUNTS, parameters: [since.getTime(), now.getTime(), limit] };
}

/** Open ones whose time is over are expired, also before it was written down. */
export function readCounts(rows: readonly Row[], { kinds, limit }: CountQuery): CountedSessions {
  const counts = new Map<string, SessionCount>();
  let [read, first] = [0, Number.POSITIVE_INFINITY];
  for (const row of rows) {
    const [count, oldest] = [Number(row['number']), Number(row['oldest'])];
    read += count;
    first = Math.min(first, oldest);
    const kind = kinds.find((wanted) => wanted === row['kind']);
    if (kind === undefined) continue;
    const status = Number(row['is_over']) === 1 ? MOVES.expire.to : (row['status'] as SessionStatus);
    const before = counts.get(`${kind} ${status}`);
    counts.set(`${kind} ${status}`, {
      ...{ kind, status, count: count + (before?.count ?? 0) },
      oldest: new Date(Math.min(oldest, before?.oldest.getTime() ?? oldest)),
    });
  }
  return { counts: [...counts.values()], ...(read >= limit && { from: new Date(first) }) };
}

export function outcomeQuery({ kinds, since, failed, limit, after }: OutcomeQuery): Query {
  const kind = kindOf(kinds, after === undefined ? 4 : 6);
  const conditions = [
    ...['tenant_id = $1', 'created_at >= $2', 'outcome is not null', kind.condition],
    ...(failed ? [`status = 'failed'`] : []),
    ...(after === undefined ? [] : ['(created_at, id) < ($4, $5)']),
  ];
  const text = `select tenant_id, id, created_at, outcome from sessions where ${conditions.join(' and ')}
   order by created_at desc, id desc limit $3`;
  const shape = `${kind.shape}${failed ? '_failed' : ''}${after === undefined ? '' : '_after'}`;
  const place = after === undefined ? [] : [after.createdAt.getTime(), after.id];
  return {
    statement: named(`session_outcomes_${shape}`, text),
    parameters: [since.getTime(), limit, ...place, ...kind.parameters],
  };
}

export function readOutcome(cipher: Cipher, row: Row) {
  const id = row['id'] as SessionId;
  const place = { cipher, tenantId: row['tenant_id'] as string, id };
  const outcome = SESSIONS.readField('outcome', row['outcome'], place) as SessionOutcome;
  return { id, createdAt: new Date(Number(row['created_at'])), outcome };
}
