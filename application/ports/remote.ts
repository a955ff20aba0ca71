export type RemoteResponse = {
  readonly status: number;
  /** Media type in lower case without parameters. */
  readonly contentType: string;
  readonly body: Buffer;
};

/**
 * Reasons why a call got no answer. `refused_address`: the outbound guard blocked the call. `busy`: too many calls of this service are
 * under way, which says nothing about the target. `redirected`: the call does not follow redirects, or not so many.
 */
export type RemoteFault = 'refused_address' | 'timeout' | 'too_large' | 'unreachable' | 'redirected' | 'busy';

export class RemoteError extends Error {
  readonly fault: RemoteFault;
  /** Cause of `unreachable`: DNS, connection, or TLS with its reason, without addresses and names. */
  readonly detail: string | undefined;

  constructor(fault: RemoteFault, message: string, options: { cause?: unknown; detail?: string | undefined } = {}) {
    const { cause, detail } = options;
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'RemoteError';
    this.fault = fault;
    this.detail = detail;
  }

  get reason(): string {
    return this.detail === undefined ? this.fault : `${this.fault} (${this.detail})`;
  }
}

/** Detail of the RemoteError in the cause chain of an error; undefined if there is none, or it has no detail. */
export function remoteDetailOf(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof RemoteError) return cause.detail;
  }
  return undefined;
}

/**
 * The only outbound HTTP client of the service. It calls only `https` at public addresses, unless `OUTBOUND_ALLOW` lists the host or
 * network, also after redirects; time and size are bounded.
 */
export abstract class Remote {
  /**
   * True if a call of this address is certainly refused. No DNS look-up: a name may still resolve to an address that is refused.
   * @param tenantId tenant of the call; undefined for the service itself.
   */
  abstract refuses(url: string, tenantId: string | undefined): boolean;

  /** @throws RemoteError when no complete answer arrived. Any status is an answer. */
  abstract request(
    url: string,
    options: {
      /** Calls, connections and bytes are shared out between tenants. Undefined for the service itself. */
      readonly tenantId: string | undefined;
      readonly method: 'GET' | 'POST';
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly timeoutMs: number;
      readonly maxBytes: number;
      /** Reads the body of answers with a status from 400 on, which is empty otherwise. */
      readonly readsErrors?: boolean;
      /** The content is signed and the caller verifies it: http to public addresses on the default port is allowed. */
      readonly isSigned?: boolean;
      /**
       * Follows up to three redirects of a GET within the same time. Each address is checked like the first one,
       * https is not left, and only `accept` is sent on.
       */
      readonly followsRedirects?: boolean;
    },
  ): Promise<RemoteResponse>;
}
