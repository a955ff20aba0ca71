import { LRUCache } from 'lru-cache';
import type { Grant, NewGrant } from '../../domain/oauth/grant.ts';
import { isTerminal, type Session, type SessionRequest } from '../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import { registerCache, shareOfCacheMemory } from './cache-memory.ts';
import { sizeOfDocument } from './size-of.ts';

const MAX_BYTES = 16 * 1024 * 1024;
/** Size of a session or grant without its request or authorization. */
const BASE_BYTES = 1_500;
/** A wallet usually arrives within minutes; later ones are served from the database. */
const KEEP_MS = 5 * 60_000;

/** Number of requests of recently ended sessions that are cached for the query of their result. */
const MAX_ENDED_REQUESTS = 64;

type Entry = ({ readonly session: Session } | { readonly grant: Grant } | { readonly request: SessionRequest }) & {
  /** The name by which changes refer to the entry. */
  readonly name: string;
  readonly bytes: number;
};

/**
 * Sessions and grants that this process handled recently. Their requests never change and need not be read again;
 * a commit checks everything that does change.
 */
export class SessionCache {
  /** Called with the id of each session that is looked up, to add it to the log context. */
  onLookUp: (id: SessionId) => void = () => {};
  readonly #entries = registerCache(
    'sessions',
    new LRUCache<string, Entry>({
      maxSize: shareOfCacheMemory(MAX_BYTES),
      sizeCalculation: ({ bytes }) => bytes,
      ttl: KEEP_MS,
      // A positive resolution would set a timer at each look-up.
      ttlResolution: 0,
      dispose: ({ name }, _, reason) => {
        if (reason !== 'set') this.#keys.delete(name);
      },
    }),
  );
  /** Cache keys by entry name: wallets refer to the public id of a session and the code of a grant. */
  readonly #keys = new Map<string, string>();
  /** Keys of requests, oldest first. */
  readonly #ended: string[] = [];

  clear(): void {
    this.#entries.clear();
  }

  session(tenantId: TenantId, publicId: PublicId): Session | undefined {
    const entry = this.#entries.get(`session ${tenantId} ${publicId}`);
    if (entry === undefined || !('session' in entry)) return undefined;
    this.onLookUp(entry.session.id);
    return entry.session;
  }

  setSession(session: Session): void {
    const { configurationIds, request, outcome } = session;
    this.#setSizedSession(session, BASE_BYTES + sizeOfDocument([configurationIds, request, outcome]));
  }

  #setSizedSession(session: Session, bytes: number): void {
    const { tenantId, id, publicId } = session;
    this.#set(`session ${tenantId} ${publicId}`, { session, name: `session ${tenantId} ${id}`, bytes });
  }

  #set(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
    // The LRU cache does not store an entry that is larger than the whole cache.
    if (this.#entries.peek(key) === entry) this.#keys.set(entry.name, key);
    else this.#keys.delete(entry.name);
  }

  /** Updates the status. The session is dropped if it ended, or if other changes happened to it in another process. */
  updateStatus(tenantId: TenantId, id: SessionId, status: Session['status'], version: number): void {
    const entry = this.#entries.get(this.#keys.get(`session ${tenantId} ${id}`) ?? '');
    if (entry === undefined || !('session' in entry)) return;
    const { session, bytes } = entry;
    if (isTerminal(status)) this.endSession(tenantId, id);
    else if (version === session.version + 1) this.#setSizedSession({ ...session, status, version }, bytes);
    else this.forgetSession(tenantId, id);
  }

  /**
   * Keeps only the request of an ended session, and only briefly: its result is queried soon, and entries that are
   * cached for minutes are expensive to collect.
   */
  endSession(tenantId: TenantId, id: SessionId): void {
    const entry = this.#entries.get(this.#keys.get(`session ${tenantId} ${id}`) ?? '');
    if (entry === undefined || !('session' in entry)) return;
    this.forgetSession(tenantId, id);
    if (entry.session.request === null) return;
    const key = `request ${tenantId} ${id}`;
    this.#entries.set(key, { request: entry.session.request, name: key, bytes: entry.bytes });
    if (this.#ended.push(key) > MAX_ENDED_REQUESTS) this.#entries.delete(this.#ended.shift() ?? '');
  }

  /** The request of a session, which never changes. That of an ended session is returned once. */
  request(tenantId: TenantId, id: SessionId): SessionRequest | undefined {
    const key = this.#keys.get(`session ${tenantId} ${id}`) ?? `request ${tenantId} ${id}`;
    const entry = this.#entries.get(key);
    if (entry === undefined || 'grant' in entry) return undefined;
    if ('session' in entry) return entry.session.request ?? undefined;
    this.#entries.delete(key);
    return entry.request;
  }

  forgetSession(tenantId: TenantId, id: SessionId): void {
    this.#entries.delete(this.#keys.get(`session ${tenantId} ${id}`) ?? '');
    this.#entries.delete(`request ${tenantId} ${id}`);
  }

  grant(tenantId: TenantId, codeHash: string): Grant | undefined {
    const entry = this.#entries.get(`grant ${tenantId} ${codeHash}`);
    if (entry === undefined || !('grant' in entry)) return undefined;
    this.onLookUp(entry.grant.sessionId);
    return entry.grant;
  }

  setGrant(tenantId: TenantId, grant: NewGrant): void {
    const initialState = { attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };
    const bytes = BASE_BYTES + sizeOfDocument([grant.credentialConfigurationIds, grant.authorization]);
    const name = `grant ${tenantId} ${grant.id}`;
    this.#set(`grant ${tenantId} ${grant.codeHash}`, { grant: { ...grant, ...initialState }, name, bytes });
  }

  forgetGrant(tenantId: TenantId, id: string): void {
    this.#entries.delete(this.#keys.get(`grant ${tenantId} ${id}`) ?? '');
  }
}
