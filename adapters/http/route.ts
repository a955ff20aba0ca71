import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { CachedCaller, Caller, Listener, TenantCaller } from '../../application/caller.ts';
import type { PortsOf, Token, Tokens } from '../../application/needs.ts';
import type { Role } from '../../domain/clients/role.ts';
import type { EditedKind } from '../../domain/resources.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import type { RateLimitGroup } from './limits/rate-limits.ts';

/** Error format of a route: problem+json for administrators, the protocol's own for wallets, a page for users. */
export type Surface = 'admin' | 'oauth' | 'vci' | 'vp' | 'document' | 'page';

/**
 * Access rule of a route. `anyOf` needs an access token with one of the roles, of a client of a tenant; `service` needs one of an account
 * without tenant; `either` accepts both. `stream` is like `anyOf`, with the token also in the query. `wallet` routes have an access token
 * of a wallet, which the use case verifies together with its proof; `public` routes have none. `remembered` avoids a database read; the
 * type of the caller then makes the use case confirm it. `unrestricted` rejects clients that are restricted to some configurations, for
 * writes that affect all of them, such as keys and trust lists.
 */
export type Access =
  | { readonly anyOf: readonly Role[]; readonly unrestricted?: true; readonly remembered?: never }
  | { readonly anyOf: readonly Role[]; readonly remembered: true }
  | { readonly service: readonly Role[] }
  | { readonly either: readonly Role[] }
  | { readonly stream: readonly Role[] }
  | 'wallet'
  | 'public';

export type CallerOf<A extends Access> = A extends { remembered: true }
  ? CachedCaller
  : A extends { stream: unknown }
    ? Listener
    : A extends { anyOf: unknown }
      ? TenantCaller
      : A extends { service: unknown } | { either: unknown }
        ? Caller
        : undefined;

/**
 * Format of a request body. `json` accepts only one object without repeated properties. `unread` leaves the parsing to the use case, for
 * messages that may be encrypted; the schema then is only documentation.
 */
export type BodyKind = 'json' | 'form' | 'json-or-form' | 'unread';

export type RawRequest = {
  readonly headers: IncomingHttpHeaders;
  /** Every header field unchanged, because Node joins repeated ones (RFC 9449 section 4.3 forbids them). */
  readonly rawHeaders: readonly string[];
  readonly requestId: string;
  /** Languages of the reader of a page, best first. */
  readonly languages: readonly string[];
  /** The body unchanged; empty for a route without one. */
  readonly bytes: Buffer;
  /** Aborted when the peer disconnects. */
  readonly closed: AbortSignal;
};

type ReplyHeaders = Readonly<Record<string, string>>;

export type Reply =
  | {
      readonly status: number;
      readonly json: unknown;
      readonly headers?: ReplyHeaders;
      /** Stored resource that the response shows. */
      readonly storedResource?: object;
    }
  | {
      readonly status: number;
      readonly text: string | Buffer;
      readonly contentType: string;
      /** Entity tag of the text, in quotes. */
      readonly etag?: string;
      readonly headers?: ReplyHeaders;
    }
  | { readonly status: number; readonly empty: true; readonly headers?: ReplyHeaders }
  /** Server-sent events: each item is one `data:` line or a comment. */
  | { readonly status: 200; readonly events: AsyncIterable<StreamItem>; readonly headers?: ReplyHeaders };

export type StreamItem = { readonly id?: string; readonly data: unknown } | 'heartbeat';

export function reply(status: number, json: unknown, headers?: ReplyHeaders): Reply {
  return headers === undefined ? { status, json } : { status, json, headers };
}

/** Response with a stored resource of the kind that its route `edits`; it carries the `ETag` of the resource. */
export function show(status: number, json: unknown, storedResource: object): Reply {
  return { status, json, storedResource };
}

export type Input<A extends Access, P, Q, B> = {
  readonly caller: CallerOf<A>;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: RawRequest;
};

/** Response that is not JSON. */
export type OtherForm = {
  readonly description: string;
  readonly contentType: string | readonly string[];
  /** Schema of the content, such as each event of a stream; text by default. */
  readonly schema?: z.ZodType;
  readonly headers?: Readonly<Record<string, string>>;
};

export type RouteDefinition<A extends Access, P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Path with `:name` parameters. Tenant paths of wallets begin with `/:tenant`. */
  readonly path: string;
  /** Name of the operation in the API document. Generated clients have a method of this name. */
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  readonly surface: Surface;
  readonly access: A;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Schema of the properties that the body may have, if `body` leaves that open. */
  readonly members?: z.ZodType;
  /** Documentation of inputs that a use case parses itself: it replaces `query` and `body`, and adds headers. */
  readonly described?: {
    readonly query?: z.ZodObject;
    readonly json?: z.ZodType;
    readonly form?: z.ZodType;
    readonly headers?: z.ZodObject;
  };
  readonly bodyKind?: BodyKind;
  /** Limit in bytes; 64 KiB by default. */
  readonly bodyLimit?: number;
  /** Limits the calls per minute of one address, of one client, or both. */
  readonly rateLimit?: {
    readonly group: RateLimitGroup;
    readonly perAddress?: boolean;
    /** Counts the client of the caller; without a caller, the client that the request names. */
    readonly perClient?: boolean | ((input: Input<A, z.output<P>, z.output<Q>, z.output<B>>) => string | undefined);
  };
  /** Responses may also be a JWT, as with `bodyKind` `unread`. */
  readonly asJwt?: boolean;
  /**
   * Called for a body that could not be parsed: too large, of another media type, not a form or not JSON. The caller gets the error.
   * @param params as in the address. @param requestId of the HTTP request.
   */
  readonly onUnreadBody?: (params: Readonly<Record<string, string | undefined>>, error: Failure, requestId: string) => Promise<void>;
  /** Documented responses: a schema, a sentence if there is no JSON body, or another form. */
  readonly responses: Readonly<Record<number, z.ZodType | string | OtherForm>>;
  /**
   * Kind of the single resource that this route shows or writes; responses carry its `ETag`. With `id`, which returns the id of the
   * resource within its tenant, `If-Match` is supported.
   */
  readonly edits?: {
    readonly kind: EditedKind;
    readonly id?: (input: Pick<Input<A, z.output<P>, z.output<Q>, z.output<B>>, 'params' | 'body'>) => string;
  };
  /** Errors of a page route are JSON of OAuth unless the client prefers HTML. */
  readonly negotiatesErrorFormat?: true;
  /** Page for a person who opens the address in a browser; programs get the reply of `handle`. */
  readonly browserPage?: (request: Pick<RawRequest, 'languages'>) => Reply;
  /** Supports an `Idempotency-Key`. */
  readonly isRepeatable?: true;
  /** Returns the current resource: its read-only properties may be sent back unchanged. */
  readonly shows?: (input: Pick<Input<A, z.output<P>, z.output<Q>, z.output<B>>, 'caller' | 'params'>) => Promise<Reply>;
  /**
   * Example values of path and query parameters by name; the tests execute them like `example`. Parameters that mean the same in every
   * route have theirs in `openapi/openapi-examples.ts`.
   */
  readonly exampleParameters?: Readonly<Record<string, unknown>>;
  /** Example of the request body, executed by the tests; text in angle brackets stands for a value from the response of a previous call. */
  readonly example?: unknown;
  handle(input: Input<A, z.output<P>, z.output<Q>, z.output<B>>): Promise<Reply> | Reply;
};

// biome-ignore lint/suspicious/noExplicitAny: a table of routes holds handlers of every input type
export type Route = RouteDefinition<Access, z.ZodType, z.ZodType, any>;

/** Defines one route as a value: handler, validation, authorization and documentation in one place. */
export function route<
  A extends Access,
  P extends z.ZodType = z.ZodType<undefined>,
  Q extends z.ZodType = z.ZodType<undefined>,
  B extends z.ZodType = z.ZodType<undefined>,
>(definition: RouteDefinition<A, P, Q, B>): Route {
  return definition as unknown as Route;
}

/** Returns true if wallets fetch something from the address. */
export function isForWallets({ method, surface }: Route): boolean {
  return method === 'get' && (surface === 'vci' || surface === 'vp');
}

/** Returns true if a person who opens the address in a browser gets a page, at least for errors. */
export function hasBrowserPages({ browserPage, method, surface }: Route): boolean {
  return browserPage !== undefined || surface === 'page' || (surface !== 'admin' && method === 'get');
}

export const DEFAULT_BODY_LIMIT = 64 * 1024;

/** Returns the port or use case of a token. */
export type Find = <T>(token: Token<T>) => T;

/** Routes that must be sent together, created once their use cases exist. */
export type Family = (find: Find) => readonly Route[];

export function family<T extends Tokens>(useCases: T, create: (useCases: PortsOf<T>) => readonly Route[]): Family {
  return (find) => {
    const ports = Object.entries(useCases).map(([name, token]) => [name, find(token)]);
    return create(Object.fromEntries(ports) as PortsOf<T>);
  };
}

export function families(...members: readonly Family[]): Family {
  return (find) => members.flatMap((create) => create(find));
}
