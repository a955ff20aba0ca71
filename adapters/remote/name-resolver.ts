import { Resolver } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { RemoteError } from '../../application/ports/remote.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';
import { LOCAL_NAME, LOOPBACK } from './address-guard.ts';
import { CallQueue, endOf } from './call-queue.ts';
import { nameFault } from './connection-fault.ts';
import { type Files, type Names, readNames, SYSTEM_FILES } from './resolver-files.ts';

export type ResolvedAddress = { readonly address: string; readonly family: number };

/** @returns every address of a host name. @param party for whom it is asked. */
export type Resolve = (host: string, party: string) => Promise<readonly ResolvedAddress[]>;

/** For a name with all that is tried for it. */
const LIMIT_MS = 3_000;
const QUERY_MS = 1_000;
const TRIES = 2;
/** RFC 8305 section 3: the other family is not waited for much longer. */
const OTHER_FAMILY_MS = 300;
const KEPT_MS = 10_000;
const FAILURE_MS = 5_000;
/** How long files are believed, and the name servers that were found. */
const FILES_MS = 5_000;
const MAX_KEPT_BYTES = 1024 * 1024;
const MAX_ADDRESSES = 32;
const LOOKUPS = { slots: 256, slotsOfParty: 4, waitingOfParty: 256, waiting: 4_096 };

type Outcome = { readonly until: number } & (
  | { readonly addresses: readonly ResolvedAddress[]; readonly failure?: undefined }
  | { readonly addresses?: undefined; readonly failure: RemoteError }
);

/**
 * Asks the name servers of the system without a thread for each question, so that names which nobody answers hold up
 * nobody else. First comes what the hosts file says, then `localhost`, then DNS with the search domains of resolv.conf.
 * Answers count for ten seconds, failures for five.
 */
export class NameResolver {
  readonly #files: Files;
  readonly #servers: readonly string[] | undefined;
  readonly #queue = new CallQueue(LOOKUPS);
  readonly #flights = new SingleFlight<readonly ResolvedAddress[]>();
  readonly #outcomes = new LRUCache<string, Outcome>({
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ addresses = [] }, host) => 300 + host.length + 100 * addresses.length,
  });
  #names: { readonly until: number; readonly read: Promise<Names> } | undefined;

  /** @param settings those of the system, unless a test says otherwise; `servers` as `setServers` takes them. */
  constructor(settings: { readonly files?: Files; readonly servers?: readonly string[] } = {}) {
    this.#files = settings.files ?? SYSTEM_FILES;
    this.#servers = settings.servers;
  }

  /** @throws RemoteError `unreachable`, and `busy` when too many questions of the party wait. */
  readonly resolve: Resolve = (host, party) => {
    const name = host.toLowerCase();
    const known = this.#outcomes.get(name);
    if (known !== undefined && performance.now() < known.until) {
      return known.failure === undefined ? Promise.resolve(known.addresses) : Promise.reject(known.failure);
    }
    // A party waits for its own questions alone.
    return this.#flights.run(`${party} ${name}`, () => this.#find(name, party));
  };

  async #find(name: string, party: string): Promise<readonly ResolvedAddress[]> {
    const call = new AbortController();
    const leave = await within(call, name, this.#queue.enter(party, call));
    const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    try {
      // Its time begins here: that its party has others to wait for says nothing of the name.
      const addresses = await within(call, name, this.#ask(name, resolver));
      this.#outcomes.set(name, { addresses, until: performance.now() + KEPT_MS });
      return addresses;
    } catch (error) {
      const failure = error instanceof RemoteError ? error : unknown(name, error);
      if (failure.fault !== 'busy') this.#outcomes.set(name, { failure, until: performance.now() + FAILURE_MS });
      throw failure;
    } finally {
      leave();
      // Whatever is still asked ends here.
      resolver.cancel();
    }
  }

  async #ask(name: string, resolver: Resolver): Promise<readonly ResolvedAddress[]> {
    const { hosts, search, dots } = await this.#present();
    const local = hosts.get(name.replace(/\.$/, '')) ?? (LOCAL_NAME.test(name) ? LOOPBACK : undefined);
    if (local !== undefined) return local.map(withFamily);
    let failure: unknown;
    for (const candidate of candidatesOf(name, search, dots)) {
      const found = await addressesOf(resolver, candidate).catch((error: unknown) => {
        failure ??= error;
        // A server that does not answer is not asked again for each search domain.
        if (!isAnswer(error)) throw error;
        return [];
      });
      if (found.length > 0) return found.slice(0, MAX_ADDRESSES);
    }
    throw unknown(name, failure);
  }

  #present(): Promise<Names> {
    if (this.#names === undefined || performance.now() >= this.#names.until) {
      this.#names = { until: performance.now() + FILES_MS, read: readNames(this.#files) };
    }
    return this.#names.read;
  }
}

/** resolv.conf(5): with few dots the search domains come first; a name that ends in a dot is complete. */
function candidatesOf(name: string, search: readonly string[], dots: number): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const longer = search.map((domain) => `${name}.${domain}`).filter((each) => each.length <= 253);
  return name.split('.').length - 1 >= dots ? [name, ...longer] : [...longer, name];
}

/** Both families, IPv4 first: it is the one that every network has. */
async function addressesOf(resolver: Resolver, name: string): Promise<readonly ResolvedAddress[]> {
  const four = resolver.resolve4(name);
  const six = resolver.resolve6(name);
  const first = await Promise.any([four, six]).catch(() => []);
  const late = first.length > 0 ? [sleep(OTHER_FAMILY_MS, [] as string[], { ref: false })] : [];
  const both = await Promise.allSettled([four, six].map((answer) => Promise.race([answer, ...late])));
  const found = both.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (found.length > 0) return found.map(withFamily);
  const faults = both.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  const fault = faults.find((each) => !isAnswer(each)) ?? faults[0];
  if (fault !== undefined) throw fault;
  return [];
}

const withFamily = (address: string): ResolvedAddress => ({ address, family: address.includes(':') ? 6 : 4 });

/** Whether a server said something, if only that it knows nothing. */
function isAnswer(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code !== 'ETIMEOUT' && code !== 'ECONNREFUSED' && code !== 'ECANCELLED';
}

/** Ends `call` when the work takes longer than a look-up may. */
async function within<T>(call: AbortController, name: string, work: Promise<T>): Promise<T> {
  const limit = setTimeout(() => call.abort(tooSlow(name)), LIMIT_MS);
  try {
    return await Promise.race([work, endOf(call.signal)]);
  } finally {
    clearTimeout(limit);
  }
}

const tooSlow = (name: string) =>
  new RemoteError('unreachable', `${name} could not be looked up within ${LIMIT_MS} ms.`, {
    detail: 'DNS: the name server did not answer in time',
  });
const unknown = (name: string, cause: unknown) =>
  new RemoteError('unreachable', `${name} could not be looked up.`, { cause, detail: nameFault(cause) });
