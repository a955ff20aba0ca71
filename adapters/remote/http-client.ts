import { Remote, RemoteError, type RemoteResponse } from '../../application/ports/remote.ts';
import { MemoryBudget } from '../../application/queues/memory-budget.ts';
import { AddressGuard } from './address-guard.ts';
import { readAnswer } from './answer.ts';
import { CallQueue, endOf } from './call-queue.ts';
import { connectionFault } from './connection-fault.ts';
import { CALLS_PER_POOL, ConnectionPools } from './connection-pools.ts';
import { isPermittedLiteral } from './guarded-connector.ts';
import { NameResolver, type Resolve } from './name-resolver.ts';
import { MAX_REDIRECTS, Redirection, redirectTarget } from './redirection.ts';
import { request } from './undici-parts.ts';

const MEBIBYTE = 1024 * 1024;
/** Calls to all origins, shared by tenants. */
const GLOBAL_LIMITS = { slots: 2048, slotsPerKey: 256, waitingPerKey: 256, waiting: 2048 };
/** Calls of one tenant, shared by origins. */
const TENANT_LIMITS = { slots: 256, slotsPerKey: CALLS_PER_POOL, waitingPerKey: 96, waiting: 768 };
/** Calls to one origin, shared by tenants. */
const ORIGIN_LIMITS = { slots: 256, slotsPerKey: CALLS_PER_POOL, waitingPerKey: CALLS_PER_POOL, waiting: 2048 };
/** Memory of concurrent requests and responses. */
const MEMORY_LIMITS = { total: 256 * MEBIBYTE, perKey: 32 * MEBIBYTE };

type Options = Parameters<Remote['request']>[1];
type Call = {
  readonly url: URL;
  readonly options: Options;
  /** Tenant, or empty for calls of the service itself. */
  readonly tenantKey: string;
  /** Aborts the call, with the reason. */
  readonly end: AbortController;
};

/**
 * The only outgoing client: guarded addresses, few redirects, limits of time, size, connections and queue. Each tenant has its share of
 * calls, connections and bytes, in total and at each origin, so that slow servers of one tenant do not delay others.
 */
export class GuardedHttpClient extends Remote {
  readonly #guard: AddressGuard;
  readonly #lanes: ConnectionPools;
  readonly #globalQueue = new CallQueue(GLOBAL_LIMITS);
  readonly #tenants = new Map<string, CallQueue>();
  readonly #origins = new Map<string, CallQueue>();
  readonly #memory = new MemoryBudget(MEMORY_LIMITS, () => new RemoteError('busy', 'Too many bytes are being sent and received.'));
  #isClosed = false;

  /**
   * @param settings `allow`: hosts and networks beyond the public internet, see `AddressGuard`.
   * @throws Error for an invalid entry of `allow`.
   */
  constructor(settings: { readonly allow: readonly string[]; readonly resolve?: Resolve }) {
    super();
    this.#guard = new AddressGuard(settings.allow);
    this.#lanes = new ConnectionPools(this.#guard, settings.resolve ?? new NameResolver().resolve);
  }

  override refuses(url: string, tenantId: string | undefined): boolean {
    return this.#guard.forTenant(tenantId).refuses(url);
  }

  /** The timeout covers everything from the queue and name resolution to the last byte. */
  override async request(url: string, options: Options): Promise<RemoteResponse> {
    const target = this.#admit(url, options);
    if (this.#isClosed) throw new RemoteError('busy', 'The service is stopping.');
    const end = new AbortController();
    const timer = setTimeout(() => {
      end.abort(new RemoteError('timeout', `${target.origin} did not answer within ${options.timeoutMs} ms.`));
    }, options.timeoutMs);
    try {
      return await this.#follow({ url: target, options, tenantKey: options.tenantId ?? '', end });
    } catch (fault) {
      // Closes what remains: a response that arrives later, or the rest of one that is too long.
      end.abort(fault);
      throw fault;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Resolves after the running calls. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#lanes.close();
  }

  async #follow(initialCall: Call): Promise<RemoteResponse> {
    const visitedUrls = new Set<string>();
    for (let call = initialCall; ; ) {
      const { url, end } = call;
      visitedUrls.add(url.href);
      try {
        return await this.#runWithSlots(call);
      } catch (cause) {
        const fault = faultOf(end.signal.aborted ? end.signal.reason : cause, url.origin);
        const nextCall = visitedUrls.size > MAX_REDIRECTS ? undefined : this.#redirectedCall(call, fault);
        if (nextCall === undefined || visitedUrls.has(nextCall.url.href)) throw fault;
        call = nextCall;
      }
    }
  }

  /** @returns the call that follows a redirect; undefined if the fault is final. */
  #redirectedCall(call: Call, fault: RemoteError): Call | undefined {
    const { options } = call;
    if (!(fault instanceof Redirection) || options.followsRedirects !== true || options.method !== 'GET') return undefined;
    const nextUrl = redirectTarget(call.url, fault);
    if (nextUrl === undefined) return undefined;
    // Headers and body for one host are not sent to the next one.
    const { headers: { accept = '*/*' } = {}, body: _, ...remainingOptions } = options;
    return { ...call, url: this.#admit(nextUrl.href, options), options: { ...remainingOptions, headers: { accept } } };
  }

  /** Rejects addresses that can be rejected without name resolution. */
  #admit(text: string, { tenantId, isSigned }: Options): URL {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
      throw new RemoteError('refused_address', 'Only https addresses can be called.');
    }
    if (url.username !== '' || url.password !== '') {
      throw new RemoteError('refused_address', `An address at ${url.host} contains credentials.`);
    }
    if (isPermittedLiteral(this.#guard.forTenant(tenantId, isSigned), url) === false) {
      throw new RemoteError('refused_address', `${url.origin} is a blocked address.`);
    }
    return url;
  }

  /** Takes a slot of the tenant first, so that no tenant waits in the other queues with more than its share. */
  async #runWithSlots(call: Call): Promise<RemoteResponse> {
    const { tenantKey: party, end, url } = call;
    const releases: (() => void)[] = [];
    try {
      releases.push(await enter(this.#tenants, party, TENANT_LIMITS, url.origin, end));
      releases.push(await enter(this.#origins, url.origin, ORIGIN_LIMITS, party, end));
      releases.push(await this.#globalQueue.enter(party, end));
      // The library does not abort a call that still waits for its connection.
      return await Promise.race([this.#exchange(call), endOf(end.signal)]);
    } finally {
      for (const leave of releases.toReversed()) leave();
    }
  }

  async #exchange({ url, options, tenantKey: party, end }: Call): Promise<RemoteResponse> {
    const lane = this.#lanes.enter(party, url.origin, options.isSigned);
    const bytes = this.#memory.open(party, (reason) => end.abort(reason));
    const underWay = { all: this.#globalQueue.heldCount, own: this.#tenants.get(party)?.heldCount ?? 0 };
    try {
      bytes.add(options.body?.length ?? 0);
      const answer = await request(lane.pool, {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: options.method,
        headers: { ...options.headers, 'accept-encoding': 'identity' },
        body: options.body ?? null,
        signal: end.signal,
        ...(this.#lanes.isCrowded(party, underWay) && { reset: true }),
      });
      const { maxBytes, readsErrors = false } = options;
      return await readAnswer(answer, { origin: url.origin, maxBytes, readsErrors, bytes });
    } finally {
      bytes.release();
      this.#lanes.leave(lane);
    }
  }
}

/** @returns a function that releases the slot and removes an idle queue. */
async function enter(
  queues: Map<string, CallQueue>,
  name: string,
  limits: ConstructorParameters<typeof CallQueue>[0],
  queueKey: string,
  end: AbortController,
): Promise<() => void> {
  const queue = queues.get(name) ?? new CallQueue(limits);
  queues.set(name, queue);
  const forget = () => {
    if (queue.isIdle && queues.get(name) === queue) queues.delete(name);
  };
  try {
    const leave = await queue.enter(queueKey, end);
    return () => {
      leave();
      forget();
    };
  } catch (error) {
    forget();
    throw error;
  }
}

function faultOf(cause: unknown, origin: string): RemoteError {
  if (cause instanceof RemoteError) return cause;
  const detail = connectionFault(cause);
  const why = detail === undefined ? '' : `: ${detail}`;
  return new RemoteError('unreachable', `${origin} could not be reached${why}.`, { cause, detail });
}
