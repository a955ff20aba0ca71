import { LRUCache } from 'lru-cache';
import { bounded } from '../../../application/bounded.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';

const MAX_SESSIONS = 5_000;
/** A wallet comes within minutes; whoever comes later is served from the database. */
const KEEP_MS = 5 * 60_000;

/** Sessions that this process opened a moment ago. Their requests never change, so reading them again is a waste. */
export class RecentSessions {
  readonly #sessions = new LRUCache<string, Session>({ ...bounded(MAX_SESSIONS), ttl: KEEP_MS });

  keep(session: Session): void {
    this.#sessions.set(`${session.tenantId} ${session.publicId}`, session);
  }

  recall(tenantId: TenantId, publicId: PublicId): Session | undefined {
    return this.#sessions.get(`${tenantId} ${publicId}`);
  }

  forget(tenantId: TenantId, publicId: PublicId): void {
    this.#sessions.delete(`${tenantId} ${publicId}`);
  }
}
