import { askPage, type Caller } from '../../api/call.ts';
import type { SessionRead } from './deliveries.ts';

export const MOST_SESSIONS = 500;
const PAGE_SIZE = 50;

/** The newest sessions, page by page. @param onPage is told all that were read so far. @returns whether there are older ones. */
export async function readRecent(
  caller: Caller,
  signal: AbortSignal,
  onPage: (sessions: readonly SessionRead[]) => void,
): Promise<boolean> {
  const sessions: SessionRead[] = [];
  let cursor: string | undefined;
  do {
    const limit = Math.min(PAGE_SIZE, MOST_SESSIONS - sessions.length);
    const query = { values: 'masked', limit, cursor };
    const page = await askPage<SessionRead>(caller, '/session', query, signal);
    // Nothing else of a session is kept.
    sessions.push(...page.rows.map(({ id, deliveries = [] }) => ({ id, deliveries })));
    cursor = page.next;
    onPage([...sessions]);
  } while (cursor !== undefined && sessions.length < MOST_SESSIONS);
  return cursor !== undefined;
}
