import { LRUCache } from 'lru-cache';
import type { Grant, NewGrant } from '../../domain/oauth/grant.ts';
import { isTerminal, type Session, type SessionRequest } from '../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../domain/shared/ids.ts';
import { partOfMemory, watchedCache } from './bounded.ts';
import { sizeOfDocument } from './size-of.ts';

const MAX_BYTES = 16 * 1024 * 1024;
/** Of a session or a grant, without what its request or authorization says. */
const OWN_BYTES = 1_500;
/** A wallet comes within minutes; one that comes later is served from the database. */
const KEEP_MS = 5 * 60_000;

/** Requests of sessions that ended last, for whoever comes for the result. */
const MOST_ENDED = 64;

type Entry = (
  | { readonly session: Session }
  | { readonly grant: Grant }
  /** Of a session that has ended. */
  | { readonly request: SessionRequest }
) & {
  /** The name under which changes know it. */
  readonly name: string;
  readonly bytes: number;
};

/**
 * Sessions and grants that this process saw a moment ago. Their requests never change, so reading them again is a waste;
 * whatever does change is expected by the commit that rests on it.
 */
export class Remembered {
  /** Is told of the one session that somebody asks for, for the log. */
  touched: (id: SessionId) => void = () => {};
  readonly #entries = watchedCache(
    'sessions',
    new LRUCache<string, Entry>({
      maxSize: partOfMemory(MAX_BYTES),
      sizeCalculation: ({ bytes }) => bytes,
      ttl: KEEP_MS,
      // Else a timer is set each time somebody looks.
      ttlResolution: 0,
      dispose: ({ name }, _, reason) => {
        if (reason !== 'set') this.#keys.delete(name);
      },
    }),
  );
  /** By which key an entry is found: wallets name the public id of a session and the code of a grant. */
  readonly #keys = new Map<string, string>();
  /** Keys of requests, the oldest first. */
  readonly #ended: string[] = [];

  clear(): void {
    this.#entries.clear();
  }

  session(tenantId: TenantId, publicId: PublicId): Session | undefined {
    const entry = this.#entries.get(`session ${tenantId} ${publicId}`);
    if (entry === undefined || !('session' in entry)) return undefined;
    this.touched(entry.session.id);
    return entry.session;
  }

  keepSession(session: Session): void {
    const { configurationIds, request, outcome } = session;
    this.#keepSession(session, OWN_BYTES + sizeOfDocument([configurationIds, request, outcome]));
  }

  #keepSession(session: Session, bytes: number): void {
    const { tenantId, id, publicId } = session;
    this.#keep(`session ${tenantId} ${publicId}`, { session, name: `session ${tenantId} ${id}`, bytes });
  }

  #keep(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
    // What is larger than all of the memory was not taken.
    if (this.#entries.peek(key) === entry) this.#keys.set(entry.name, key);
    else this.#keys.delete(entry.name);
  }

  /** Its status is another one now. It is not remembered any more if more has happened to it, somewhere else, or if it has ended. */
  move(tenantId: TenantId, id: SessionId, status: Session['status'], version: number): void {
    const entry = this.#entries.get(this.#keys.get(`session ${tenantId} ${id}`) ?? '');
    if (entry === undefined || !('session' in entry)) return;
    const { session, bytes } = entry;
    if (isTerminal(status)) this.endSession(tenantId, id);
    else if (version === session.version + 1) this.#keepSession({ ...session, status, version }, bytes);
    else this.forgetSession(tenantId, id);
  }

  /**
   * Of a session that has ended only its request is remembered, and not for long: whoever wants the result comes at once, and
   * what is kept for minutes costs more when it is collected.
   */
  endSession(tenantId: TenantId, id: SessionId): void {
    const entry = this.#entries.get(this.#keys.get(`session ${tenantId} ${id}`) ?? '');
    if (entry === undefined || !('session' in entry)) return;
    this.forgetSession(tenantId, id);
    if (entry.session.request === null) return;
    const key = `request ${tenantId} ${id}`;
    this.#entries.set(key, { request: entry.session.request, name: key, bytes: entry.bytes });
    if (this.#ended.push(key) > MOST_ENDED) this.#entries.delete(this.#ended.shift() ?? '');
  }

  /** The request of a session, which never changes while it is there; one of a session that has ended is told once. */
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
    this.touched(entry.grant.sessionId);
    return entry.grant;
  }

  keepGrant(tenantId: TenantId, grant: NewGrant): void {
    const fresh = { attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };
    const bytes = OWN_BYTES + sizeOfDocument([grant.credentialConfigurationIds, grant.authorization]);
    const name = `grant ${tenantId} ${grant.id}`;
    this.#keep(`grant ${tenantId} ${grant.codeHash}`, { grant: { ...grant, ...fresh }, name, bytes });
  }

  forgetGrant(tenantId: TenantId, id: string): void {
    this.#entries.delete(this.#keys.get(`grant ${tenantId} ${id}`) ?? '');
  }
}
