export type RemoteResponse = {
  readonly status: number;
  /** Media type in lower case without parameters. */
  readonly contentType: string;
  readonly body: Buffer;
};

/**
 * Why a call brought no answer. `refused_address`: the guard let nothing leave the machine. `busy`: this service has too many calls under
 * way, which says nothing of the target. `redirected`: the answer is elsewhere, and the call does not follow there, or not so far.
 */
export type RemoteFault = 'refused_address' | 'timeout' | 'too_large' | 'unreachable' | 'redirected' | 'busy';

export class RemoteError extends Error {
  readonly fault: RemoteFault;
  /** Why it is unreachable: DNS, connection, or TLS with its reason, in words without addresses and names. */
  readonly detail: string | undefined;

  constructor(fault: RemoteFault, message: string, options: { cause?: unknown; detail?: string | undefined } = {}) {
    const { cause, detail } = options;
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'RemoteError';
    this.fault = fault;
    this.detail = detail;
  }

  /** The fault with its detail, for reports and logs. */
  get reason(): string {
    return this.detail === undefined ? this.fault : `${this.fault} (${this.detail})`;
  }
}

/** The detail of the call that failed at the root of an error; undefined where none did, or nothing more is known. */
export function remoteDetailOf(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof RemoteError) return cause.detail;
  }
  return undefined;
}

/**
 * The one way out of the service. Only `https` to public addresses, unless `OUTBOUND_ALLOW` lists the host or
 * network, also where a redirect leads; bounded in time and size.
 */
export abstract class Remote {
  /**
   * Whether a call of this address is refused for sure. Nothing is looked up: a name may turn out to lead to an address that is refused.
   * @param tenantId whose call it would be; none for the service itself.
   */
  abstract refuses(url: string, tenantId: string | undefined): boolean;

  /** @throws RemoteError when no complete answer arrived. Any status is an answer. */
  abstract request(
    url: string,
    options: {
      /** For whom: calls, connections and bytes are shared out between tenants. None for the service itself. */
      readonly tenantId: string | undefined;
      readonly method: 'GET' | 'POST';
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly timeoutMs: number;
      readonly maxBytes: number;
      /** Whether what comes with a status from 400 on is read; without it the body is empty then. */
      readonly readsErrors?: boolean;
      /** Whether what comes is signed, and verified by the caller: then http to public addresses will do, on its own port. */
      readonly isSigned?: boolean;
      /**
       * Whether up to three redirects of a GET are followed, within the same time. Each address is judged as the first one
       * was, https is not left, and nothing is sent on but what is accepted.
       */
      readonly followsRedirects?: boolean;
    },
  ): Promise<RemoteResponse>;
}
