import { LRUCache } from 'lru-cache';
import type { Grant, NewGrant } from '../domain/oauth/grant.ts';
import type { Session } from '../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../domain/shared/ids.ts';
import { bounded } from './bounded.ts';
import { sizeOfDocument } from './size-of.ts';

const MAX_BYTES = 16 * 1024 * 1024;
/** A wallet comes within minutes; one that comes later is served from the database. */
const KEEP_MS = 5 * 60_000;

const MAX_NAMES = 20_000;

/** With its size, which stays the same when only a status moves. */
type Entry = ({ readonly session: Session } | { readonly grant: Grant }) & { readonly bytes: number };

/**
 * Sessions and grants that this process saw a moment ago. Their requests never change, so reading them again is a waste;
 * whatever does change is expected by the commit that rests on it.
 */
export class Remembered {
  readonly #entries = new LRUCache<string, Entry>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ bytes }) => bytes,
    ttl: KEEP_MS,
  });
  /** The public id of a session and the hash of a grant's code, by which they are remembered. */
  readonly #publicIds = new LRUCache<string, PublicId>({ ...bounded(MAX_NAMES), ttl: KEEP_MS });
  readonly #codeHashes = new LRUCache<string, string>({ ...bounded(MAX_NAMES), ttl: KEEP_MS });

  session(tenantId: TenantId, publicId: PublicId): Session | undefined {
    const entry = this.#entries.get(`session ${tenantId} ${publicId}`);
    return entry !== undefined && 'session' in entry ? entry.session : undefined;
  }

  keepSession(session: Session): void {
    this.#publicIds.set(`${session.tenantId} ${session.id}`, session.publicId);
    this.#keep(session, sizeOfDocument(session));
  }

  #keep(session: Session, bytes: number): void {
    this.#entries.set(`session ${session.tenantId} ${session.publicId}`, { session, bytes });
  }

  /** Its status is another one now; if more has happened to it, somewhere else, it is not remembered any more. */
  move(tenantId: TenantId, id: SessionId, status: Session['status'], version: number): void {
    const publicId = this.#publicIds.get(`${tenantId} ${id}`);
    const entry = this.#entries.get(`session ${tenantId} ${publicId}`);
    if (entry === undefined || !('session' in entry)) return;
    const { session, bytes } = entry;
    if (version === session.version + 1) this.#keep({ ...session, status, version }, bytes);
    else this.forgetSession(tenantId, id);
  }

  forgetSession(tenantId: TenantId, id: SessionId): void {
    const publicId = this.#publicIds.get(`${tenantId} ${id}`);
    if (publicId !== undefined) this.#entries.delete(`session ${tenantId} ${publicId}`);
  }

  grant(tenantId: TenantId, codeHash: string): Grant | undefined {
    const entry = this.#entries.get(`grant ${tenantId} ${codeHash}`);
    return entry !== undefined && 'grant' in entry ? entry.grant : undefined;
  }

  keepGrant(tenantId: TenantId, grant: NewGrant): void {
    this.#codeHashes.set(`${tenantId} ${grant.id}`, grant.codeHash);
    const fresh = { attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };
    const kept = { grant: { ...grant, ...fresh } };
    this.#entries.set(`grant ${tenantId} ${grant.codeHash}`, { ...kept, bytes: sizeOfDocument(kept) });
  }

  forgetGrant(tenantId: TenantId, id: string): void {
    const codeHash = this.#codeHashes.get(`${tenantId} ${id}`);
    if (codeHash !== undefined) this.#entries.delete(`grant ${tenantId} ${codeHash}`);
  }
}
